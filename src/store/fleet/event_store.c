/*
 * event_store.c - what operators did, and when a dqd began and ended.
 *
 * Invariants: what is recorded is never changed. The rows of an act count the tasks that its
 * committed transactions have changed, also if it was killed, or a transaction was repeated because
 * its answer was lost.
 */
#include "store/fleet/event_store.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/field.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

static void put_ids(struct buf *sql, const struct claim_ref *refs, uint64_t count)
{
    if (!refs || count == 0) {
        buf_str(sql, "NULL");
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        buf_printf(sql, i ? ",%" PRIu64 : "'%" PRIu64, refs[i].id);
    buf_chr(sql, '\'');
}

/* The step follows from the rows that are there: those of transactions that were committed. */
int event_store_add(struct db *db, const struct event_act *act, const struct claim_ref *refs,
                    uint64_t tasks, struct err *err)
{
    BUF_LOCAL struct buf ids = BUF_INIT;

    if (!act)
        return 0;
    put_ids(&ids, refs, act->task_id ? 0 : tasks);
    return sql_exec(
        db, NULL, err,
        "INSERT INTO dq_event (token, step, event_time, actor, verb, arguments, tag, task_id, ids, tasks)"
        " SELECT ?,COALESCE(MAX(step) + 1,0),UTC_TIMESTAMP(3),?,?,IF(MAX(step) IS NULL,?,NULL),?,NULLIF(?,0),?,?"
        " FROM dq_event WHERE token = ?",
        SQL_TOKEN(act->token), SQL_TEXT(act->actor), SQL_TEXT(act->verb), SQL_TEXT(act->arguments),
        act->tag ? SQL_TAG(act->tag) : SQL_PART("NULL"), SQL_ID(act->task_id), SQL_PART(ids.data),
        SQL_ID(tasks), SQL_TOKEN(act->token));
}

static void take_digest(const struct db_rows *r, void *arg)
{
    snprintf(arg, EVENT_STORE_DIGEST_SIZE, "%s", db_string(r, COLUMNS_ONLY));
}

int event_store_digest(struct db *db, const char *text, char ret[EVENT_STORE_DIGEST_SIZE],
                       struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT SHA2(");
    db_put_bytes(&sql, text, strlen(text));
    buf_str(&sql, ", 256)");
    return sql_one(db, &sql, COLUMNS_ONE, take_digest, ret, err);
}

/* The tokens of these rows are made of the dqd's own. */
int event_store_add_own(struct db *db, const struct claim_owner *owner, const char *verb,
                        int64_t which, const char *arguments, struct err *err)
{
    BUF_LOCAL struct buf actor = BUF_INIT;

    buf_printf(&actor, "dqd@%.200s", owner->host);
    return sql_exec(
        db, NULL, err,
        "INSERT IGNORE INTO dq_event (token, event_time, actor, verb, arguments)"
        " VALUES (UNHEX(LEFT(SHA2(CONCAT(?, ?, ?), 256), 32)), UTC_TIMESTAMP(3), ?, ?, ?)",
        SQL_TOKEN(owner->token), SQL_TEXT(verb), SQL_INT(which), SQL_TEXT(actor.data),
        SQL_TEXT(verb), SQL_TEXT(arguments));
}

int event_store_add_lost(struct db *db, const struct claim_owner *owner, uint64_t *ret_count,
                         struct err *err)
{
    return sql_exec(
        db, ret_count, err,
        "INSERT IGNORE INTO dq_event (token, event_time, actor, verb, arguments)"
        " SELECT UNHEX(LEFT(SHA2(CONCAT(token, 'dqd-lost', last_seen), 256), 32)), UTC_TIMESTAMP(3),"
        " LEFT(CONCAT('dqd@', host), 205), 'dqd-lost',"
        " CONCAT('pid ', pid, ', ', mode, ', silent since ', last_seen, ' UTC') FROM dq_poller"
        " WHERE last_seen <= UTC_TIMESTAMP(3) - INTERVAL (stale_after * 1000) MICROSECOND"
        " AND next_pass IS NULL AND token <> ?",
        SQL_TOKEN(owner->token));
}

#define COLUMN_ROW(...) COLUMN_UNSHOWN(event_row, __VA_ARGS__),
static const struct column columns[] = {EVENT_STORE_COLUMNS(COLUMN_ROW)
                                            EVENT_STORE_MORE(COLUMN_ROW)};
static const struct field_table table = FIELD_TABLE(event_row, columns);

int event_store_list(struct db *db, bool by_procedure, int64_t since_at, int64_t before_at,
                     size_t most, struct event_row **ret, size_t *ret_count, int64_t *ret_left_at,
                     struct err *err)
{
    int rc = field_list(db, &table, ret, ret_count, err,
                        "FROM dq_event e FORCE INDEX (event_time) WHERE by_procedure = ?"
                        " AND step = 0 AND event_time >= ? AND event_time < ?"
                        " ORDER BY event_time DESC, token DESC LIMIT ?",
                        SQL_INT(by_procedure), SQL_TIME(since_at), SQL_TIME(before_at),
                        SQL_ID(most + 1));
    if (rc < 0)
        return rc;
    bool more = *ret_count > most;
    *ret_left_at = more ? (*ret)[most].at : TASK_TIME_NONE;
    if (more)
        event_store_done(*ret + most, *ret_count - most);
    *ret_count = MIN(*ret_count, most);
    return 0;
}

/* Two ranges of the same index: rows about the task, and those of several tasks. */
int event_store_list_of(struct db *db, uint64_t task_id, int64_t since_at, struct event_row **ret,
                        size_t *ret_count, struct err *err)
{
    return field_list(
        db, &table, ret, ret_count, err,
        "FROM (SELECT * FROM dq_event FORCE INDEX (task) WHERE task_id = ? AND event_time >= ?"
        " UNION ALL SELECT * FROM dq_event FORCE INDEX (task) WHERE task_id IS NULL"
        " AND FIND_IN_SET(?, ids) AND event_time >= ?) e ORDER BY event_time, token, step",
        SQL_ID(task_id), SQL_TIME(since_at), SQL_ID(task_id), SQL_TIME(since_at));
}

void event_store_done(struct event_row *rows, size_t count)
{
    field_done(&table, rows, count);
}

void event_store_free(struct event_row *rows, size_t count)
{
    field_free(&table, rows, count);
}

int event_store_has(struct db *db, const char *verb, int64_t since_at, struct err *err)
{
    return sql_first(db, COLUMNS_ONE, NULL, NULL, err,
                     "SELECT 1 FROM dq_event FORCE INDEX (event_time) WHERE by_procedure = 0"
                     " AND verb = ? AND event_time >= ? LIMIT 1",
                     SQL_TEXT(verb), SQL_TIME(since_at));
}

/* clang-format off */
#define END_COLUMNS(X) \
    X(END_HOST, "SUBSTRING_INDEX(actor, '@', -1)") \
    X(END_AGO, "TIMESTAMPDIFF(MICROSECOND, event_time, UTC_TIMESTAMP(3)) DIV 1000")
/* clang-format on */
enum { END_COLUMNS(COLUMNS_NAME) END_COUNT };

struct last_end {
    char *host;
    int64_t ago_ms;
};

static void take_end(const struct db_rows *r, void *arg)
{
    *(struct last_end *)arg =
        (struct last_end){sql_dup(r, END_HOST, NULL), MAX(db_i64(r, END_AGO, 0), 0)};
}

int event_store_last_end(struct db *db, int64_t within_ms, char **ret_host, int64_t *ret_ago_ms,
                         struct err *err)
{
    struct last_end end;

    int rc = sql_first(db, END_COUNT, take_end, &end, err,
                       "SELECT ? FROM dq_event FORCE INDEX (event_time) WHERE by_procedure = 0"
                       " AND verb = 'dqd-end' AND event_time >= ? ORDER BY event_time DESC LIMIT 1",
                       SQL_PART(COLUMNS_SELECT(END_COLUMNS)), SQL_FROM_NOW(-within_ms));
    if (rc == 1) {
        *ret_host = end.host;
        *ret_ago_ms = end.ago_ms;
    }
    return rc;
}

/* Most of the time none is that old, and nothing is written. */
int event_store_expire(struct db *db, bool by_procedure, int64_t age_ms, size_t limit,
                       size_t *ret_deleted, struct err *err)
{
    BUF_LOCAL struct buf where = BUF_INIT;
    uint64_t rows = 0;

    sql_put(&where, " FROM dq_event WHERE by_procedure = ? AND event_time < ?",
            SQL_INT(by_procedure), SQL_FROM_NOW(-age_ms));
    int rc = sql_first(db, COLUMNS_ONE, NULL, NULL, err, "SELECT 1? LIMIT 1", SQL_PART(where.data));
    if (rc == 1)
        rc = sql_exec(db, &rows, err, "DELETE? ORDER BY event_time LIMIT ?", SQL_PART(where.data),
                      SQL_ID(limit));
    if (rc == 0)
        *ret_deleted = (size_t)rows;
    return rc;
}
