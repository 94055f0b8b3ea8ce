/*
 * lease_store.c - what is still ours, whose lease has ended, what has been finished long enough.
 *
 * Invariant: a row is ours only while it is running, at our version, and carries our token; nothing here changes a row's version.
 */
#include "base/mem.h"
#include "store/claim_store.h"
#include "store/task_sql.h"

#include <inttypes.h>
#include <stdlib.h>

static void put_ours(struct buf *sql, const struct claim_owner *owner, const struct claim_ref *refs, size_t n)
{
    buf_printf(sql, "status = %d AND claim_token = ", TASK_RUNNING);
    sql_put_token(sql, owner->token);
    buf_str(sql, " AND ");
    sql_put_refs(sql, "", refs, n);
}

static int compare_refs(const void *a, const void *b)
{
    const struct claim_ref *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->version < y->version ? -1 : x->version > y->version;
}

static int check_step(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs, size_t n, bool *lost,
                      struct err *err)
{
    struct buf sql = BUF_INIT;
    struct claim_ref ours[TASK_STEP];
    size_t count = 0;

    buf_str(&sql, "SELECT id, version FROM dq_task FORCE INDEX (PRIMARY) WHERE ");
    put_ours(&sql, owner, refs, n);
    int rc = sql_read_refs(db, &sql, ours, n, &count, err);
    qsort(ours, count, sizeof *ours, compare_refs);
    for (size_t i = 0; rc == 0 && i < n; i++)
        lost[i] = !bsearch(&refs[i], ours, count, sizeof *ours, compare_refs);
    buf_done(&sql);
    return rc;
}

int claim_store_check(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs, size_t count, bool *lost,
                      struct err *err)
{
    int rc = 0;

    for (size_t from = 0, n; rc == 0 && from < count; from += n) {
        n = count - from < TASK_STEP ? count - from : TASK_STEP;
        rc = check_step(db, owner, refs + from, n, lost + from, err);
    }
    return rc;
}

static int renew_step(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs, size_t n, int64_t lease_ms,
                      bool *lost, struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t rows = 0;

    buf_str(&sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET lease_until = ");
    sql_put_from_now(&sql, lease_ms);
    buf_str(&sql, " WHERE ");
    put_ours(&sql, owner, refs, n);
    int rc = db_exec(db, &sql, &rows, err);
    buf_done(&sql);
    if (rc < 0)
        return rc;
    if (rows < n)
        return check_step(db, owner, refs, n, lost, err);
    for (size_t i = 0; i < n; i++)
        lost[i] = false;
    return 0;
}

int claim_store_renew(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs, size_t count, int64_t lease_ms,
                      bool *lost, struct err *err)
{
    int rc = 0;

    for (size_t from = 0, n; rc == 0 && from < count; from += n) {
        n = count - from < TASK_STEP ? count - from : TASK_STEP;
        rc = renew_step(db, owner, refs + from, n, lease_ms, lost + from, err);
    }
    return rc;
}

int claim_store_expired(struct db *db, size_t limit, struct task_list *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_printf(&sql,
               "SELECT " TASK_COLUMNS " FROM dq_task t FORCE INDEX (due)"
               " WHERE t.status = %d AND " SQL_LEASE_ENDED " LIMIT %zu",
               TASK_RUNNING, limit);
    int rc = db_query(db, &sql, TASK_COLUMN_COUNT, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        if (ret->count == ret->cap) {
            ret->cap = ret->cap ? 2 * ret->cap : 16;
            ret->items = mem_resize(ret->items, ret->cap, sizeof *ret->items);
        }
        task_read(rows, &ret->items[ret->count++]);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

/* ---- retention */

/* The tags that have a finished task that was due before the limit: a loose index scan, as in claim_store_peek. */
static int old_tags(struct db *db, enum task_status status, int64_t age_ms, char ***ret, size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    char **tags = NULL;
    size_t count = 0;

    buf_printf(&sql,
               "SELECT tag FROM (SELECT tag, MIN(expected_time) AS first FROM dq_task FORCE INDEX (due)"
               " WHERE status > %d AND status < %d GROUP BY status, tag) w WHERE first < ",
               (int)status - 1, (int)status + 1);
    sql_put_from_now(&sql, -age_ms);
    int rc = db_query(db, &sql, 1, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        tags = mem_resize(tags, count + 1, sizeof *tags);
        tags[count++] = sql_dup_tag(rows, 0);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    *ret = tags;
    *ret_count = count;
    return rc;
}

/* What is due early is finished early: the index leads to nearly the right rows, and finish_time decides. */
static int old_rows(struct db *db, enum task_status status, const char *tag, int64_t age_ms, struct claim_ref *refs, size_t limit,
                    size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT id, version FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ", (int)status);
    sql_put_tag(&sql, tag);
    buf_str(&sql, " AND expected_time < ");
    sql_put_from_now(&sql, -age_ms);
    buf_str(&sql, " AND COALESCE(finish_time, expected_time) < ");
    sql_put_from_now(&sql, -age_ms);
    buf_printf(&sql, " ORDER BY expected_time, id LIMIT %zu", limit);
    int rc = sql_read_refs(db, &sql, refs, limit, ret_count, err);
    buf_done(&sql);
    return rc;
}

int claim_store_expire_finished(struct db *db, enum task_status status, int64_t age_ms, size_t limit, size_t *ret_deleted,
                                struct err *err)
{
    struct claim_ref refs[TASK_STEP];
    char **tags = NULL;
    size_t tag_count = 0, total = 0, n = 0, deleted = 0;

    int rc = old_tags(db, status, age_ms, &tags, &tag_count, err);
    for (size_t i = 0; rc == 0 && i < tag_count && total < limit;) {
        size_t most = limit - total < TASK_STEP ? limit - total : TASK_STEP;
        rc = old_rows(db, status, tags[i], age_ms, refs, most, &n, err);
        if (rc == 0 && n)
            rc = task_delete_refs(db, refs, n, &deleted, err);
        if (rc == 0 && n)
            total += deleted;
        if (n < most || !deleted)
            i++;
    }
    for (size_t i = 0; i < tag_count; i++)
        free(tags[i]);
    free(tags);
    if (rc == 0)
        *ret_deleted = total;
    return rc;
}
