/*
 * retention_store.c - deleting tasks that finished long ago. Invariant: a task that is
 * retried meanwhile is not deleted.
 */
#include "store/retention_store.h"
#include "base/mem.h"
#include "store/columns.h"
#include "store/sql.h"
#include "store/task_delete.h"

#include <stdlib.h>
#include <sys/param.h>

struct old_tags {
    char **items;
    size_t count;
};

static int add_tag(const struct db_rows *r, void *arg, struct err *err)
{
    struct old_tags *tags = arg;

    (void)err;
    tags->items = mem_resize(tags->items, tags->count + 1, sizeof *tags->items);
    tags->items[tags->count++] = sql_dup_tag(r, COLUMNS_ONLY);
    return 0;
}

/* Finds the tags that have a finished task due before the limit, with a loose index scan as in
 * peek_store_all. */
static int find_tags(struct db *db, enum task_status status, int64_t age_ms, struct old_tags *ret,
                     struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(
        &sql,
        "SELECT tag FROM (SELECT tag, MIN(expected_time) AS first FROM dq_task FORCE INDEX (due)"
        " WHERE status > %d AND status < %d GROUP BY status, tag) w WHERE first < ",
        (int)status - 1, (int)status + 1);
    sql_put_from_now(&sql, -age_ms);
    int rc = db_each(db, &sql, COLUMNS_ONE, add_tag, ret, err);
    buf_done(&sql);
    return rc;
}

/* The index finds the tasks that were due early, which mostly finished early; finish_time decides.
 */
static int old_rows(struct db *db, enum task_status status, const char *tag, int64_t age_ms,
                    struct claim_ref *refs, size_t limit, size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ",
               COLUMNS_SELECT(CLAIM_REF_COLUMNS), (int)status);
    sql_put_tag(&sql, tag);
    buf_str(&sql, " AND expected_time < ");
    sql_put_from_now(&sql, -age_ms);
    buf_str(&sql, " AND COALESCE(finish_time, expected_time) < ");
    sql_put_from_now(&sql, -age_ms);
    buf_printf(&sql, " ORDER BY expected_time, id LIMIT %zu", limit);
    int rc = claim_ref_read(db, &sql, refs, limit, ret_count, err);
    buf_done(&sql);
    return rc;
}

int retention_store_expire(struct db *db, enum task_status status, int64_t age_ms, size_t limit,
                           size_t *ret_deleted, struct rows_faults *faults, struct err *err)
{
    struct claim_ref refs[ROWS_STEP];
    struct old_tags tags = {0};
    size_t total = 0, n = 0, deleted = 0;

    int rc = find_tags(db, status, age_ms, &tags, err);
    for (size_t i = 0; rc == 0 && i < tags.count && total < limit;) {
        size_t most = MIN(limit - total, ROWS_STEP);
        rc = old_rows(db, status, tags.items[i], age_ms, refs, most, &n, err);
        if (rc == 0 && n)
            rc = task_delete_refs(db, refs, n, &deleted, faults, err);
        if (rc == 0 && n)
            total += deleted;
        if (n < most || !deleted)
            i++;
    }
    for (size_t i = 0; i < tags.count; i++)
        free(tags.items[i]);
    free(tags.items);
    if (rc == 0)
        *ret_deleted = total;
    return rc;
}
