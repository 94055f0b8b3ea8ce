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
    BUF_LOCAL struct buf sql = BUF_INIT;

    if (!act)
        return 0;
    buf_str(
        &sql,
        "INSERT INTO dq_event (token, step, event_time, actor, verb, arguments, tag, task_id, ids, tasks) SELECT ");
    sql_put_token(&sql, act->token);
    buf_str(&sql, ",COALESCE(MAX(step) + 1,0),UTC_TIMESTAMP(3),");
    db_put_text(&sql, act->actor);
    buf_chr(&sql, ',');
    db_put_text(&sql, act->verb);
    buf_str(&sql, ",IF(MAX(step) IS NULL,");
    db_put_text(&sql, act->arguments);
    buf_str(&sql, ",NULL),");
    if (act->tag)
        sql_put_tag(&sql, act->tag);
    else
        buf_str(&sql, "NULL");
    buf_printf(&sql, ",NULLIF(%" PRIu64 ",0),", act->task_id);
    put_ids(&sql, refs, act->task_id ? 0 : tasks);
    buf_printf(&sql, ",%" PRIu64 " FROM dq_event WHERE token = ", tasks);
    sql_put_token(&sql, act->token);
    return db_exec(db, &sql, NULL, err);
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
    int rc = db_first(db, &sql, COLUMNS_ONE, take_digest, ret, err);
    return rc < 0 ? rc : 0;
}

/* The tokens of these rows are made of the dqd's own. */
int event_store_add_own(struct db *db, const struct claim_owner *owner, const char *verb,
                        int64_t which, const char *arguments, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT, actor = BUF_INIT;

    buf_printf(&actor, "dqd@%.200s", owner->host);
    buf_str(
        &sql,
        "INSERT IGNORE INTO dq_event (token, event_time, actor, verb, arguments) VALUES (UNHEX(LEFT(SHA2(CONCAT(");
    sql_put_token(&sql, owner->token);
    buf_printf(&sql, ", '%s%" PRId64 "'), 256), 32)), UTC_TIMESTAMP(3), ", verb, which);
    db_put_text(&sql, actor.data);
    buf_printf(&sql, ", '%s', ", verb);
    db_put_text(&sql, arguments);
    buf_chr(&sql, ')');
    return db_exec(db, &sql, NULL, err);
}

int event_store_add_lost(struct db *db, const struct claim_owner *owner, uint64_t *ret_count,
                         struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(
        &sql,
        "INSERT IGNORE INTO dq_event (token, event_time, actor, verb, arguments)"
        " SELECT UNHEX(LEFT(SHA2(CONCAT(token, 'dqd-lost', last_seen), 256), 32)), UTC_TIMESTAMP(3),"
        " LEFT(CONCAT('dqd@', host), 205), 'dqd-lost',"
        " CONCAT('pid ', pid, ', ', mode, ', silent since ', last_seen, ' UTC') FROM dq_poller"
        " WHERE last_seen <= UTC_TIMESTAMP(3) - INTERVAL (stale_after * 1000) MICROSECOND"
        " AND next_pass IS NULL AND token <> ");
    sql_put_token(&sql, owner->token);
    return db_exec(db, &sql, ret_count, err);
}

#define COLUMN_ROW(...) COLUMN_UNSHOWN(event_row, __VA_ARGS__),
static const struct column columns[] = {EVENT_STORE_COLUMNS(COLUMN_ROW)
                                            EVENT_STORE_MORE(COLUMN_ROW)};
static const struct field_table table = FIELD_TABLE(event_row, columns);

int event_store_list(struct db *db, bool by_procedure, int64_t since_at, int64_t before_at,
                     size_t most, struct event_row **ret, size_t *ret_count, int64_t *ret_left_at,
                     struct err *err)
{
    BUF_LOCAL struct buf tail = BUF_INIT;

    buf_printf(&tail,
               "FROM dq_event e FORCE INDEX (event_time) WHERE by_procedure = %d AND step = 0"
               " AND event_time >= ",
               by_procedure);
    db_put_time(&tail, since_at);
    buf_str(&tail, " AND event_time < ");
    db_put_time(&tail, before_at);
    buf_printf(&tail, " ORDER BY event_time DESC, token DESC LIMIT %zu", most + 1);
    int rc = field_list(db, &table, tail.data, ret, ret_count, err);
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
    BUF_LOCAL struct buf tail = BUF_INIT;

    buf_str(&tail, "FROM (");
    for (int several = 0; several < 2; several++) {
        buf_printf(&tail, "%sSELECT * FROM dq_event FORCE INDEX (task) WHERE task_id ",
                   several ? " UNION ALL " : "");
        buf_printf(&tail, several ? "IS NULL AND FIND_IN_SET(%" PRIu64 ", ids)" : "= %" PRIu64,
                   task_id);
        buf_str(&tail, " AND event_time >= ");
        db_put_time(&tail, since_at);
    }
    buf_str(&tail, ") e ORDER BY event_time, token, step");
    return field_list(db, &table, tail.data, ret, ret_count, err);
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
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT 1 FROM dq_event FORCE INDEX (event_time) WHERE by_procedure = 0"
               " AND verb = '%s' AND event_time >= ",
               verb);
    db_put_time(&sql, since_at);
    buf_str(&sql, " LIMIT 1");
    return db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
}

/* Most of the time none is that old, and nothing is written. */
int event_store_expire(struct db *db, bool by_procedure, int64_t age_ms, size_t limit,
                       size_t *ret_deleted, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT, where = BUF_INIT;
    uint64_t rows = 0;

    buf_printf(&where, " FROM dq_event WHERE by_procedure = %d AND event_time < ", by_procedure);
    sql_put_from_now(&where, -age_ms);
    buf_printf(&sql, "SELECT 1%s LIMIT 1", where.data);
    int rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
    if (rc == 1) {
        buf_reset(&sql);
        buf_printf(&sql, "DELETE%s ORDER BY event_time LIMIT %zu", where.data, limit);
        rc = db_exec(db, &sql, &rows, err);
    }
    if (rc == 0)
        *ret_deleted = (size_t)rows;
    return rc;
}
