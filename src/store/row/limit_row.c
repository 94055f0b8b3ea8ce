/*
 * limit_row.c - see limit_row.h.
 */
#include "store/row/limit_row.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "store/row/field.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define ROW(sql, type, field) COLUMN(limit_row, sql, NULL, type, field, 0, 0, NULL, "")
static const struct column columns[] = {
    ROW("g.name", NAME, name),
    ROW("g.version", U64, version),
    ROW("g.running", U32, limit.running),
    ROW("g.rate", U32, limit.rate.count),
    ROW("g.rate_period", MS, limit.rate.period_ms),
    ROW("COALESCE(g.burst, 1)", U32, limit.rate.burst),
    ROW("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', g.next_at)", AHEAD, limit.next_us),
    ROW("g.rate_full", BOOL, limit.rate_full),
    ROW("g.hours", TEXT, hours_text),
    ROW("g.reason", TEXT, reason),
    ROW("g.actor", TEXT, actor),
    ROW("g.paused_until", UNTIL, limit.paused_until_at),
    ROW("g.paused_by", TEXT, paused_by),
    ROW("g.pause_reason", TEXT, pause_reason),
    ROW("g.held_until", TIME, limit.held_until_at),
    ROW("g.hold_reason", TEXT, hold_reason),
    ROW("g.breaker", U32, limit.breaker),
    ROW("g.pattern IS NOT NULL", BOOL, is_pattern),
    ROW(LIMIT_ROW_STRICT("g."), BOOL, is_strict),
    ROW("g.update_time", TIME, update_at),
    ROW("UTC_TIMESTAMP(3)", TIME, now_at),
};
static const struct field_table table = FIELD_TABLE(limit_row, columns);
const unsigned limit_row_columns = MEM_COUNT(columns) + 1;

void limit_row_put_select(struct buf *sql, const char *running)
{
    buf_str(sql, "SELECT ");
    field_put_names(sql, "", columns, table.count);
    buf_printf(sql, ", %s FROM dq_limit g", running ? running : "0");
}

/* A claim reads a row under a lock: hours are kept for a while, as the files of zones may change,
 * each at the place of its hash. */
#define HOURS_KEPT_US INT64_C(60000000)
static struct kept {
    char *text;
    struct hours *hours;
    int64_t until_us;
} kept_hours[64];

static int parse_hours(const char *text, struct hours **ret, struct err *err)
{
    struct kept *kept =
        &kept_hours[text_hash(TEXT_HASH_INIT, text, strlen(text)) % MEM_COUNT(kept_hours)];
    if (!kept->text || when_steady_us() > kept->until_us || strcmp(kept->text, text) != 0) {
        struct hours *fresh;
        int rc = hours_parse(text, NULL, &fresh, err);
        if (rc)
            return rc;
        hours_free(kept->hours);
        free(kept->text);
        kept->text = mem_strdup(text);
        kept->hours = fresh;
        kept->until_us = when_steady_us() + HOURS_KEPT_US;
    }
    *ret = hours_share(kept->hours);
    return 0;
}

/* What this host cannot read, such as hours of a zone that it does not know, lets nothing start
 * here. */
static void read_strict(struct limit_row *l)
{
    struct rate *rate = &l->limit.rate;
    struct err err;
    int rc = 0;

    if (rate->count && (rc = rate_check(rate, &err)))
        *rate = (struct rate){0};
    l->limit.rate_full = l->limit.rate_full && rate->count;
    if (!rc && l->hours_text)
        rc = parse_hours(l->hours_text, &l->hours, &err);
    l->limit.hours = l->hours;
    if (!rc)
        return;
    l->bad = mem_strdup(err.text);
    l->limit.held_until_at = INT64_MAX;
    l->limit.hold_reason = l->bad;
}

void limit_row_read(const struct db_rows *r, struct limit_row *l)
{
    *l = (struct limit_row){.limit = {LIMIT_NONE}};
    field_read_all(r, columns, table.count, l);
    l->running = db_u64(r, limit_row_columns - 1);
    l->limit.reason = l->pause_reason;
    l->limit.hold_reason = l->hold_reason;
    l->now_at = MAX(l->now_at, 0);
    read_strict(l);
}

void limit_row_done(struct limit_row *l)
{
    field_done(&table, l, 1);
    free(l->bad);
    hours_free(l->hours);
    *l = (struct limit_row){.limit = {LIMIT_NONE}};
}
