/*
 * limit_row.c - see limit_row.h.
 */
#include "store/row/limit_row.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "store/db/columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

static char *text_or_null(const struct db_rows *r, unsigned col)
{
    return db_is_null(r, col) ? NULL : mem_strdup(db_string(r, col));
}

/* clang-format off */
#define LIMIT_COLUMNS(X)                                                                           \
    X(NAME, "g.name", l->name = mem_strdup(db_string(r, NAME)))                                    \
    X(CHANGES, "g.version", l->version = db_u64(r, CHANGES))                                       \
    X(RUNNING, "g.running", l->limit.running = (uint32_t)db_u64(r, RUNNING))                       \
    X(RATE, "g.rate", l->limit.rate.count = (uint32_t)db_u64(r, RATE))                             \
    X(PERIOD, "g.rate_period", l->limit.rate.period_ms = db_i64(r, PERIOD, 0))                     \
    X(BURST, "g.burst", l->limit.rate.burst = (uint32_t)db_i64(r, BURST, 1))                       \
    X(NEXT, "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', g.next_at)",                                 \
      l->limit.next_us = db_i64(r, NEXT, INT64_MIN))                                               \
    X(FULL, "g.rate_full", l->limit.rate_full = db_u64(r, FULL) == 1)                              \
    X(HOURS, "g.hours", l->hours_text = text_or_null(r, HOURS))                                    \
    X(REASON, "g.reason", l->reason = text_or_null(r, REASON))                                     \
    X(ACTOR, "g.actor", l->actor = text_or_null(r, ACTOR))                                         \
    X(PAUSED, "g.paused_until", l->limit.paused_until_at = db_time(r, PAUSED))                     \
    X(PAUSED_BY, "g.paused_by", l->paused_by = text_or_null(r, PAUSED_BY))                         \
    X(PAUSE_REASON, "g.pause_reason", l->pause_reason = text_or_null(r, PAUSE_REASON))             \
    X(HELD, "g.held_until", l->limit.held_until_at = db_time(r, HELD))                             \
    X(HOLD_REASON, "g.hold_reason", l->hold_reason = text_or_null(r, HOLD_REASON))                 \
    X(BREAKER, "g.breaker", l->limit.breaker = (uint32_t)db_u64(r, BREAKER))                       \
    X(PATTERN, "g.pattern IS NOT NULL", l->is_pattern = db_u64(r, PATTERN) == 1)                   \
    X(STRICT, LIMIT_ROW_STRICT("g."), l->is_strict = db_u64(r, STRICT) == 1)                       \
    X(UPDATED, "g.update_time", l->update_at = db_time(r, UPDATED))                                \
    X(NOW, "UTC_TIMESTAMP(3)", l->now_at = db_time(r, NOW))
/* clang-format on */
enum { LIMIT_COLUMNS(COLUMNS_NAME) MORE, COUNT };
const unsigned limit_row_columns = COUNT;
#define TAKE(name, text, statement) statement;

void limit_row_put_select(struct buf *sql, const char *more)
{
    buf_printf(sql, "SELECT %s, %s FROM dq_limit g", COLUMNS_SELECT(LIMIT_COLUMNS),
               more ? more : "NULL");
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
    LIMIT_COLUMNS(TAKE)
    if (l->limit.paused_until_at >= WHEN_AT_MAX)
        l->limit.paused_until_at = INT64_MAX;
    l->limit.reason = l->pause_reason;
    l->limit.hold_reason = l->hold_reason;
    l->now_at = MAX(l->now_at, 0);
    read_strict(l);
}

uint64_t limit_row_more(const struct db_rows *r)
{
    return db_u64(r, MORE);
}

void limit_row_done(struct limit_row *l)
{
    free(l->name);
    free(l->reason);
    free(l->actor);
    free(l->paused_by);
    free(l->pause_reason);
    free(l->hold_reason);
    free(l->hours_text);
    free(l->bad);
    hours_free(l->hours);
    *l = (struct limit_row){.limit = {LIMIT_NONE}};
}

void limit_row_put_next(struct buf *sql, int64_t next_us)
{
    buf_printf(sql, "'1970-01-01' + INTERVAL %" PRId64 " MICROSECOND", next_us);
}
