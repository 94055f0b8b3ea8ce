/*
 * why_store.c - see why_store.h. Invariant: no statement reads more than WHY_STORE_MOST + 1 rows or
 * index entries, however large the table is.
 */
#include "store/ask/why_store.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define TOOK_OF 100

/* Of a tag's tasks in a state: two values. */
#define OF_TAG " FROM dq_task FORCE INDEX (due) WHERE status = ? AND tag = ?"

static int count_before(struct db *db, const struct task *t, struct why_tag *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    sql_put(&sql, "SELECT COUNT(*) FROM (SELECT 1" OF_TAG, SQL_INT(sql_pending(t->level)),
            SQL_TAG(t->tag));
    sql_put_due_beyond(&sql, "", '<', db_put_time, t->expected_at, t->id);
    for (int i = 0; (int)task_levels[i] != t->level; i++) /* of higher ones, all that are due */
        sql_put(&sql,
                " UNION ALL SELECT 1" OF_TAG " AND expected_time <= GREATEST(UTC_TIMESTAMP(3), ?)",
                SQL_INT(sql_pending(task_levels[i])), SQL_TAG(t->tag), SQL_TIME(t->expected_at));
    sql_put(&sql, " LIMIT ?) b", SQL_INT(WHY_STORE_MOST + 1));
    return sql_one(db, &sql, COLUMNS_ONE, sql_take_u64, &ret->before, err);
}

int why_store_running(struct db *db, const char *tag, struct poller_tasks **ret, size_t *ret_count,
                      struct err *err)
{
    BUF_LOCAL struct buf of = BUF_INIT;

    if (tag)
        sql_put(&of, "AND tag = ?", SQL_TAG(tag));
    sql_put(&of, " LIMIT ?", SQL_INT(WHY_STORE_MOST + 1));
    return poller_store_tasks(db, true, "0", of.data, ret, ret_count, err);
}

struct tooks {
    int64_t us[TOOK_OF], sum;
    size_t count;
};

static void add_took(const struct db_rows *r, void *arg)
{
    struct tooks *w = arg;

    if (w->count < TOOK_OF && !db_is_null(r, COLUMNS_ONLY))
        w->sum += w->us[w->count++] = MIN(MAX(db_i64(r, COLUMNS_ONLY, 0), 0), INT64_MAX / TOOK_OF);
}

static int read_took(struct db *db, const char *tag, struct why_tag *ret, struct err *err)
{
    struct tooks w = {.count = 0};
    int rc = sql_all(db, COLUMNS_ONE, add_took, &w, err,
                     "SELECT TIMESTAMPDIFF(MICROSECOND, execution_time, finish_time)" OF_TAG
                     " ORDER BY expected_time DESC LIMIT ?",
                     SQL_INT(TASK_DONE), SQL_TAG(tag), SQL_INT(TOOK_OF));

    if (rc < 0 || !w.count)
        return rc;
    qsort(w.us, w.count, sizeof *w.us, order_times);
    ret->mean_ms = w.sum / (int64_t)w.count / 1000;
    ret->usual_ms = w.us[w.count / 2] / 1000;
    return 0;
}

#define LONGEST_COLUMNS(X) X(LONGEST_ID, "id") X(LONGEST_FROM, "execution_time")
enum { LONGEST_COLUMNS(COLUMNS_NAME) LONGEST_COUNT };

static void take_longest(const struct db_rows *r, void *arg)
{
    struct why_tag *w = arg;

    w->longest_id = db_u64(r, LONGEST_ID);
    w->longest_from_at = db_time(r, LONGEST_FROM);
}

static int read_longest(struct db *db, const char *tag, struct why_tag *ret, struct err *err)
{
    return sql_read(db, LONGEST_COUNT, take_longest, ret, err,
                    "SELECT ? FROM (SELECT id, execution_time" OF_TAG " LIMIT ?) r"
                    " WHERE execution_time IS NOT NULL ORDER BY execution_time LIMIT 1",
                    SQL_PART(COLUMNS_SELECT(LONGEST_COLUMNS)), SQL_INT(TASK_RUNNING), SQL_TAG(tag),
                    SQL_INT(WHY_STORE_MOST + 1));
}

int why_store_read(struct db *db, const struct task *t, struct why_tag *ret, struct err *err)
{
    *ret = (struct why_tag){.mean_ms = -1, .usual_ms = -1, .pause = {TAG_INFO_NONE}};
    int rc = count_before(db, t, ret, err);
    if (rc == 0)
        rc = why_store_running(db, t->tag, &ret->owners, &ret->owner_count, err);
    if (rc == 0)
        rc = read_took(db, t->tag, ret, err);
    if (rc == 0)
        rc = read_longest(db, t->tag, ret, err);
    if (rc == 0)
        rc = limit_store_tag(db, t->tag, &ret->pause, err);
    return rc;
}

void why_store_done(struct why_tag *w)
{
    poller_store_tasks_free(w->owners, w->owner_count);
    limit_store_tag_done(&w->pause);
}

int why_store_first(struct db *db, const char *tag, uint64_t *ret_id, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    for (int level = 0; level < TASK_LEVELS; level++)
        sql_put(&sql,
                "?(SELECT id, expected_time" OF_TAG " ORDER BY " SQL_DUE_ORDER("", "") " LIMIT 1)",
                SQL_PART(level ? " UNION ALL " : "SELECT id FROM ("), SQL_INT(sql_pending(level)),
                SQL_TAG(tag));
    buf_str(&sql, ") f ORDER BY " SQL_DUE_ORDER("", "") " LIMIT 1");
    return db_first(db, &sql, COLUMNS_ONE, sql_take_u64, ret_id, err);
}

int why_store_locked(struct db *db, uint64_t id, struct err *err)
{
    int rc = sql_first(db, COLUMNS_ONE, NULL, NULL, err,
                       "SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE id = ? FOR UPDATE ?",
                       SQL_ID(id), SQL_PART(db_skips_locked(db) ? "SKIP LOCKED" : "NOWAIT"));
    return rc == ERR_LOCKED ? 1 : rc < 0 ? rc : rc == 0;
}

int why_store_limit_locked(struct db *db, const char *name, struct err *err)
{
    int rc = sql_read(db, COLUMNS_ONE, NULL, NULL, err,
                      "SELECT name FROM dq_limit WHERE name = ? FOR UPDATE NOWAIT", SQL_TAG(name));
    return rc == ERR_LOCKED ? 1 : rc;
}

char *why_store_mend_counts(uint64_t id)
{
    return mem_printf("UPDATE dq_task SET version = 0, attempt = 0 WHERE id = %" PRIu64, id);
}

char *why_store_mend_status(uint64_t id)
{
    return mem_printf("UPDATE dq_task SET status = %d WHERE id = %" PRIu64, TASK_PENDING, id);
}
