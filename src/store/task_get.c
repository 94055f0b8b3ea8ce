/*
 * task_get.c - one task with all its columns.
 *
 * Invariant: reads only.
 */
#include "store/task_get.h"
#include "store/columns.h"
#include "store/sql.h"
#include "store/task_read.h"

#include <inttypes.h>

static void take_task(const struct db_rows *r, void *arg)
{
    struct task *t = arg;

    task_read(r, TASK_READ_ALL, t);
}

static void take_time(const struct db_rows *r, void *arg)
{
    *(int64_t *)arg = db_time(r, COLUMNS_ONLY);
}

int task_get(struct db *db, uint64_t id, struct task *ret, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT ");
    task_read_put_columns(&sql, "t.", TASK_READ_ALL);
    buf_printf(&sql, " FROM dq_task t WHERE t.id = %" PRIu64, id);
    int rc = db_first(db, &sql, task_read_count(TASK_READ_ALL), take_task, ret, err);
    if (rc == 0)
        rc = err_set(err, ERR_NOT_FOUND, "task %" PRIu64 " does not exist", id);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

int task_get_now(struct db *db, int64_t *ret_at, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT UTC_TIMESTAMP(3)");
    int rc = db_first(db, &sql, COLUMNS_ONE, take_time, ret_at, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}
