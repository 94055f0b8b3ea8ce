/*
 * cmd_limit.c - dq limit: how many tasks may start, how fast and in which hours; lists limits.
 */
#include "cli/judge/fleet.h"
#include "cli/line/option.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/show/inert.h"
#include "store/fleet/limit_store.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/zone.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct limit_values {
    int64_t running, burst;
    const char *rate, *hours, *reason;
    bool clear, export;
};

/* --- listing --- */

#define ROW ((const struct limit_row *)row)

OUT_GETTER(rate)
{
    struct buf *b = cell_buffer();
    if (!ROW->limit.rate.count)
        return;
    rate_put(b, &ROW->limit.rate);
    cell_set_text(ret, b->data);
}

OUT_GETTER(burst)
{
    if (ROW->limit.rate.count)
        cell_set_number(ret, ROW->limit.rate.burst);
}

OUT_GETTER(state)
{
    struct buf *b = cell_buffer();
    struct limit l = ROW->limit;
    l.name = NULL;
    l.probed = l.breaker > 0;
    const struct limit_answer a = limit_ask(&l, 0, ROW->now_at, 0);
    limit_put(b, &l, &a, ROW->now_at);
    cell_set_text(ret, b->len ? b->data : "open");
}

/* clang-format off */
#define LIMIT_ROW(name, type, field, max, get, help) COLUMN(limit_row, NULL, name, type, field, max, 0, get, help)
static const struct column columns[] = {
    LIMIT_ROW("limit", NAME, name, COLUMN_NARROW, NULL, ""),
    LIMIT_ROW("running", SOME, limit.running, 0, NULL, ""),
    LIMIT_ROW("rate", TEXT, name, 0, get_rate, ""),
    LIMIT_ROW("burst", U32, limit.rate.burst, 0, get_burst, ""),
    LIMIT_ROW("hours", TEXT, hours_text, 60, NULL, ""),
    LIMIT_ROW("state", TEXT, name, 60, get_state, ""),
    LIMIT_ROW("paused_until", UNTIL, limit.paused_until_at, 0, NULL, ""),
    LIMIT_ROW("paused_by", TEXT, paused_by, 0, NULL, ""),
    LIMIT_ROW("pause_reason", TEXT, pause_reason, 60, NULL, ""),
    LIMIT_ROW("held_until", UNTIL, limit.held_until_at, 0, NULL, ""),
    LIMIT_ROW("hold_reason", TEXT, hold_reason, 60, NULL, ""),
    LIMIT_ROW("breaker", SOME, limit.breaker, 0, NULL, ""),
    LIMIT_ROW("reason", TEXT, reason, 60, NULL, ""),
    LIMIT_ROW("actor", TEXT, actor, 0, NULL, ""),
    LIMIT_ROW("updated", TIME, update_at, 0, NULL, ""),
};
/* clang-format on */

static int list(struct cmd_context *c, const char *name, struct err *err)
{
    struct limit_row *rows = NULL;
    size_t count = 0;
    int rc = limit_store_list(c->db, name, false, &rows, &count, err);
    if (rc == 0 && count == 0 && name)
        return err_set(err, ERR_NOT_FOUND, "there is no limit of the name %s", name);
    if (rc < 0)
        return rc;
    if (count)
        c->style.cell.now_at = rows[0].now_at;
    out_all(&c->style,
            OUT_OF(columns, "limit,running,rate,burst,hours,state,reason", "reason,burst,hours"),
            NULL, rows, sizeof *rows, count);
    rc = out_flush(err);
    limit_store_free(rows, count);
    if (rc == 0 && count == 0)
        cmd_note(c, "there is no limit");
    return rc;
}

/* As a command of a shell, which makes the limit what it is here; nothing for a mere pause. */
static void put_command(struct buf *b, const struct limit_row *l)
{
    BUF_LOCAL struct buf rate = BUF_INIT;
    if (l->limit.rate.count)
        rate_put(&rate, &l->limit.rate);
    struct limit_values v = {.running = l->limit.running ? (int64_t)l->limit.running : -1,
                             .rate = rate.data,
                             .burst = rate.data ? (int64_t)l->limit.rate.burst : -1,
                             .hours = l->hours_text,
                             .reason = l->reason};
    if (v.running < 0 && !v.rate && !v.hours)
        return;
    buf_str(b, "dq limit ");
    text_shell_word(b, l->name);
    buf_str(b, " --clear");
    option_put_given(b, &(const struct cmd_context){.cmd = &cmd_limit, .values = &v}, true);
    buf_chr(b, '\n');
}

static int export(struct cmd_context *c, const char *name, struct err *err)
{
    struct limit_row *rows = NULL;
    size_t count = 0;
    struct buf b = BUF_INIT;
    int rc = limit_store_list(c->db, name, false, &rows, &count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        put_command(&b, &rows[i]);
    limit_store_free(rows, count);
    inert_take(&b);
    return rc;
}

/* --- setting --- */

static int read_rate(const struct limit_values *v, struct rate *ret, struct err *err)
{
    if (!v->rate)
        return v->burst < 0 ? 0 : err_set(err, ERR_USAGE, "--burst needs --rate");
    int rc = rate_parse(v->rate, ret, err);
    if (rc == 0 && v->burst >= 0)
        rc = rate_set_burst(ret, v->burst, err);
    return rc;
}

/* In their canonical form. */
static int read_hours(const struct limit_values *v, struct buf *ret, struct err *err)
{
    MEM_LOCAL char *zone = zone_local_name();
    struct hours *hours;
    int rc = v->hours ? hours_parse(v->hours, zone, &hours, err) : 0;
    if (rc < 0 || !v->hours)
        return rc;
    hours_put(ret, hours, "\n");
    hours_free(hours);
    return 0;
}

/* A name that no tag and no handler has limits nothing yet. */
static void note_use(struct cmd_context *c, const char *name)
{
    LOCAL_BY(fleet_done) struct fleet f = {0};
    struct err ignored;
    if (fleet_load(c->db, &f, &ignored) == 0 && !fleet_uses_limit(&f, name))
        cmd_note(c, "no handler of a live dqd serves a tag %s or has limit: %s", name, name);
}

static int set(struct cmd_context *c, const struct limit_values *v, const char *name,
               struct err *err)
{
    BUF_LOCAL struct buf hours = BUF_INIT;
    struct limit_set change = {.clear = v->clear, .running = v->running, .reason = v->reason};
    int rc = read_rate(v, &change.rate, err);
    if (rc == 0)
        rc = read_hours(v, &hours, err);
    if (rc == 0)
        rc = poller_store_check_knows(c->db, POLLER_KNOWS_LIMITS, err);
    if (rc < 0)
        return rc;
    change.hours = hours.data;
    LOCAL_BY(act_done) struct act act = act_of(c, name, name);
    rc = limit_store_set(c->db, &act.event, &change, err);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "there is nothing to clear: %s has no limit", name);
    if (rc < 0)
        return rc;
    cmd_wake_rules(c);
    cmd_note(c, "limit %s is %s from the next claim on; handlers that run continue", name,
             v->clear && v->running < 0 && !v->rate && !v->hours ? "cleared" : "set");
    note_use(c, name);
    return 0;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct limit_values *v = c->values;
    const char *name = c->operand_count ? c->operands[0] : NULL;
    bool sets = v->running >= 0 || v->rate || v->hours || v->clear || v->burst >= 0;
    size_t chars;
    if (!sets && v->reason)
        return err_set(err, ERR_USAGE, "--reason needs something to set");
    if (v->export && (sets || v->reason))
        return err_set(err, ERR_USAGE, "--export sets nothing: leave the other options out");
    if (!sets)
        return v->export ? export(c, name, err) : list(c, name, err);
    if (!name)
        return err_set(err, ERR_USAGE, "missing argument: dq limit NAME --running N, for example");
    if (strpbrk(name, "*?"))
        return err_set(
            err, ERR_USAGE,
            "a limit has one name: give the handlers of these tags limit: NAME; dq pause "
            "pauses all tags that match");
    if (task_check_tag(name, strlen(name), err) != 0)
        return ERR_DATA;
    if (v->reason && (!json_utf8_valid(v->reason, strlen(v->reason), &chars, NULL) || chars > 255))
        return err_set(err, ERR_DATA, "--reason: at most 255 characters of UTF-8");
    return set(c, v, name, err);
}

#define FIELD(name) offsetof(struct limit_values, name)
static const struct cmd_option options[] = {
    {"running", 0, CMD_COUNT, FIELD(running), "N", NULL, 0},
    {"rate", 0, CMD_TEXT, FIELD(rate), "N/PERIOD", NULL, 0},
    {"burst", 0, CMD_COUNT, FIELD(burst), "N", NULL, 0},
    {"hours", 0, CMD_TEXTS, FIELD(hours), "WINDOW", NULL, 0},
    {"clear", 0, CMD_FLAG, FIELD(clear), NULL, NULL, 0},
    {"reason", 0, CMD_TEXT, FIELD(reason), "TEXT", NULL, 0},
    {"export", 0, CMD_FLAG, FIELD(export), NULL, NULL, 0},
};

const struct cmd cmd_limit = {
    .name = "limit",
    CMD_OPTIONS(options, limit_values),
    .max_operands = 1,
    .run = run,
};
