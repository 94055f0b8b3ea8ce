/*
 * minute_store.c - what each dqd did, by minute and tag. Invariant: a row has one writer, which
 * writes sums, not differences: the same statement twice counts nothing twice.
 */
#include "store/fleet/minute_store.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

void minute_store_free(struct minute_row *rows, size_t count)
{
    for (size_t i = 0; rows && i < count; i++)
        free(rows[i].tag);
    free(rows);
}

/* ---- columns: X(field of struct counts, column, aggregate), then those of the steps */

/* The server adds in floating point, exactly up to 2^53: twice as fast as in DECIMAL, which
 * is what SUM makes of integers. */
#define SUM_OF(name) "CAST(SUM(" name " + 0e0) AS UNSIGNED)"
#define MAX_OF(name) "MAX(" name ")"

/* clang-format off */
#define PLAIN_COLUMNS(X)               \
    X(started, "started", SUM_OF)      \
    X(done, "done", SUM_OF)            \
    X(failed, "failed", SUM_OF)        \
    X(retried, "retried", SUM_OF)      \
    X(excused, "excused", SUM_OF)      \
    X(failures, "failures", SUM_OF)    \
    X(expired, "expired", SUM_OF)      \
    X(ended, "ended", SUM_OF)          \
    X(run_sum_ms, "run_sum", SUM_OF)   \
    X(run_max_ms, "run_max", MAX_OF)   \
    X(late_sum_ms, "late_sum", SUM_OF) \
    X(late_max_ms, "late_max", MAX_OF)
/* clang-format on */
#define PLAIN_AT(field, name, aggregate) AT_##field,
#define PLAIN_NAME(field, name, aggregate) ", " name
#define PLAIN_SUM(field, name, aggregate) ", " aggregate(name)
#define PLAIN_SET(field, name, aggregate) name " = VALUES(" name "), "
#define PLAIN_VALUE(field, name, aggregate) buf_printf(sql, ", %" PRIu64, c->field);
#define PLAIN_READ(field, name, aggregate) c->field = db_u64(r, col + AT_##field);
#define STEP_AT(kind, name, bound) AT_##kind##_##name,
#define STEP_NAME(kind, name, bound) ", " #kind "_" #name
#define STEP_SUM(kind, name, bound) ", " SUM_OF(#kind "_" #name)
#define STEP_SET(kind, name, bound) ", " #kind "_" #name " = VALUES(" #kind "_" #name ")"
#define STEPS(X) COUNTS_STEPS(X, late) COUNTS_STEPS(X, run)
enum { PLAIN_COLUMNS(PLAIN_AT) STEPS(STEP_AT) AT_END };

static void put_counts(struct buf *sql, const struct counts *c)
{
    PLAIN_COLUMNS(PLAIN_VALUE)
    for (size_t i = 0; i < COUNTS_STEP_COUNT; i++)
        buf_printf(sql, ", %" PRIu64, c->late[i]);
    for (size_t i = 0; i < COUNTS_STEP_COUNT; i++)
        buf_printf(sql, ", %" PRIu64, c->run[i]);
}

static void read_counts(const struct db_rows *r, unsigned col, struct counts *c)
{
    PLAIN_COLUMNS(PLAIN_READ)
    for (unsigned i = 0; i < COUNTS_STEP_COUNT; i++) {
        c->late[i] = db_u64(r, col + AT_late_5ms + i);
        c->run[i] = db_u64(r, col + AT_run_5ms + i);
    }
}

/* ---- writing */

int minute_store_put(struct db *db, const struct claim_owner *owner, const struct minute_row *rows,
                     size_t count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "INSERT INTO dq_minute (minute, tag, poller" PLAIN_COLUMNS(PLAIN_NAME)
                      STEPS(STEP_NAME) ") VALUES ");
    for (size_t i = 0; i < count; i++) {
        sql_put(&sql, i ? ", (?, ?, ?" : "(?, ?, ?", SQL_TIME(rows[i].at), SQL_TAG(rows[i].tag),
                SQL_TOKEN(owner->token));
        put_counts(&sql, &rows[i].counts);
        buf_chr(&sql, ')');
    }
    buf_str(&sql, " ON DUPLICATE KEY UPDATE " PLAIN_COLUMNS(
                      PLAIN_SET) "poller = VALUES(poller)" STEPS(STEP_SET));
    return db_exec(db, &sql, NULL, err);
}

/* Whole minutes: all dqds delete the same rows, in the same order. */
int minute_store_expire(struct db *db, int64_t age_ms, size_t limit, bool *ret_more,
                        struct err *err)
{
    int64_t last_at = TASK_TIME_NONE;
    uint64_t rows = 0;
    int rc = sql_first(db, COLUMNS_ONE, sql_take_time, &last_at, err,
                       "SELECT MAX(minute) FROM (SELECT minute FROM dq_minute WHERE minute < ?"
                       " ORDER BY minute LIMIT ?) f",
                       SQL_FROM_NOW(-age_ms), SQL_ID(limit));

    if (rc >= 0 && last_at != TASK_TIME_NONE)
        rc = sql_exec(db, &rows, err, "DELETE FROM dq_minute WHERE minute <= ?", SQL_TIME(last_at));
    if (rc < 0)
        return rc;
    *ret_more = rows >= limit;
    return 0;
}

/* ---- reading */

enum { READ_STEP, READ_TAG, READ_FIRST, READ_COUNTS };

struct reading {
    const struct minute_ask *ask;
    struct minute_answer *to;
    size_t cap;
};

static void take_row(const struct db_rows *r, void *arg)
{
    struct reading *w = arg;
    struct minute_answer *a = w->to;
    int64_t at = a->from_at + (int64_t)(db_u32(r, READ_STEP) * (uint64_t)w->ask->step_ms);
    char *tag = sql_dup_tag(r, READ_TAG);

    if (w->ask->tag_glob && !task_tag_glob(w->ask->tag_glob, tag)) {
        free(tag);
        return;
    }
    MEM_ROOM(a->rows, a->count, w->cap);
    struct minute_row *row = &a->rows[a->count++];
    *row = (struct minute_row){.tag = tag, .at = at, .first_at = db_time(r, READ_FIRST)};
    read_counts(r, READ_COUNTS, &row->counts);
}

static int compare_rows(const void *a, const void *b)
{
    const struct minute_row *x = a, *y = b;

    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : strcmp(x->tag, y->tag);
}

int minute_store_read(struct db *db, const struct minute_ask *ask, struct minute_answer *ret,
                      struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct minute_answer a = {0};
    struct reading w = {.ask = ask, .to = &a};
    int64_t grain_ms = MAX(ask->align_ms, WHEN_MINUTE);
    int rc = db_now(db, &a.now_at, err);

    if (rc == 0 && a.now_at < ask->since_ms)
        rc = db_odd_row(db, err);
    if (rc < 0)
        return rc;
    a.from_at = (a.now_at - ask->since_ms) / grain_ms * grain_ms;
    sql_put(&sql,
            "SELECT TIMESTAMPDIFF(MINUTE, ?, minute) DIV ? AS step, tag, MIN(minute)" PLAIN_COLUMNS(
                PLAIN_SUM) STEPS(STEP_SUM) " FROM dq_minute WHERE minute >= ? GROUP BY step, tag",
            SQL_TIME(a.from_at), SQL_INT(ask->step_ms ? ask->step_ms / WHEN_MINUTE : INT64_MAX),
            SQL_TIME(a.from_at));
    rc = db_all_streamed(db, &sql, READ_COUNTS + AT_END, take_row, &w, err);
    if (rc < 0) {
        minute_store_free(a.rows, a.count);
        return rc;
    }
    if (a.count)
        qsort(a.rows, a.count, sizeof *a.rows, compare_rows);
    *ret = a;
    return 0;
}
