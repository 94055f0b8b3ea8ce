/*
 * tag_store.c - tags as operators see them: counts and switches.
 *
 * Invariant: without `exact`, no count reads more than TAG_COUNT_CAP + 1 entries of the index, however many tasks there are.
 */
#include "store/tag_store.h"
#include "base/mem.h"
#include "store/task_sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 100 /* counts in one statement */

struct tags {
    struct tag_info *items;
    size_t count, cap;
};

/* The entry of a tag, made when new. Tags come in the order of the index or of dq_tag, so the last one is mostly right. */
static struct tag_info *tags_get(struct tags *t, const char *tag)
{
    for (size_t i = t->count; i-- > 0;)
        if (!strcmp(t->items[i].tag, tag))
            return &t->items[i];
    if (t->count == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 32;
        t->items = mem_resize(t->items, t->cap, sizeof *t->items);
    }
    t->items[t->count] = (struct tag_info){
        .tag = mem_strdup(tag), .oldest_due_at = TASK_TIME_NONE, .next_at = TASK_TIME_NONE, .paused_until_at = TASK_TIME_NONE};
    return &t->items[t->count++];
}

static int compare_infos(const void *a, const void *b)
{
    const struct tag_info *x = a, *y = b;
    return strcmp(x->tag, y->tag);
}

/* The first column is the clock, in every row. */
static int read_switches(struct db *db, const char *glob, struct tags *t, int64_t *ret_now_at, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_str(&sql, "SELECT UTC_TIMESTAMP(3), g.tag, g.paused_until, g.paused_by, g.pause_reason FROM (SELECT 1) one"
                  " LEFT JOIN dq_tag g ON g.paused_until > UTC_TIMESTAMP(3)");
    int rc = db_query(db, &sql, 5, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        char *tag = db_is_null(rows, 1) ? NULL : sql_dup_tag(rows, 1);
        *ret_now_at = db_time(rows, 0);
        if (tag && (!glob || task_tag_glob(glob, tag))) {
            struct tag_info *i = tags_get(t, tag);
            int64_t until = db_time(rows, 2);
            i->paused_until_at = until >= TAG_PAUSED_FOR_EVER_AT ? INT64_MAX : until;
            i->paused_by = sql_dup(rows, 3, NULL);
            i->pause_reason = sql_dup(rows, 4, NULL);
        }
        free(tag);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

/* Which (status, tag) there are, by a loose index scan, and the earliest time of what is pending. count is 1 where there is a task.
 */
static int read_pairs(struct db *db, const char *glob, struct tags *t, int64_t now_at, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_str(&sql, "SELECT status, tag, MIN(expected_time) FROM dq_task FORCE INDEX (due) GROUP BY status, tag");
    int rc = db_query(db, &sql, 3, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        int status = sql_status(rows, 0);
        char *tag = sql_dup_tag(rows, 1);
        if (status != TASK_STATUS_UNKNOWN && (!glob || task_tag_glob(glob, tag))) {
            struct tag_info *i = tags_get(t, tag);
            i->count[status] = 1;
            if (status == TASK_PENDING) {
                i->next_at = sql_due(rows, 2);
                if (i->next_at <= now_at)
                    i->oldest_due_at = i->next_at;
            }
        }
        free(tag);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

/* ---- counts: status TASK_STATUS_COUNT stands for what is due */

static void put_count(struct buf *sql, const struct tag_info *i, size_t index, unsigned status, bool exact)
{
    buf_printf(sql, "SELECT %zu, %u, COUNT(*) FROM (SELECT 1 FROM dq_task FORCE INDEX (due) WHERE status = %u AND tag = ", index,
               status, status == TASK_STATUS_COUNT ? TASK_PENDING : status);
    sql_put_tag(sql, i->tag);
    if (status == TASK_STATUS_COUNT)
        buf_str(sql, " AND expected_time <= UTC_TIMESTAMP(3)");
    if (!exact)
        buf_printf(sql, " LIMIT %d", TAG_COUNT_CAP + 1);
    buf_str(sql, ") x");
}

static int run_counts(struct db *db, struct buf *sql, struct tags *t, bool exact, struct err *err)
{
    struct db_rows *rows = NULL;

    int rc = db_query(db, sql, 3, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        uint64_t index = db_u64(rows, 0), status = db_u64(rows, 1), n = db_u64(rows, 2);
        if (index >= t->count || status > TASK_STATUS_COUNT) {
            rc = sql_odd_row(db, err);
            break;
        }
        struct tag_info *i = &t->items[index];
        bool capped = !exact && n > TAG_COUNT_CAP;
        if (capped)
            n = TAG_COUNT_CAP;
        if (status == TASK_STATUS_COUNT) {
            i->due = n;
            i->due_capped = capped;
        } else {
            i->count[status] = n;
            i->capped[status] = capped;
        }
        rc = 0;
    }
    db_rows_free(rows);
    buf_reset(sql);
    return rc;
}

static int read_counts(struct db *db, struct tags *t, bool exact, struct err *err)
{
    struct buf sql = BUF_INIT;
    size_t parts = 0;
    int rc = 0;

    for (size_t k = 0; rc == 0 && k < t->count; k++) {
        for (unsigned status = 0; rc == 0 && status <= TASK_STATUS_COUNT; status++) {
            bool wanted = status == TASK_STATUS_COUNT ? t->items[k].oldest_due_at != TASK_TIME_NONE : t->items[k].count[status] > 0;
            if (!wanted)
                continue;
            if (parts)
                buf_str(&sql, " UNION ALL ");
            put_count(&sql, &t->items[k], k, status, exact);
            if (++parts == PARTS) {
                rc = run_counts(db, &sql, t, exact, err);
                parts = 0;
            }
        }
    }
    if (rc == 0 && parts)
        rc = run_counts(db, &sql, t, exact, err);
    buf_done(&sql);
    return rc;
}

int tag_store_list(struct db *db, const char *tag_glob, bool exact, struct tag_info **ret, size_t *ret_count, int64_t *ret_now_at,
                   struct err *err)
{
    struct tags t = {NULL, 0, 0};
    int64_t now_at = 0;

    int rc = read_switches(db, tag_glob, &t, &now_at, err);
    if (rc == 0)
        rc = read_pairs(db, tag_glob, &t, now_at, err);
    if (rc == 0)
        rc = read_counts(db, &t, exact, err);
    if (rc < 0) {
        tag_infos_free(t.items, t.count);
        return rc;
    }
    if (t.count)
        qsort(t.items, t.count, sizeof *t.items, compare_infos);
    *ret = t.items;
    *ret_count = t.count;
    *ret_now_at = now_at;
    return 0;
}

void tag_infos_free(struct tag_info *t, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(t[i].tag);
        free(t[i].paused_by);
        free(t[i].pause_reason);
    }
    free(t);
}

/* ---- switches */

int tag_store_pause(struct db *db, const char *tag, int64_t until_at, int64_t for_ms, const char *by, const char *reason,
                    struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "INSERT INTO dq_tag (tag, paused_until, paused_by, pause_reason, update_time) VALUES (");
    db_put_text(&sql, tag);
    buf_chr(&sql, ',');
    if (until_at == TASK_TIME_NONE)
        sql_put_from_now(&sql, for_ms);
    else
        db_put_time(&sql, until_at > TAG_PAUSED_FOR_EVER_AT ? TAG_PAUSED_FOR_EVER_AT : until_at);
    buf_chr(&sql, ',');
    db_put_text(&sql, by);
    buf_chr(&sql, ',');
    db_put_text(&sql, reason);
    buf_str(&sql, ",UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE paused_until = VALUES(paused_until), paused_by = VALUES(paused_by),"
                  " pause_reason = VALUES(pause_reason), update_time = VALUES(update_time)");
    int rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc < 0 ? rc : 1;
}

int tag_store_resume(struct db *db, const char *tag, struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t rows = 0;

    buf_str(&sql, "UPDATE dq_tag SET paused_until = NULL, paused_by = NULL, pause_reason = NULL, update_time = UTC_TIMESTAMP(3) "
                  "WHERE tag = ");
    db_put_text(&sql, tag);
    buf_str(&sql, " AND paused_until > UTC_TIMESTAMP(3)");
    int rc = db_exec(db, &sql, &rows, err);
    buf_done(&sql);
    return rc < 0 ? rc : rows > 0;
}
