/*
 * cmd_add.c - dq add: one task by one statement, or a file of them.
 *
 * Everything about the task is checked before the connection is made.
 */
#include "cli/judge/fleet.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/bulk.h"
#include "cli/many/bulk_line.h"
#include "cli/show/body.h"
#include "store/schema/routines.h"

#include "base/mem.h"
#include "base/when.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const char *const conflict_names[] = {[KEY_KEEP] = "keep",
                                             [KEY_ERROR] = "error",
                                             [KEY_REPLACE] = "replace",
                                             [KEY_AGAIN] = "again",
                                             [KEY_DEBOUNCE] = NULL};

/* What was stored, and what became of the key. */
struct added {
    struct task_added task;
    bool kept;
    const char *result;
};

static const struct column columns[] = {
    OUT_FIELD(added, "id", U64, task.id, 0),
    OUT_FIELD(added, "expected", TIME, task.expected_at, 0),
    OUT_FIELD(added, "result", TEXT, result, 0),
};

/* The time until it is due; of a task that was there already, it may not be what was asked for. An
 * account that may only insert does not learn the database's clock: the instant of an --in and the
 * distance of an --at are then unknown. */
static int64_t distance(const struct task_new *new, const struct task_added *t)
{
    bool given = new->expected_at == TASK_TIME_NONE && !t->replaced && !t->again;

    return given || t->now_at == TASK_TIME_NONE ? new->delay_ms : t->expected_at - t->now_at;
}

static void say_when(struct cmd_context *c, const struct task_new *new, const struct task_added *t)
{
    BUF_LOCAL struct buf due = BUF_INIT;
    char rough[WHEN_TEXT_SIZE];
    int64_t in_ms = distance(new, t);
    bool known = t->expected_at != TASK_TIME_NONE;
    if (known)
        cmd_put_instant(&due, t->expected_at);
    if (in_ms > 0 && !(known && t->now_at == TASK_TIME_NONE))
        buf_printf(&due, "%sin %s", known ? ", " : "", when_format_rough(rough, in_ms));
    else if (in_ms < -1000)
        buf_str(&due, ": in the past, so due at once");
    else if (!known || t->now_at != TASK_TIME_NONE)
        buf_str(&due, known ? ": at once" : "at once");
    cmd_note(c, "due %s", due.data);
}

/* Checks the task, and reads its body into *body. A pipe may have got its data only after the
 * connection was made: standard input is checked again then. */
static int make_task(struct cmd_context *c, const struct bulk_values *v, struct buf *body,
                     struct task_new *ret, struct err *err)
{
    *ret = (struct task_new){.tag = c->operands[0],
                             .key = v->key,
                             .expected_at = TASK_TIME_NONE,
                             .delay_ms = v->in_ms > 0 ? v->in_ms : 0,
                             .max_attempts = v->max_attempts > 0 ? (uint32_t)v->max_attempts : 0,
                             .level = v->level > 0 ? (enum task_level)v->level : TASK_NORMAL,
                             .attempt = v->attempted > 0 ? (uint32_t)v->attempted : 0,
                             .expires_ms = v->expires_ms > 0 ? v->expires_ms : 0};
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    if (task_check_tag(ret->tag, strlen(ret->tag), err) < 0 ||
        (ret->key && task_check_key(ret->key, strlen(ret->key), err) < 0) ||
        body_read(c->operand_count > 1 ? c->operands[1] : NULL, body, err) < 0)
        return err->code;
    ret->body = body->data ? body->data : "";
    ret->body_size = body->len;
    if (v->dry_run) /* nothing is stored: the clock of this host will do */
        c->now_at = when_host_wall();
    if (!v->sql && cmd_open(c, v->dry_run ? CMD_NOTHING : CMD_DB, err) < 0)
        return err->code;
    if (cmd_resolve(c, &v->at, &ret->expected_at, err) < 0 ||
        cmd_resolve(c, &v->expires_at, &ret->expires_at, err) < 0)
        return err->code;
    if (c->operand_count <= 1 && body_check_input(err) < 0) /* it may have come meanwhile */
        return err->code;
    if (ret->attempt && fleet_set_wait(c->db, &fleet, v->in_ms >= 0 || v->at.text, ret, err) < 0)
        return err->code;
    return bulk_line_check_expiry(c, ret, err);
}

static int report(struct cmd_context *c, const struct task_new *t, const struct added *added,
                  struct err *err)
{
    if (c->style.format == OUT_TABLE)
        c->style.format = OUT_ID;
    out_record(&c->style, columns, MEM_COUNT(columns), added);
    if (out_flush(err) < 0) /* so that nobody adds it again */
        return err_prefix(err, "task %" PRIu64 " was %s, but", added->task.id, added->result);
    if (added->kept && added->task.status == TASK_PENDING)
        cmd_note(c, "task %" PRIu64 " has this key and is pending; it is kept unchanged",
                 added->task.id);
    else if (added->kept)
        cmd_note(c,
                 "task %" PRIu64 " has this key and is running; it is kept unchanged, and does not"
                 " see what you add: see --key-conflict again",
                 added->task.id);
    if (added->task.again)
        cmd_note(c, "task %" PRIu64 " is running; it runs again afterwards", added->task.id);
    if (!added->kept)
        say_when(c, t, &added->task);
    /* for people: a script that adds many tasks does not pay for it */
    if (c->verbose || isatty(STDERR_FILENO))
        fleet_note_tag(c, c->operands[0]);
    return 0;
}

/* Says how the time was read. */
static int report_dry_run(struct cmd_context *c, const struct task_new *t, struct err *err)
{
    struct added added = {.task = {.now_at = c->now_at, .expected_at = t->expected_at},
                          .result = "valid"};
    if (t->expected_at == TASK_TIME_NONE)
        added.task.expected_at = c->now_at + t->delay_ms;
    /* there is no id */
    out_record(&c->style, columns + 1, MEM_COUNT(columns) - 1, &added);
    int rc = out_flush(err);
    if (rc == 0)
        say_when(c, t, &added.task);
    return rc;
}

static int add_one(struct cmd_context *c, const struct bulk_values *v, struct err *err)
{
    struct task_new t;
    BUF_LOCAL struct buf body = BUF_INIT;
    struct added added = {.result = "added"};
    LOCAL_BY(act_done) struct act act = {.actor = NULL};
    const enum key_conflict on_conflict = bulk_conflict(v);
    int rc = make_task(c, v, &body, &t, err), tries = 0;

    if (rc < 0)
        return rc;
    if (v->sql) { /* for a client of another program: nothing was connected to */
        struct buf b = BUF_INIT;
        routines_put_call(&b, &t, on_conflict);
        out_take(&b);
        return 0;
    }
    if (v->dry_run)
        return report_dry_run(c, &t, err);
    if (on_conflict >= KEY_REPLACE) {
        act = act_of(c, NULL, t.tag);
        act.event.verb = on_conflict == KEY_REPLACE ? "replace" : "again";
        t.act = &act.event;
    }
    do
        rc = task_add(c->db, &t, on_conflict, &added.task, err);
    while (rc == ERR_TRANSIENT && cmd_again(rc, &tries));
    if (rc == ERR_LOST)
        err_set(err, rc, "%s; %s", err->text,
                t.key ? "dq list --key shows it" : "dq list --since 10m shows it");
    if (rc < 0)
        return rc;
    added.kept = rc == 0 && !added.task.replaced && !added.task.again;
    if (rc == 0)
        added.result = added.kept ? "kept" : added.task.again ? "again" : "replaced";
    if (!added.kept && !added.task.again) /* the dqd that runs it knows when that has ended */
        cmd_wake(c, distance(&t, &added.task));
    return report(c, &t, &added, err);
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct bulk_values *v = c->values;
    bool one_only = v->in_ms >= 0 || v->at.text || v->key || v->max_attempts >= 0 ||
                    v->attempted >= 0 || v->level >= 0 || v->expires_ms >= 0 ||
                    v->expires_at.text || c->operand_count > 0;
    if (v->sql && c->output >= 0)
        return err_set(err, ERR_USAGE, "--sql prints SQL: -o %s is not available with it",
                       out_format_names[c->output]);
    if (v->debounce && v->on_conflict != KEY_AGAIN)
        return err_set(err, ERR_USAGE, "--debounce needs --key-conflict again");
    if (v->expires_ms == 0)
        return err_set(err, ERR_USAGE, "--expires must be longer than 0, such as 10m");
    if (!v->from) {
        if (c->operand_count == 0)
            return err_set(err, ERR_USAGE,
                           "missing argument: dq add TAG [BODY], or dq add --from FILE");
        if (v->sql && ((v->at.text && cmd_time_is_relative(v->at.text)) ||
                       (v->expires_at.text && cmd_time_is_relative(v->expires_at.text))))
            return err_set(
                err, ERR_USAGE,
                "--sql asks no database what time it is: use --in and --expires, or a time with a date");
        return add_one(c, v, err);
    }
    if (one_only)
        return err_set(
            err, ERR_USAGE,
            "--from cannot be combined with a tag, body, time or key: the file has them");
    if (c->output == OUT_ID && v->dry_run)
        return err_set(err, ERR_USAGE, "--dry-run adds nothing: -o id is not available with it");
    int rc = v->dry_run || v->sql ? cmd_open(c, CMD_NOTHING, err) : cmd_open(c, CMD_SCHEMA, err);
    return rc < 0 ? rc : bulk_run(c, v, err);
}

#define FIELD(name) offsetof(struct bulk_values, name)
static const struct cmd_option options[] = {
    {"in", 'i', CMD_DURATION, FIELD(in_ms), "D", NULL, 0},
    {"at", 'a', CMD_INSTANT, FIELD(at), "TIME", NULL, 0},
    {"key", 'k', CMD_TEXT, FIELD(key), "KEY", NULL, 0},
    {"key-conflict", 0, CMD_CHOICE, FIELD(on_conflict), "WHAT", conflict_names, 0},
    {"debounce", 0, CMD_FLAG, FIELD(debounce), NULL, NULL, 0},
    {"max-attempts", 0, CMD_COUNT, FIELD(max_attempts), "N", NULL, 1},
    {"priority", 0, CMD_CHOICE, FIELD(level), "P", task_level_names, 0},
    {"expires", 0, CMD_DURATION, FIELD(expires_ms), "D", NULL, 0},
    {"expires-at", 0, CMD_INSTANT, FIELD(expires_at), "TIME", NULL, 0},
    {"attempted", 0, CMD_COUNT, FIELD(attempted), "N", NULL, 1},
    {"from", 'f', CMD_TEXT, FIELD(from), "FILE", NULL, 0},
    {"format", 0, CMD_CHOICE, FIELD(format), "FORMAT", bulk_line_format_names, 0},
    {"skip", 0, CMD_COUNT, FIELD(skip), "N", NULL, 0},
    {"over", 0, CMD_DURATION, FIELD(over_ms), "D", NULL, 0},
    CMD_RETRY_FOR(FIELD(retry_for_ms)),
    {"dry-run", 0, CMD_FLAG, FIELD(dry_run), NULL, NULL, 0},
    {"sql", 0, CMD_FLAG, FIELD(sql), NULL, NULL, 0},
};

const struct cmd cmd_add = {
    .name = "add",
    CMD_OPTIONS(options, bulk_values),
    .exclusive = "in at, expires expires-at, sql dry-run",
    .requires = "skip from, format from, over from",
    .max_operands = 2,
    .level = CMD_NOTHING,
    .run = run,
};
