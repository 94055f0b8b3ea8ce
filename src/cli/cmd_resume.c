/*
 * cmd_resume.c - dq resume: the end of dq pause, of all tasks that have waited at once or little by
 * little.
 */
#include "cli/act.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "store/rows.h"
#include "store/tag_store.h"
#include "store/targets.h"
#include "store/task_change.h"

#include "base/when.h"

#include <inttypes.h>
#include <string.h>

struct resume_values {
    int64_t over_ms;
};

/* A tag may have a * in its name, and be a glob that matches others. */
static bool is_tag(const struct task *t, void *arg)
{
    const char *tag = arg;
    return strcmp(t->tag, tag) == 0;
}

static bool step_done(const struct task_changed *so_far, void *arg)
{
    progress_show(arg, so_far->changed, (double)so_far->changed / (double)so_far->matched);
    return !interrupt_asked();
}

/* Gives the tasks that are due new times. */
static int spread(struct cmd_context *c, struct event_act *act, int64_t over_ms, struct err *err)
{
    const struct task_change change = {
        .event = TASK_RESCHEDULE, .expected_at = TASK_TIME_NONE, .over_ms = over_ms};
    struct task_filter f = {.tag_glob = act->tag};
    struct progress progress;
    struct targets_steps steps = {act, step_done, &progress};
    struct targets due = {0};
    struct task_changed done = {0};
    struct rows_faults faults = {0};
    char text[WHEN_TEXT_SIZE];

    f.before[TASK_FILTER_DUE].set = true;
    int rc = cmd_now(c, &f.before[TASK_FILTER_DUE].at, err);
    if (rc == 0)
        rc = targets_list(c->db, &f, TASK_BIT(TASK_PENDING), is_tag, (void *)(uintptr_t)act->tag,
                          &due, err);
    progress_init(&progress, c->quiet, "tasks moved");
    interrupt_catch();
    if (rc == 0)
        rc = task_change(c->db, &due, &change, &steps, &done, &faults, err);
    progress_clear(&progress);
    if (rc == 0 && interrupt_asked())
        rc =
            err_set(err, ERR_TRANSIENT,
                    "interrupted: %" PRIu64 " of %zu due tasks were moved; the tag is still paused",
                    done.changed, due.count);
    if (faults.count)
        cmd_complain(c, "%zu tasks were not moved, task %" PRIu64 " among them: %s", faults.count,
                     faults.items[0].id, faults.items[0].err.text);
    if (rc == 0)
        cmd_note(c, "%" PRIu64 " due tasks are spread evenly over %s", done.changed,
                 when_format_duration(text, over_ms));
    rows_faults_done(&faults);
    targets_done(&due);
    return rc;
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct resume_values *v = values;
    const char *tag = c->operands[0];
    struct act act;

    act_init(&act, c, NULL, 0);
    act.event.tag = tag;
    int rc = v->over_ms > 0 ? spread(c, &act.event, v->over_ms, err) : 0;
    if (rc == 0)
        rc = tag_store_resume(c->db, &act.event, err);
    act_done(&act);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "tag \"%s\" is not paused", tag);
    if (rc < 0)
        return rc;
    cmd_wake(c, 0);
    cmd_note(c, "%s is resumed", tag);
    return 0;
}

static const struct cmd_option options[] = {
    {"over", 0, CMD_DURATION, offsetof(struct resume_values, over_ms), "D",
     "spread the tasks that are due evenly over D", NULL, 0},
};

const struct cmd cmd_resume = {
    .name = "resume",
    .group = "tags and statistics",
    .summary = "start tasks of a paused tag again",
    .usage = "TAG [--over D]",
    CMD_OPTIONS(options),
    .values_size = sizeof(struct resume_values),
    .min_operands = 1,
    .max_operands = 1,
    .level = CMD_SCHEMA,
    .formats = OUT_ANY,
    .examples = "dq resume mail.welcome",
    .run = run,
};
