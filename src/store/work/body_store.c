/*
 * body_store.c - bodies that a claim did not load. Invariant: no more of them are in memory than
 * the caller allows.
 */
#include "store/work/body_store.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/row/sql.h"
#include "store/row/task_read.h"

#define SIZE_COLUMNS(X) X(SIZE_ID, "id") X(SIZE_BYTES, "LENGTH(message_body)")
#define BODY_COLUMNS(X) X(BODY_ID, "id") X(BODY_BYTES, "message_body")
enum { SIZE_COLUMNS(COLUMNS_NAME) SIZE_COUNT };
enum { BODY_COLUMNS(COLUMNS_NAME) BODY_COUNT };

/* The tasks of a statement. */
struct asked {
    struct task *const *tasks;
    size_t count;
    size_t *sizes; /* filled in, one for each task */
};

static void take_size(const struct db_rows *r, void *arg)
{
    const struct asked *a = arg;

    for (size_t i = 0; i < a->count; i++)
        if (a->tasks[i]->id == db_u64(r, SIZE_ID))
            a->sizes[i] = (size_t)db_u64(r, SIZE_BYTES);
}

static void take_body(const struct db_rows *r, void *arg)
{
    const struct asked *a = arg;

    for (size_t i = 0; i < a->count; i++)
        if (a->tasks[i]->id == db_u64(r, BODY_ID) && !a->tasks[i]->body)
            task_read_body(r, BODY_BYTES, a->tasks[i]);
}

static void put_select(struct buf *sql, const char *columns, struct task *const *tasks,
                       size_t count)
{
    MEM_LOCAL uint64_t *ids = mem_alloc((count + 1) * sizeof *ids);

    for (size_t i = 0; i < count; i++)
        ids[i] = tasks[i]->id;
    sql_put(sql, "SELECT ? FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN ?", SQL_PART(columns),
            SQL_IDS(ids, count));
}

int body_store_measure(struct db *db, struct task *const *tasks, size_t count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    MEM_LOCAL size_t *sizes = mem_alloc((count + 1) * sizeof *sizes);
    int rc = 0;

    put_select(&sql, COLUMNS_SELECT(SIZE_COLUMNS), tasks, count);
    for (size_t i = 0; i < count; i++)
        sizes[i] = SIZE_MAX;
    if (count)
        rc = db_all(db, &sql, SIZE_COUNT, take_size, &(struct asked){tasks, count, sizes}, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        tasks[i]->body_size = sizes[i];
    return rc;
}

int body_store_load(struct db *db, struct task *const *tasks, size_t count, size_t max_bytes,
                    size_t *ret_loaded, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    size_t n = 0, bytes = 0, loaded = 0;
    int rc = 0;

    for (; n < count && (n == 0 || (bytes <= max_bytes && /* the first body_size may be SIZE_MAX */
                                    tasks[n]->body_size <= max_bytes - bytes));
         n++)
        bytes += tasks[n]->body_size;
    put_select(&sql, COLUMNS_SELECT(BODY_COLUMNS), tasks, n);
    if (n)
        rc = db_all_streamed(db, &sql, BODY_COUNT, take_body, &(struct asked){tasks, n, NULL}, err);
    if (rc < 0)
        return rc;
    while (loaded < n && tasks[loaded]->body)
        loaded++;
    *ret_loaded = loaded;
    return 0;
}
