/*
 * cmd_resume.c - dq resume: the end of dq pause, of all tasks that have waited at once or little by
 * little.
 */
#include "cli/line/confirm.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/change.h"
#include "store/ask/targets.h"
#include "store/ask/task_change.h"
#include "store/fleet/limit_store.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 5 /* of those that stay paused */

struct resume_values {
    int64_t over_ms;
    bool all, dry_run, yes;
};

/* A tag may have a * in its name, and be a glob that matches others. */
static bool is_tag(const struct task *t, void *arg)
{
    const char *tag = arg;
    return strcmp(t->tag, tag) == 0;
}

static int list_due(struct cmd_context *c, const char *tag, bool is_glob, struct targets *ret,
                    struct err *err)
{
    char *glob = is_glob ? mem_strdup(tag) : task_tag_as_glob(tag);
    struct task_filter f = {.tag_glob = glob};

    f.before[TASK_FILTER_DUE].set = true;
    int rc = cmd_now(c, &f.before[TASK_FILTER_DUE].at, err);
    if (rc == 0)
        rc = targets_list(c->db, &f, TASK_BIT(TASK_PENDING), is_glob ? NULL : is_tag,
                          (void *)(uintptr_t)tag, ret, err);
    free(glob);
    return rc;
}

static int agree(struct cmd_context *c, const char *tag, size_t count, struct err *err)
{
    BUF_LOCAL struct buf name = BUF_INIT;

    text_escape(&name, tag, strlen(tag), 0);
    return confirm_change(c, "spread", count, name.data, err);
}

/* Gives these tasks, which are due, new times. */
static int spread(struct cmd_context *c, struct event_act *act, int64_t over_ms,
                  const struct targets *due, struct err *err)
{
    const struct task_change change = {.event = TASK_RESCHEDULE,
                                       .expected_at = TASK_TIME_NONE,
                                       .over_ms = over_ms,
                                       .moves_expiry = true};
    struct task_changed done = {0};
    char text[WHEN_TEXT_SIZE];

    int rc = change_apply(c, due, &change, act, "moved", &done, err);
    if (rc == ERR_TRANSIENT)
        err_set(err, rc, "%s; the tag is still paused", err->text);
    if (rc == 0)
        cmd_note(c, "%" PRIu64 " due tasks are spread evenly over %s", done.changed,
                 when_format_duration(text, over_ms));
    return rc;
}

static int print_count(size_t count)
{
    out_printf("%zu task%s would be spread\n", count, count == 1 ? "" : "s");
    return 0;
}

/* 1: the tag was paused, 0: it was not. */
static int resume(struct cmd_context *c, const struct resume_values *v, const char *tag,
                  const struct targets *due, struct err *err)
{
    LOCAL_BY(act_done) struct act act = {0};
    int rc = due->count > 1 && !v->yes ? agree(c, tag, due->count, err) : 0;

    if (rc < 0)
        return rc;
    act_init(&act, c, NULL, 0);
    act.event.tag = tag;
    if (v->over_ms > 0)
        rc = spread(c, &act.event, v->over_ms, due, err);
    if (rc == 0)
        rc = limit_store_resume(c->db, &act.event, err);
    return rc;
}

/* What else pauses the tag, or tags that match, if it is a glob. */
static void note_others(struct cmd_context *c, const char *tag, const struct limit_paused *rows,
                        size_t count)
{
    size_t named = 0;

    for (size_t i = 0; i < count; i++) {
        const struct limit_paused *p = &rows[i];
        BUF_LOCAL struct buf word = BUF_INIT;
        if (!p->info.tag || !strcmp(p->info.tag, tag) ||
            !((p->glob && task_tag_glob(p->info.tag, tag)) || task_tag_glob(tag, p->info.tag)))
            continue;
        text_shell_word(&word, p->info.tag);
        if (named++ < NAMED)
            cmd_note(c, "%s is still paused: dq resume %s", p->info.tag, word.data);
    }
    if (named > NAMED)
        cmd_note(c, "%zu more are still paused: see dq tags", named - NAMED);
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct resume_values *v = values;
    const char *tag = v->all ? "*" : c->operands[0];
    LOCAL_BY(targets_done) struct targets due = {0};
    struct limit_paused *rows = NULL;
    size_t count = 0;
    bool glob = false;

    if (v->all && c->operand_count)
        return err_set(err, ERR_USAGE, "--all and a tag cannot be combined");
    int rc = task_check_wanted(tag, err);
    if (rc == 0)
        rc = limit_store_paused(c->db, NULL, &rows, &count, err);
    for (size_t i = 0; i < count; i++)
        glob |= rows[i].glob && !strcmp(rows[i].info.tag, tag);
    if (rc == 0 && v->over_ms > 0)
        rc = list_due(c, tag, glob, &due, err);
    if (rc == 0)
        rc = v->dry_run ? print_count(due.count) : resume(c, v, tag, &due, err);
    if (rc == 1 && !v->dry_run) {
        cmd_wake_rules(c);
        cmd_note(c, "%s is resumed", tag);
    }
    if (rc >= 0 && !v->dry_run) {
        note_others(c, tag, rows, count);
        rc = rc ? 0 : err_set(err, ERR_NOT_FOUND, "tag \"%s\" is not paused", tag);
    }
    limit_store_paused_free(rows, count);
    return rc;
}

#define FIELD(name) offsetof(struct resume_values, name)
static const struct cmd_option options[] = {
    {"all", 0, CMD_FLAG, FIELD(all), NULL, NULL, 0},
    {"over", 0, CMD_DURATION, FIELD(over_ms), "D", NULL, 0},
    {"dry-run", 0, CMD_FLAG, FIELD(dry_run), NULL, NULL, 0},
    {"yes", 'y', CMD_FLAG, FIELD(yes), NULL, NULL, 0},
};

const struct cmd cmd_resume = {
    .name = "resume",
    CMD_OPTIONS(options, resume_values),
    .requires = "dry-run over",
    .min_operands = 1,
    .instead = "all",
    .run = run,
};
