/*
 * peek_store.c - what is waiting: when the next task of each tag is due.
 *
 * Invariant: nothing here locks a row.
 */
#include "store/peek_store.h"
#include "base/mem.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdlib.h>

static void peek_reset(struct claim_peek *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->tags[i].tag);
    p->count = 0;
    p->now_us = 0;
}

void peek_store_done(struct claim_peek *p)
{
    peek_reset(p);
    free(p->tags);
    *p = (struct claim_peek){.now_us = 0};
}

static void peek_add(struct claim_peek *p, const struct db_rows *r)
{
    if (p->count == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 16;
        p->tags = mem_resize(p->tags, p->cap, sizeof *p->tags);
    }
    p->tags[p->count++] = (struct claim_peek_tag){sql_dup_tag(r, 2), sql_due(r, 3)};
}

static int read_peek(struct db *db, const struct buf *sql, unsigned columns, struct claim_peek *p, uint64_t *id, struct err *err)
{
    struct db_rows *rows = NULL;

    int rc = db_query(db, sql, columns, false, &rows, err);
    if (rc == 0)
        peek_reset(p);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        p->now_us = sql_now_us(rows);
        peek_add(p, rows);
        if (id && db_u64(rows, 4) > *id)
            *id = db_u64(rows, 4);
        rc = 0;
    }
    db_rows_free(rows);
    return rc;
}

/* The condition as a range and the GROUP BY of both columns make it a loose index scan: one read a tag, however many tasks there
 * are. (`status = 0` would be a plain scan of all that is pending.) Without a join, for this is what an idle dqd asks. MariaDB
 * takes the limit as a setting, MySQL as a hint; each reads the other's as a comment. */
int peek_store_all(struct db *db, int64_t limit_ms, struct claim_peek *p, struct err *err)
{
    struct buf sql = BUF_INIT;

    if (limit_ms)
        buf_printf(&sql, "/*M! SET STATEMENT max_statement_time = %" PRId64 ".%03d FOR */ ", limit_ms / 1000,
                   (int)(limit_ms % 1000));
    buf_str(&sql, "SELECT ");
    if (limit_ms)
        buf_printf(&sql, "/*+ MAX_EXECUTION_TIME(%" PRId64 ") */ ", limit_ms);
    buf_printf(&sql,
               SQL_NOW ", tag, MIN(expected_time) FROM dq_task FORCE INDEX (due) WHERE status > %d AND status < %d"
                       " GROUP BY status, tag",
               TASK_PENDING - 1, TASK_PENDING + 1);
    int rc = read_peek(db, &sql, 4, p, NULL, err);
    buf_done(&sql);
    return rc;
}

int peek_store_news(struct db *db, uint64_t *id, struct claim_peek *p, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT " SQL_NOW ", tag, MIN(expected_time), MAX(id) FROM (SELECT id, status, tag, expected_time FROM dq_task"
               " FORCE INDEX (PRIMARY) WHERE id > %" PRIu64 " ORDER BY id DESC LIMIT %d) n WHERE status = %d GROUP BY tag",
               *id, CLAIM_NEWS_MOST, TASK_PENDING);
    int rc = read_peek(db, &sql, 5, p, id, err);
    buf_done(&sql);
    return rc;
}

/* Two ranges of the index, which has the id behind its last column. */
void peek_store_put_floor(struct buf *sql, const struct claim_floor *floor)
{
    if (floor->at <= 0) /* not known, or below all that dq stores: applications store zero dates */
        return;
    buf_str(sql, floor->id ? " AND (c.expected_time > " : " AND c.expected_time >= ");
    db_put_time(sql, floor->at);
    if (floor->id) {
        buf_str(sql, " OR c.expected_time = ");
        db_put_time(sql, floor->at);
        buf_printf(sql, " AND c.id > %" PRIu64 ")", floor->id);
    }
}

int peek_store_next(struct db *db, const char *tag, const struct claim_floor *floor, int64_t *ret_now_us, int64_t *ret_next_at,
                    struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    int64_t now_us = 0, next_at = TASK_TIME_NONE;

    buf_printf(&sql, "SELECT " SQL_NOW ", c.expected_time FROM dq_task c FORCE INDEX (due) WHERE c.status = %d AND c.tag = ",
               TASK_PENDING);
    db_put_text(&sql, tag);
    peek_store_put_floor(&sql, floor);
    buf_str(&sql, " ORDER BY c.expected_time, c.id LIMIT 1");
    int rc = db_query(db, &sql, 3, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        now_us = sql_now_us(rows);
        next_at = sql_due(rows, 2);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    if (rc == 0) {
        *ret_now_us = now_us;
        *ret_next_at = next_at;
    }
    return rc;
}
