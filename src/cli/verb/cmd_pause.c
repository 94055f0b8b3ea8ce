/*
 * cmd_pause.c - dq pause and resume: whether tasks of a tag, or of all tags that match a glob, are
 * started. And dq quiet and unquiet: whether the dqds of a host claim any.
 */
#include "cli/judge/fleet.h"
#include "cli/line/confirm.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/change.h"
#include "cli/show/progress.h"
#include "store/ask/targets.h"
#include "store/ask/task_change.h"

#include "base/json.h"
#include "base/text.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAMED 5 /* of those that stay paused */

struct pause_values { /* of all four: each has options for some of them */
    bool all, dry_run, yes;
    int64_t for_ms, over_ms;
    struct cmd_when until;
    const char *reason;
};
#define FIELD(name) offsetof(struct pause_values, name)

/* ---- pause ---- */

/* Accepts a tag that dq add would accept, one that tasks of an application have, or a glob. In
 * other names a blank is a typing error, and the pause would have no effect. *ret_match: so many
 * tags match the glob now; -1: it is a tag. */
static int check_tag(struct cmd_context *c, const char *tag, int64_t *ret_match, struct err *err)
{
    struct tag_info *tags;
    size_t count;
    int64_t now_at;
    bool known = false;
    *ret_match = -1;
    if (task_check_tag(tag, strlen(tag), err) == 0)
        return 0;
    int rc = tag_store_list(c->db, tag, &(struct tag_count_how){.exact = false}, &tags, &count,
                            &now_at, NULL);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++)
        known = known || strcmp(tags[i].tag, tag) == 0;
    tag_store_free(tags, count);
    if (known)
        return 0;
    *ret_match = (int64_t)count;
    return strpbrk(tag, "*?") ? task_check_tag_glob(tag, strlen(tag), err)
                              : task_check_tag(tag, strlen(tag), err);
}

/* Until when, for people: " until 2026-11-21 09:00:00.000 +01:00", " for 1h" or nothing. */
static void put_end(struct buf *b, const struct pause_values *v, int64_t until_at)
{
    char text[WHEN_TEXT_SIZE];
    if (v->until.text)
        buf_printf(b, " until %s", when_format_local(text, until_at));
    else if (v->for_ms >= 0)
        buf_printf(b, " for %s", when_format_duration(text, v->for_ms));
}

static int run_pause(struct cmd_context *c, struct err *err)
{
    const struct pause_values *v = c->values;
    const char *tag = v->all ? "*" : c->operands[0];
    int64_t match, until_at = v->for_ms >= 0 ? TASK_TIME_NONE : INT64_MAX;
    int64_t now_at = 0;
    LOCAL_BY(limit_store_tag_done) struct tag_info before = {TAG_INFO_NONE};
    BUF_LOCAL struct buf end = BUF_INIT, word = BUF_INIT;
    char text[WHEN_TEXT_SIZE];
    size_t chars;
    if (v->for_ms == 0)
        return err_set(err, ERR_USAGE, "--for must be longer than 0; use dq resume to end a pause");
    if (v->reason && (!json_utf8_valid(v->reason, strlen(v->reason), &chars, NULL) || chars > 255))
        return err_set(err, ERR_DATA, "--reason: at most 255 characters of UTF-8");
    if (v->all && c->operand_count)
        return err_set(err, ERR_USAGE, "--all and a tag cannot be combined");
    int rc = check_tag(c, tag, &match, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->until, &until_at, err);
    if (rc == 0 && (v->until.text || v->for_ms > 0))
        rc = cmd_now(c, &now_at, err);
    if (rc == 0)
        rc = limit_store_tag(c->db, tag, &before, err);
    if (rc != 0)
        return rc;
    if (v->until.text && until_at <= now_at)
        return err_set(err, ERR_USAGE, "--until: %s is in the past", v->until.text);
    LOCAL_BY(act_done) struct act act = act_of(c, NULL, tag);
    rc = limit_store_pause(c->db, &act.event, match >= 0, until_at, v->for_ms, v->reason, err);
    if (rc < 0)
        return rc;
    put_end(&end, v, until_at);
    text_shell_word(&word, tag);
    cmd_note(c, "%s is paused%s; running handlers continue. To resume: dq resume %s", tag,
             end.len ? end.data : "", word.data);
    if (before.tag && !strcmp(before.tag, tag) &&
        before.paused_until_at > (v->for_ms > 0 ? now_at + v->for_ms : until_at))
        cmd_note(c, "that is shorter: it was paused until %s",
                 before.paused_until_at == INT64_MAX
                     ? "resumed"
                     : when_format_local(text, before.paused_until_at));
    if (match >= 0)
        cmd_note(c, "%" PRId64 " tag%s now; tags that appear later are paused, too", match,
                 match == 1 ? " matches" : "s match");
    else if (!fleet_note_tag(c, tag))
        select_note_nearest(c, tag);
    return 0;
}

static const struct cmd_option pause_options[] = {
    {"all", 0, CMD_FLAG, FIELD(all), NULL, NULL, 0},
    {"for", 0, CMD_DURATION, FIELD(for_ms), "D", NULL, 0},
    {"until", 0, CMD_INSTANT, FIELD(until), "TIME", NULL, 0},
    {"reason", 0, CMD_TEXT, FIELD(reason), "TEXT", NULL, 0},
};

const struct cmd cmd_pause = {
    .name = "pause",
    CMD_OPTIONS(pause_options, pause_values),
    .exclusive = "for until",
    .min_operands = 1,
    .instead = "all",
    .run = run_pause,
};

/* ---- resume ---- */

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

/* 1: the tag was paused, 0: it was not. */
static int resume(struct cmd_context *c, const struct pause_values *v, const char *tag,
                  const struct targets *due, struct err *err)
{
    int rc = due->count > 1 && !v->yes ? agree(c, tag, due->count, err) : 0;

    if (rc < 0)
        return rc;
    LOCAL_BY(act_done) struct act act = act_of(c, NULL, tag);
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

static int run_resume(struct cmd_context *c, struct err *err)
{
    const struct pause_values *v = c->values;
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
    if (rc == 0 && v->dry_run)
        out_printf("%zu task%s would be spread\n", due.count, due.count == 1 ? "" : "s");
    else if (rc == 0)
        rc = resume(c, v, tag, &due, err);
    if (rc == 1) {
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

static const struct cmd_option resume_options[] = {
    {"all", 0, CMD_FLAG, FIELD(all), NULL, NULL, 0},
    {"over", 0, CMD_DURATION, FIELD(over_ms), "D", NULL, 0},
    {"dry-run", 0, CMD_FLAG, FIELD(dry_run), NULL, NULL, 0},
    {"yes", 'y', CMD_FLAG, FIELD(yes), NULL, NULL, 0},
};

const struct cmd cmd_resume = {
    .name = "resume",
    CMD_OPTIONS(resume_options, pause_values),
    .requires = "dry-run over",
    .min_operands = 1,
    .instead = "all",
    .run = run_resume,
};

/* ---- quiet, unquiet ---- */

struct quieted {
    const char *name; /* "HOST" or "HOST:PID" */
    int64_t asked_at; /* dqds that were seen later have heard of it */
    bool known;       /* there are some that are alive, or were within a day */
    /* of these so many have not heard of it; a pass between two does when it begins again */
    unsigned alive, unheard;
    uint64_t running; /* their handlers */
    bool over;        /* it is no longer quiet: the time was too short, or somebody has ended it */
};

static int look_at_dqds(struct cmd_context *c, struct quieted *q, struct err *err)
{
    struct poller_info *p;
    size_t count;
    int rc = poller_store_list(c->db, &p, &count, err);
    if (rc < 0)
        return rc;
    q->alive = q->unheard = 0;
    q->running = 0;
    q->over = false;
    for (size_t i = 0; i < count; i++) {
        MEM_LOCAL char *one = mem_printf("%s:%" PRIu32, p[i].host, p[i].pid);
        bool same = strcmp(q->name, p[i].host) == 0 || strcmp(q->name, one) == 0;
        q->known |= same;
        if (!same)
            continue;
        q->over |= !p[i].quiet;
        if (!p[i].alive || poller_store_is_between(&p[i]))
            continue;
        q->alive++;
        q->unheard += p[i].last_seen_at <= q->asked_at;
        q->running += (uint64_t)p[i].running;
    }
    poller_store_free(p, count);
    return 0;
}

/* The last look is made when all have heard of it: only then do they count what has not started. */
static int wait_for_dqds(struct cmd_context *c, struct quieted *q, struct err *err)
{
    struct progress progress;
    int rc = cmd_now(c, &q->asked_at, err);
    if (rc == 0)
        rc = look_at_dqds(c, q, err);
    progress_init(&progress, c->quiet, "");
    for (bool again = q->unheard; rc == 0 && again;) {
        again = q->unheard;
        progress_phase(&progress, "waiting for dqds that have not heard of it",
                       q->alive ? 1 - (double)q->unheard / q->alive : 1);
        nanosleep(&(struct timespec){0, 50000000}, NULL);
        rc = look_at_dqds(c, q, err);
    }
    progress_clear(&progress);
    return rc < 0 ? err_set(err, rc, "%s; %s is quiet nevertheless", err->text, q->name) : 0;
}

static int run_quiet(struct cmd_context *c, struct err *err)
{
    const struct pause_values *v = c->values;
    struct quieted q = {.name = c->operands[0]};
    MEM_LOCAL char *row = mem_printf(LIMIT_STORE_DQD "%s", q.name);
    BUF_LOCAL struct buf word = BUF_INIT;
    if (v->for_ms == 0)
        return err_set(err, ERR_USAGE, "--for must be longer than 0; dq unquiet ends it");
    int rc = look_at_dqds(c, &q, err);
    if (rc < 0)
        return rc;
    if (!q.known)
        return err_set(err, ERR_NOT_FOUND, "no dqd of %s is known; dq pollers lists them", q.name);
    LOCAL_BY(act_done) struct act act = act_of(c, NULL, row);
    rc = limit_store_pause(c->db, &act.event, false, v->for_ms >= 0 ? TASK_TIME_NONE : INT64_MAX,
                           v->for_ms, NULL, err);
    if (rc > 0)
        rc = wait_for_dqds(c, &q, err);
    if (rc < 0)
        return rc;
    if (q.over)
        return err_set(err, ERR_STATE,
                       "%s is no longer quiet: the time that it was to be has passed"
                       " before all of its dqds had heard of it, or dq unquiet has ended it",
                       q.name);
    text_shell_word(&word, q.name);
    cmd_note(c, "%s is quiet; %" PRIu64 " handler%s continue%s. To end it: dq unquiet %s", q.name,
             q.running, q.running == 1 ? "" : "s", q.running == 1 ? "s" : "", word.data);
    return 0;
}

static const struct cmd_option quiet_options[] = {
    {"for", 0, CMD_DURATION, FIELD(for_ms), "D", NULL, 0},
};

const struct cmd cmd_quiet = {
    .name = "quiet",
    CMD_OPTIONS(quiet_options, pause_values),
    .min_operands = 1,
    .run = run_quiet,
};

static int run_unquiet(struct cmd_context *c, struct err *err)
{
    const char *name = c->operands[0];
    MEM_LOCAL char *row = mem_printf(LIMIT_STORE_DQD "%s", name);

    LOCAL_BY(act_done) struct act act = act_of(c, NULL, row);
    int rc = limit_store_resume(c->db, &act.event, err);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "%s is not quiet", name);
    if (rc > 0)
        cmd_note(c, "%s claims tasks again from its next heartbeat on", name);
    return rc < 0 ? rc : 0;
}

const struct cmd cmd_unquiet = {
    .name = "unquiet",
    .min_operands = 1,
    .run = run_unquiet,
};
