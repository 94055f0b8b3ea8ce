/*
 * peek_store.c - what is pending: when the next task of each tag is due.
 *
 * Invariant: nothing here locks a row.
 */
#include "store/work/peek_store.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>

void peek_store_done(struct peek *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->tags[i].tag);
    free(p->tags);
    *p = (struct peek){.now_us = 0};
}

/* clang-format off */
#define PEEK_COLUMNS(X)      \
    SQL_NOW(X, PEEK_NOW)     \
    X(PEEK_STATUS, "status") \
    X(PEEK_TAG, "tag")       \
    X(PEEK_NEXT, "MIN(expected_time)")
/* clang-format on */
#define NEWS_COLUMNS(X) PEEK_COLUMNS(X) X(NEWS_ID, "MAX(id)")
#define NEXT_COLUMNS(X)                                                                            \
    SQL_NOW(X, NEXT_NOW) X(NEXT_STATUS, "c.status") X(NEXT_DUE, "c.expected_time")
enum { NEWS_COLUMNS(COLUMNS_NAME) NEWS_COUNT, PEEK_COUNT = NEWS_ID };
enum { NEXT_COLUMNS(COLUMNS_NAME) NEXT_COUNT };

/* The contents of a result. with_id: its rows have a greatest id. */
struct answer {
    struct peek peek;
    bool with_id;
    uint64_t id;
};

static void take_tag(const struct db_rows *r, void *arg)
{
    struct answer *a = arg;
    struct peek *p = &a->peek;

    MEM_ROOM(p->tags, p->count, p->cap);
    p->now_us = sql_now_us(r, PEEK_NOW);
    p->tags[p->count++] = (struct peek_tag){sql_dup_tag(r, PEEK_TAG), sql_due(r, PEEK_NEXT),
                                            sql_level(r, PEEK_STATUS)};
    if (a->with_id && db_u64(r, NEWS_ID) > a->id)
        a->id = db_u64(r, NEWS_ID);
}

/* id NULL: the result has none. */
static int read_peek(struct db *db, const struct buf *sql, unsigned columns, struct peek *p,
                     uint64_t *id, struct err *err)
{
    struct answer a = {.with_id = id, .id = id ? *id : 0};

    int rc = db_all(db, sql, columns, take_tag, &a, err);
    if (rc < 0) {
        peek_store_done(&a.peek);
        return rc;
    }
    peek_store_done(p);
    *p = a.peek;
    if (id)
        *id = a.id;
    return 0;
}

/* Several values of status, and grouping by both columns, make it a loose index scan: one read per
 * tag and level, however many tasks there are. (One value would scan all its entries.) It has no
 * join, because this is the statement of an idle dqd. */
void peek_store_put_all(struct buf *sql, int64_t limit_ms)
{
    sql_put_select_within(sql, limit_ms);
    buf_printf(
        sql, "%s FROM dq_task FORCE INDEX (due) WHERE status " SQL_PENDING " GROUP BY status, tag",
        COLUMNS_SELECT(PEEK_COLUMNS));
}

int peek_store_all(struct db *db, int64_t limit_ms, struct peek *p, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    peek_store_put_all(&sql, limit_ms);
    return read_peek(db, &sql, PEEK_COUNT, p, NULL, err);
}

int peek_store_news(struct db *db, uint64_t *id, struct peek *p, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT %s FROM (SELECT id, status, tag, expected_time FROM dq_task"
               " FORCE INDEX (PRIMARY) WHERE id > %" PRIu64
               " ORDER BY id DESC LIMIT %d) n WHERE status " SQL_PENDING " GROUP BY status, tag",
               COLUMNS_SELECT(NEWS_COLUMNS), *id, PEEK_NEWS_MOST);
    return read_peek(db, &sql, NEWS_COUNT, p, id, err);
}

void peek_store_put_floor(struct buf *sql, const struct peek_floor *floor)
{
    if (floor->at <= 0) /* unknown, or below all times of dq: applications may store zero dates */
        return;
    sql_put_due_beyond(sql, "c.", '>', db_put_time, floor->at, floor->id);
}

struct next {
    int64_t now_us, *at;
};

static void take_next(const struct db_rows *r, void *arg)
{
    struct next *next = arg;

    next->now_us = sql_now_us(r, NEXT_NOW);
    next->at[sql_level(r, NEXT_STATUS)] = sql_due(r, NEXT_DUE);
}

void peek_store_put_next(struct buf *sql, const char *tag,
                         const struct peek_floor floor[TASK_LEVELS])
{
    for (int level = 0; level < TASK_LEVELS; level++) {
        sql_put(sql, "?(SELECT ? FROM dq_task c FORCE INDEX (due) WHERE c.status = ? AND c.tag = ?",
                SQL_PART(level ? " UNION ALL " : NULL), SQL_PART(COLUMNS_SELECT(NEXT_COLUMNS)),
                SQL_INT(sql_pending(level)), SQL_TEXT(tag));
        peek_store_put_floor(sql, &floor[level]);
        buf_str(sql, " ORDER BY " SQL_DUE_ORDER("c.", "") " LIMIT 1)");
    }
}

int peek_store_next(struct db *db, const char *tag, const struct peek_floor floor[TASK_LEVELS],
                    int64_t *ret_now_us, int64_t ret_next_at[TASK_LEVELS], struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct next next = {0, ret_next_at};

    for (int level = 0; level < TASK_LEVELS; level++)
        ret_next_at[level] = TASK_TIME_NONE;
    peek_store_put_next(&sql, tag, floor);
    int rc = db_all(db, &sql, NEXT_COUNT, take_next, &next, err);
    *ret_now_us = next.now_us;
    return rc;
}
