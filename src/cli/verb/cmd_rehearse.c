/*
 * cmd_rehearse.c - dq rehearse: runs the handler of a task in this terminal, and reports what dqd
 * would record. Invariant: the task is only read.
 */
#include "cli/line/cmd.h"
#include "cli/line/verbs.h"
#include "cli/show/body.h"
#include "cli/show/inert.h"

#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "conf/handlers_load.h"
#include "runner/rehearse.h"
#include "store/ask/task_get.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_CANNOT_START 126
#define EXIT_RETRY 75
#define EXIT_INTERRUPTED 130

struct rehearse_values {
    const char *tag, *key;
    int64_t timeout_ms;
};

struct rehearsal {
    struct cmd_context *c;
    struct handlers *handlers;
    struct rehearse *runner;
    struct task task; /* as the attempt would have it */
    int handler;
    struct inert inert;
};

/* ---- the task ---- */

static int make_task(struct rehearsal *r, const struct rehearse_values *v, struct err *err)
{
    struct task *t = &r->task;
    BUF_LOCAL struct buf body = BUF_INIT;
    int rc = task_check_tag(v->tag, strlen(v->tag), err);

    if (rc == 0 && v->key)
        rc = task_check_key(v->key, strlen(v->key), err);
    if (rc == 0)
        rc = body_read(r->c->operand_count ? r->c->operands[0] : NULL, &body, err);
    if (rc < 0)
        return rc;
    t->tag = mem_strdup(v->tag);
    t->key = mem_strdup(v->key);
    t->body_size = body.len;
    t->body = buf_take(&body);
    t->expected_at = when_host_wall();
    t->attempt = 1;
    return 0;
}

/* Its next attempt; of a running task the current one, of a finished one that after `dq retry`. */
static int load_task(struct rehearsal *r, struct err *err)
{
    struct task *t = &r->task;
    uint64_t *ids;
    size_t count;
    int rc = cmd_ids(r->c, false, &ids, &count, err);

    if (rc == 0) {
        rc = cmd_open(r->c, CMD_SCHEMA, err);
        if (rc == 0)
            rc = task_get(r->c->db, ids[0], t, err);
        free(ids);
    }
    if (rc < 0)
        return rc;
    if (t->status == TASK_DONE)
        t->run += t->run < UINT32_MAX;
    if (TASK_FINISHED & TASK_BIT(t->status))
        t->attempt = 1;
    else if (t->status == TASK_PENDING)
        t->attempt++;
    return 0;
}

/* ---- the outcome ---- */

static void print(const void *p, size_t size, void *arg)
{
    struct rehearsal *r = arg;
    struct err e;

    inert_print(&r->inert, p, size);
    if (out_flush(&e) < 0)
        return; /* as the last one, which is reported */
}

static void note_verdict(const struct rehearsal *r, const struct rehearse_result *x)
{
    const char *why = x->error.code ? x->error.text : "", *colon = x->error.code ? ": " : "";
    char wait[WHEN_TEXT_SIZE];

    if (task_transition(x->event)->attempt_change < 0) {
        cmd_note(r->c, "dqd would give the attempt back: %s", why);
        return;
    }
    switch (task_transition(x->event)->to) {
    case TASK_DONE:
        cmd_note(r->c, "dqd would record: done");
        break;
    case TASK_PENDING:
        cmd_note(r->c, "dqd would retry in %s (attempt %" PRIu32 " of %" PRIu32 ")%s%s",
                 when_format_rough(wait, x->retry_ms), r->task.attempt + 1, r->task.max_attempts,
                 colon, why);
        break;
    default:
        if (x->permanent)
            cmd_note(r->c, "dqd would record: failed permanently%s%s", colon, why);
        else
            cmd_note(r->c, "dqd would record: failed, in the last of %" PRIu32 " attempts%s%s",
                     r->task.max_attempts, colon, why);
    }
}

/* As that of the handler; see the manual. */
static int status_of(const struct rehearse_result *x)
{
    const enum task_status to = task_transition(x->event)->to;

    if (to == TASK_DONE)
        return 0;
    if (x->signal > 0)
        return 128 + x->signal;
    if (x->exit_code > 0)
        return x->exit_code;
    return to == TASK_PENDING ? EXIT_RETRY : 1;
}

static int rehearse(struct rehearsal *r, struct err *err)
{
    struct rehearse_result x;
    int rc = rehearse_run(r->runner, &r->task, r->handler, print, r, &x, err);

    if (rc < 0)
        return rc;
    inert_print_end(&r->inert);
    rc = out_flush(err);
    if (x.interrupted) {
        cmd_note(r->c, "interrupted; nothing was changed");
        r->c->exit_status = EXIT_INTERRUPTED;
    } else if (x.ran) {
        note_verdict(r, &x);
        r->c->exit_status = status_of(&x);
    } else {
        cmd_complain(
            r->c,
            "the handler cannot be started: %s; dqd would give the task back, and its tag would rest",
            x.error.text);
        r->c->exit_status = EXIT_CANNOT_START;
    }
    return rc;
}

/* ---- all of it ---- */

static int check(const struct cmd_context *c, const struct rehearse_values *v, struct err *err)
{
    if (!v->tag && c->operand_count != 1)
        return err_set(err, ERR_USAGE, "give the id of a task, or --tag and a body");
    return 0;
}

static int find_handler(struct rehearsal *r, struct err *err)
{
    struct task *t = &r->task;

    r->handler = handlers_match(r->handlers, t->tag);
    if (r->handler < 0)
        return err_set(err, ERR_NOT_FOUND, "%s has no handler for the tag %s", r->handlers->path,
                       t->tag);
    if (!t->max_attempts)
        t->max_attempts = retry_max_attempts(&r->handlers->items[r->handler].retry);
    return 0;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct rehearse_values *v = c->values;
    struct rehearsal r = {.c = c};
    int rc = check(c, v, err);

    task_init(&r.task);
    if (rc == 0)
        rc = handlers_load(c->conf->dqd.handlers, &r.handlers, err);
    for (size_t i = 0; rc == 0 && v->timeout_ms >= 0 && i < r.handlers->count; i++)
        r.handlers->items[i].timeout_ms = v->timeout_ms ? v->timeout_ms : WHEN_MAX_DURATION_MS;
    if (rc == 0)
        rc = rehearse_start(r.handlers, c->conf->dqd.user, c->conf->path, &r.runner, err);
    if (rc == 0)
        rc = v->tag ? make_task(&r, v, err) : load_task(&r, err);
    if (rc == 0)
        rc = find_handler(&r, err);
    if (rc == 0)
        rc = rehearse(&r, err);
    rehearse_free(r.runner);
    handlers_free(r.handlers);
    task_done(&r.task);
    return rc;
}

#define FIELD(name) offsetof(struct rehearse_values, name)
static const struct cmd_option options[] = {
    {"tag", 't', CMD_TEXT, FIELD(tag), "T", NULL, 0},
    {"key", 0, CMD_TEXT, FIELD(key), "K", NULL, 0},
    {"timeout", 0, CMD_DURATION, FIELD(timeout_ms), "D", NULL, 0},
};

const struct cmd cmd_rehearse = {
    .name = "rehearse",
    CMD_OPTIONS(options, rehearse_values),
    .requires = "key tag",
    .max_operands = 1,
    .level = CMD_CONF,
    .reads_only = true,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run,
};
