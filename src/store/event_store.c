/*
 * event_store.c - what operators did, and when a dqd began and ended.
 *
 * Invariant: the count of a row is the number of tasks that committed transactions of its act have
 * changed, also if the act was killed, or a transaction was repeated because its answer was lost.
 */
#include "store/event_store.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdlib.h>

static int add_row(struct db *db, const struct event_act *act, uint64_t tasks, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(
        &sql,
        "INSERT INTO dq_event (token, event_time, actor, verb, arguments, tag, task_id, tasks) VALUES (");
    sql_put_token(&sql, act->token);
    buf_str(&sql, ",UTC_TIMESTAMP(3),");
    db_put_text(&sql, act->actor);
    buf_chr(&sql, ',');
    db_put_text(&sql, act->verb);
    buf_chr(&sql, ',');
    db_put_text(&sql, act->arguments);
    buf_chr(&sql, ',');
    if (act->tag)
        sql_put_tag(&sql, act->tag);
    else
        buf_str(&sql, "NULL");
    buf_printf(&sql, ",NULLIF(%" PRIu64 ",0),%" PRIu64 ")", act->task_id, tasks);
    int rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc;
}

/* Two statements: ON DUPLICATE KEY UPDATE would need the right to update every column. */
int event_store_add(struct db *db, struct event_act *act, uint64_t tasks, struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t rows = 0;
    int rc = 0;

    if (!act)
        return 0;
    buf_printf(&sql, "UPDATE dq_event SET tasks = tasks + %" PRIu64 " WHERE token = ", tasks);
    sql_put_token(&sql, act->token);
    if (act->begun)
        rc = db_exec(db, &sql, &rows, err);
    if (rc == 0 && !rows)
        rc = add_row(db, act, tasks, err);
    act->begun = true;
    buf_done(&sql);
    return rc;
}

/* The tokens of these rows are made of the dqd's own. */
int event_store_add_own(struct db *db, const struct claim_owner *owner, const char *verb,
                        const char *arguments, struct err *err)
{
    struct buf sql = BUF_INIT, actor = BUF_INIT;

    buf_printf(&actor, "dqd@%.200s", owner->host);
    buf_str(
        &sql,
        "INSERT IGNORE INTO dq_event (token, event_time, actor, verb, arguments) VALUES (UNHEX(LEFT(SHA2(CONCAT(");
    sql_put_token(&sql, owner->token);
    buf_printf(&sql, ", '%s'), 256), 32)), UTC_TIMESTAMP(3), ", verb);
    db_put_text(&sql, actor.data);
    buf_printf(&sql, ", '%s', ", verb);
    db_put_text(&sql, arguments);
    buf_chr(&sql, ')');
    int rc = db_exec(db, &sql, NULL, err);
    buf_done(&actor);
    buf_done(&sql);
    return rc;
}

int event_store_add_lost(struct db *db, const struct claim_owner *owner, uint64_t *ret_count,
                         struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql,
            "INSERT IGNORE INTO dq_event (token, event_time, actor, verb, arguments)"
            " SELECT UNHEX(LEFT(SHA2(CONCAT(token, 'dqd-lost'), 256), 32)), UTC_TIMESTAMP(3),"
            " LEFT(CONCAT('dqd@', host), 205), 'dqd-lost',"
            " CONCAT('pid ', pid, ', ', mode, ', silent since ', last_seen, ' UTC') FROM dq_poller"
            " WHERE last_seen <= UTC_TIMESTAMP(3) - INTERVAL (stale_after * 1000) MICROSECOND"
            " AND next_pass IS NULL AND token <> ");
    sql_put_token(&sql, owner->token);
    int rc = db_exec(db, &sql, ret_count, err);
    buf_done(&sql);
    return rc;
}

/* clang-format off */
#define EVENT_COLUMNS(X)                   \
    X(EVENT_TOKEN, "token")                \
    X(EVENT_AT, "event_time")              \
    X(EVENT_ACTOR, "actor")                \
    X(EVENT_VERB, "verb")                  \
    X(EVENT_ARGUMENTS, "arguments")        \
    X(EVENT_TAG, "tag")                    \
    X(EVENT_TASK_ID, "task_id")            \
    X(EVENT_TASKS, "tasks")
/* clang-format on */
enum { EVENT_COLUMNS(COLUMNS_NAME) EVENT_COUNT };

struct reading {
    void (*fn)(const struct event_row *row, void *arg);
    void *arg;
    size_t left;
    int64_t left_at; /* of the newest that is left out */
};

static int take_event(const struct db_rows *r, void *arg, struct err *err)
{
    struct reading *w = arg;
    struct event_row row = {.at = db_time(r, EVENT_AT), .tasks = db_u64(r, EVENT_TASKS)};

    (void)err;
    if (w->left == 0) {
        w->left_at = row.at;
        return 1;
    }
    w->left--;
    char *tag = db_is_null(r, EVENT_TAG) ? NULL : sql_dup_tag(r, EVENT_TAG);
    sql_read_token(r, EVENT_TOKEN, row.act.token);
    row.act.actor = db_string(r, EVENT_ACTOR);
    row.act.verb = db_string(r, EVENT_VERB);
    row.act.arguments = db_text(r, EVENT_ARGUMENTS, NULL);
    row.act.tag = tag;
    row.act.task_id = db_u64(r, EVENT_TASK_ID);
    w->fn(&row, w->arg);
    free(tag);
    return 0;
}

int event_store_list(struct db *db, int64_t since_at, int64_t before_at, size_t most,
                     void (*fn)(const struct event_row *row, void *arg), void *arg,
                     int64_t *ret_left_at, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct reading w = {fn, arg, most, TASK_TIME_NONE};

    buf_printf(&sql, "SELECT %s FROM dq_event FORCE INDEX (event_time) WHERE event_time >= ",
               COLUMNS_SELECT(EVENT_COLUMNS));
    db_put_time(&sql, since_at);
    buf_str(&sql, " AND event_time < ");
    db_put_time(&sql, before_at);
    buf_printf(&sql, " ORDER BY event_time DESC, token DESC LIMIT %zu", most + 1);
    int rc = db_each(db, &sql, EVENT_COUNT, take_event, &w, err);
    buf_done(&sql);
    if (rc == 0)
        *ret_left_at = w.left_at;
    return rc;
}

int event_store_has(struct db *db, const char *verb, int64_t since_at, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT 1 FROM dq_event FORCE INDEX (event_time) WHERE verb = '%s'"
               " AND event_time >= ",
               verb);
    db_put_time(&sql, since_at);
    buf_str(&sql, " LIMIT 1");
    int rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
    buf_done(&sql);
    return rc;
}

/* Most of the time none is that old, and nothing is written. */
int event_store_expire(struct db *db, int64_t age_ms, size_t limit, size_t *ret_deleted,
                       struct err *err)
{
    struct buf sql = BUF_INIT, where = BUF_INIT;
    uint64_t rows = 0;

    buf_str(&where, " FROM dq_event WHERE event_time < ");
    sql_put_from_now(&where, -age_ms);
    buf_printf(&sql, "SELECT 1%s LIMIT 1", where.data);
    int rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
    if (rc == 1) {
        buf_reset(&sql);
        buf_printf(&sql, "DELETE%s ORDER BY event_time LIMIT %zu", where.data, limit);
        rc = db_exec(db, &sql, &rows, err);
    }
    buf_done(&where);
    buf_done(&sql);
    if (rc == 0)
        *ret_deleted = (size_t)rows;
    return rc;
}
