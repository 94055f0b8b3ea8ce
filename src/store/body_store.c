/*
 * body_store.c - bodies that did not come with the claim. Invariant: no more of them are in memory than the caller has room for.
 */
#include "store/body_store.h"
#include "store/task_read.h"

int body_store_measure(struct db *db, struct task *const *tasks, size_t count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_str(&sql, "SELECT id, LENGTH(message_body) FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN (");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_chr(&sql, ',');
        buf_u64(&sql, tasks[i]->id);
    }
    buf_chr(&sql, ')');
    int rc = count ? db_query(db, &sql, 2, false, &rows, err) : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        tasks[i]->body_size = SIZE_MAX;
    while (count && rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        for (size_t i = 0; i < count; i++)
            if (tasks[i]->id == db_u64(rows, 0))
                tasks[i]->body_size = (size_t)db_u64(rows, 1);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

int body_store_load(struct db *db, struct task *const *tasks, size_t count, size_t max_bytes, size_t *ret_loaded, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    size_t n = 0, bytes = 0, loaded = 0;

    buf_str(&sql, "SELECT id, message_body FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN (");
    for (; n < count && (n == 0 || (tasks[n]->body_size <= max_bytes && bytes + tasks[n]->body_size <= max_bytes)); n++) {
        if (n)
            buf_chr(&sql, ',');
        buf_u64(&sql, tasks[n]->id);
        bytes += tasks[n]->body_size;
    }
    buf_chr(&sql, ')');
    int rc = n ? db_query(db, &sql, 2, true, &rows, err) : 0;
    while (n && rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        for (size_t i = 0; i < n; i++)
            if (tasks[i]->id == db_u64(rows, 0) && !tasks[i]->body)
                task_read_body(rows, 1, tasks[i]);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    if (rc < 0)
        return rc;
    while (loaded < n && tasks[loaded]->body)
        loaded++;
    *ret_loaded = loaded;
    return 0;
}
