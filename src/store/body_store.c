/*
 * body_store.c - bodies that did not come with the claim. Invariant: no more of them are in memory than the caller has room for.
 */
#include "store/body_store.h"
#include "base/mem.h"
#include "store/task_read.h"

#include <stdlib.h>

/* Tasks that a statement is about. */
struct asked {
    struct task *const *tasks;
    size_t count;
    size_t *sizes; /* to be found, one for each */
};

static int take_size(const struct db_rows *r, void *arg, struct err *err)
{
    const struct asked *a = arg;

    (void)err;
    for (size_t i = 0; i < a->count; i++)
        if (a->tasks[i]->id == db_u64(r, 0))
            a->sizes[i] = (size_t)db_u64(r, 1);
    return 0;
}

static int take_body(const struct db_rows *r, void *arg, struct err *err)
{
    const struct asked *a = arg;

    (void)err;
    for (size_t i = 0; i < a->count; i++)
        if (a->tasks[i]->id == db_u64(r, 0) && !a->tasks[i]->body)
            task_read_body(r, 1, a->tasks[i]);
    return 0;
}

int body_store_measure(struct db *db, struct task *const *tasks, size_t count, struct err *err)
{
    struct buf sql = BUF_INIT;
    size_t *sizes = mem_alloc((count + 1) * sizeof *sizes);

    buf_str(&sql, "SELECT id, LENGTH(message_body) FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN (");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_chr(&sql, ',');
        buf_u64(&sql, tasks[i]->id);
    }
    buf_chr(&sql, ')');
    for (size_t i = 0; i < count; i++)
        sizes[i] = SIZE_MAX;
    int rc = count ? db_each(db, &sql, 2, take_size, &(struct asked){tasks, count, sizes}, err) : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        tasks[i]->body_size = sizes[i];
    free(sizes);
    buf_done(&sql);
    return rc;
}

int body_store_load(struct db *db, struct task *const *tasks, size_t count, size_t max_bytes, size_t *ret_loaded, struct err *err)
{
    struct buf sql = BUF_INIT;
    size_t n = 0, bytes = 0, loaded = 0;

    buf_str(&sql, "SELECT id, message_body FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN (");
    for (; n < count && (n == 0 || (tasks[n]->body_size <= max_bytes && bytes + tasks[n]->body_size <= max_bytes)); n++) {
        if (n)
            buf_chr(&sql, ',');
        buf_u64(&sql, tasks[n]->id);
        bytes += tasks[n]->body_size;
    }
    buf_chr(&sql, ')');
    int rc = n ? db_each_streamed(db, &sql, 2, take_body, &(struct asked){tasks, n, NULL}, err) : 0;
    buf_done(&sql);
    if (rc < 0)
        return rc;
    while (loaded < n && tasks[loaded]->body)
        loaded++;
    *ret_loaded = loaded;
    return 0;
}
