/*
 * task_get.c - one task.
 *
 * Invariant: reads only.
 */
#include "store/ask/task_get.h"
#include "store/db/columns.h"
#include "store/row/sql.h"
#include "store/row/task_read.h"

#include <inttypes.h>

struct reading {
    unsigned columns;
    struct task *to;
};

static void take_task(const struct db_rows *r, void *arg)
{
    const struct reading *w = arg;

    task_read(r, w->columns, w->to);
}

static int get(struct db *db, uint64_t id, unsigned columns, struct task *ret, struct err *err)
{
    BUF_LOCAL struct buf names = BUF_INIT;
    struct reading reading = {columns, ret};
    unsigned count = task_read_put_columns(&names, "t.", columns);
    int rc = sql_first(db, count, take_task, &reading, err,
                       "SELECT ? FROM dq_task t WHERE t.id = ?", SQL_PART(names.data), SQL_ID(id));

    if (rc == 0)
        rc = err_set(err, ERR_NOT_FOUND, "task %" PRIu64 " does not exist", id);
    return rc < 0 ? rc : 0;
}

int task_get(struct db *db, uint64_t id, struct task *ret, struct err *err)
{
    return get(db, id, TASK_READ_ALL, ret, err);
}

int task_get_short(struct db *db, uint64_t id, struct task *ret, struct err *err)
{
    return get(db, id, TASK_READ_SHORT, ret, err);
}

#define OUTPUT_COLUMNS(X) X(OUTPUT_ID, "id") X(OUTPUT_BYTES, "output")
enum { OUTPUT_COLUMNS(COLUMNS_NAME) OUTPUT_COUNT };

struct calling {
    void (*fn)(uint64_t id, const void *output, size_t size, void *arg);
    void *arg;
};

static void call(const struct db_rows *r, void *arg)
{
    const struct calling *c = arg;
    size_t size;
    const char *output = db_text(r, OUTPUT_BYTES, &size);

    c->fn(db_u64(r, OUTPUT_ID), output ? output : "", output ? size : 0, c->arg);
}

int task_get_outputs(struct db *db, const uint64_t *ids, size_t n,
                     void (*fn)(uint64_t id, const void *output, size_t size, void *arg), void *arg,
                     struct err *err)
{
    struct calling calling = {fn, arg};

    return sql_all_streamed(db, OUTPUT_COUNT, call, &calling, err,
                            "SELECT ? FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN ?"
                            " AND output IS NOT NULL ORDER BY id",
                            SQL_PART(COLUMNS_SELECT(OUTPUT_COLUMNS)), SQL_IDS(ids, n));
}
