/*
 * claim_limit.c - see claim_limit.h. Invariant: what may start is read under the lock of the row,
 * and what is taken of it is written before that lock ends.
 */
#include "store/work/claim_limit.h"
#include "base/hours.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_session.h"
#include "store/fleet/poller_store.h"
#include "store/row/sql.h"

#include <sys/param.h>

static const char *name_of(const struct claim_ask *ask)
{
    return ask->limit_name ? ask->limit_name : ask->tag;
}

int claim_limit_lock(struct db *db, const struct claim_ask *ask, bool careful, struct err *err)
{
    int rc = 0;

    if (careful && db_skips_locked(db))
        rc = sql_read(db, COLUMNS_ONE, NULL, NULL, err,
                      "SELECT name FROM dq_limit WHERE name = ? FOR UPDATE NOWAIT",
                      SQL_TEXT(name_of(ask)));
    if (rc == 0)
        rc = sql_exec(db, NULL, err,
                      "INSERT INTO dq_limit (name) VALUES (?) ON DUPLICATE KEY UPDATE name = name",
                      SQL_TEXT(name_of(ask)));
    if (rc == ERR_LOCKED) {
        db_session_beware(db);
        err_prefix(err, LIMIT_LOCKED_TEXT);
    }
    return rc;
}

/* What runs under a limit of several tags, or one whose breaker has opened: of these, those that
 * began when its rest was over. */
static int count_running(struct db *db, const struct claim_ask *ask, struct limit_row *row,
                         struct err *err)
{
    BUF_LOCAL struct buf probes = BUF_INIT;
    struct poller_tasks *t = NULL;
    size_t count = 0;

    if (row->limit.breaker) /* which reads the rows, and not only the index */
        sql_put(&probes, "COALESCE(execution_time >= ?, 0)",
                SQL_TIME(MIN(MAX(row->limit.held_until_at, 0), WHEN_AT_MAX)));
    int rc = poller_store_tasks(db, false, probes.len ? probes.data : "0", "", &t, &count, err);
    row->running = 0;
    row->limit.probed = false;
    for (size_t i = 0; i < count; i++) {
        if (!ask->under(ask->under_arg, t[i].tag))
            continue;
        row->running += t[i].tasks;
        row->limit.probed |= t[i].part > 0;
    }
    poller_store_tasks_free(t, count);
    return rc;
}

/* So long before what it has reserved is used up, a claim that takes long is made again. */
#define AGAIN_BEFORE_MS 400

/* When to claim again: as many slots of a rate as the horizon has are reserved together. */
static void see(const struct claim_ask *ask, const struct limit_row *row,
                const struct limit_answer *a, struct claim_seen *saw)
{
    saw->held = a->why;
    saw->full = a->why == LIMIT_RUNNING;
    const int64_t half_ms = ask->horizon_ms / 2;
    const int64_t before_ms = ask->lead_ms ? MIN(half_ms, AGAIN_BEFORE_MS) : half_ms;
    saw->limit_at = a->why == LIMIT_RATE ? MAX(a->again_at - ask->lead_ms - ask->horizon_ms,
                                               row->now_at + ask->horizon_ms - before_ms)
                                         : a->again_at;
    saw->guarded = row->is_strict;
    saw->probing = row->limit.breaker > 0;
    saw->set_back |= row->limit.rate.count &&
                     rate_set_back(&row->limit.rate, row->limit.next_us, row->now_at * 1000);
    saw->paced = row->limit.rate.count || row->limit.hours || row->limit.breaker;
}

static void take_row(const struct db_rows *r, void *arg)
{
    limit_row_read(r, arg);
}

int claim_limit_read(struct db *db, const struct claim_ask *ask, struct limit_row *row,
                     struct claim_seen *saw, uint64_t *ret_may, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT, count = BUF_INIT;

    sql_put(&count, "(SELECT COUNT(*) FROM dq_task FORCE INDEX (due) WHERE status = ? AND tag = ?)",
            SQL_INT(TASK_RUNNING), SQL_TEXT(ask->tag));
    limit_row_put_select(&sql, ask->limit_name ? NULL : count.data);
    sql_put(&sql, " WHERE g.name = ?", SQL_TEXT(name_of(ask)));
    int rc = db_first(db, &sql, limit_row_columns, take_row, row, err);
    row->limit.lead_ms = ask->lead_ms;
    if (!row->limit.running)
        row->limit.running = ask->tag_limit.running;
    if (rc >= 0 && (row->limit.breaker || (ask->limit_name && row->limit.running)))
        rc = count_running(db, ask, row, err);
    if (rc < 0)
        return rc;
    struct limit_answer answer = limit_ask(&row->limit, row->running, row->now_at, ask->horizon_ms);
    see(ask, row, &answer, saw);
    *ret_may = answer.may;
    return 0;
}

static void take_pause(const struct db_rows *r, void *arg)
{
    int64_t *until_at = arg;

    *until_at = MAX(*until_at, db_time(r, COLUMNS_ONLY));
}

int claim_limit_look(struct db *db, const struct claim_ask *ask, bool limited,
                     struct claim_seen *saw, uint64_t *ret_may, struct err *err)
{
    LOCAL_BY(limit_row_done) struct limit_row row = {.limit = {LIMIT_NONE}};
    int64_t until_at = INT64_MIN;

    int rc = sql_all(
        db, COLUMNS_ONE, take_pause, &until_at, err,
        "SELECT g.paused_until FROM dq_limit g WHERE " SQL_PAUSED(
            "g.") " AND g.name = ?"
                  " UNION ALL SELECT g.paused_until FROM dq_limit g FORCE INDEX (pattern) WHERE " SQL_PAUSED(
                      "g.") " AND g.pattern IS NOT NULL AND ?" SQL_LIKE_GLOB,
        SQL_TEXT(ask->tag), SQL_TEXT(ask->tag));
    *ret_may = until_at == INT64_MIN ? UINT64_MAX : 0;
    if (rc == 0 && !*ret_may)
        *saw = (struct claim_seen){.held = LIMIT_PAUSED, .alone = true, .limit_at = until_at};
    else if (rc == 0 && limited)
        rc = claim_limit_read(db, ask, &row, saw, ret_may, err);
    return rc;
}

int claim_limit_reserve(struct db *db, const struct claim_ask *ask, struct limit_row *row,
                        struct task_array *tasks, bool full, struct claim_seen *saw,
                        struct err *err)
{
    struct limit *l = &row->limit;
    const size_t n = tasks->count;
    MEM_LOCAL int64_t *starts = mem_alloc((n + 1) * sizeof *starts);
    const int64_t since_at = rate_since(&l->rate, l->next_us, row->now_at * 1000) / 1000;

    const int64_t from_us = (row->now_at + l->lead_ms) * 1000;
    l->next_us = rate_take(&l->rate, l->next_us, from_us, starts, n);
    for (size_t i = 0; i < n; i++) {
        tasks->items[i].start_at = (starts[i] + 999) / 1000;
        tasks->items[i].late_us = rate_slot_us(&l->rate);
    }
    if (starts[0] <= from_us) /* and the task was due */
        saw->left_ms = row->now_at - MAX(since_at, tasks->items[0].late_from_at);
    struct limit_answer next = limit_ask(l, row->running + n, row->now_at, ask->horizon_ms);
    if (next.why == LIMIT_RATE)
        see(ask, row, &next, saw);
    return sql_exec(db, NULL, err,
                    "UPDATE dq_limit SET next_at = '1970-01-01' + INTERVAL ? MICROSECOND,"
                    " rate_full = ? WHERE name = ?",
                    SQL_INT(l->next_us), SQL_INT(full && next.why == LIMIT_RATE),
                    SQL_TEXT(name_of(ask)));
}

void claim_limit_count(const struct limit_row *row, struct task_array *tasks)
{
    struct limit l = row->limit;
    const bool full = l.rate_full;

    l.rate = (struct rate){0}; /* it has given each a start */
    l.rate_full = false;
    const int64_t since_at = limit_since(&l, row->now_at);
    const int64_t close_at = l.hours ? MIN(hours_next(l.hours, row->now_at), WHEN_AT_MAX) : 0;
    for (size_t i = 0; i < tasks->count; i++) {
        struct task *t = &tasks->items[i];
        const int64_t start_at = full || t->start_at > row->now_at ? t->start_at : 0;
        t->late_from_at = MAX(t->late_from_at, MAX(start_at, since_at));
        t->close_at = close_at;
    }
}
