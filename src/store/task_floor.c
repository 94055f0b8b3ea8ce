/*
 * task_floor.c - where in the primary key the tasks since an instant begin. Invariant: a handful of rows are read.
 */
#include "store/task_floor.h"
#include "store/sql.h"

#include <inttypes.h>

/* id and create_time of the first task with this id or a later one: 1, 0 when there is none. */
static int task_from_id(struct db *db, uint64_t id, uint64_t *ret_id, int64_t *ret_create_at, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_printf(&sql, "SELECT id, create_time FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= %" PRIu64 " ORDER BY id LIMIT 1", id);
    int rc = db_query(db, &sql, 2, false, &rows, err);
    if (rc == 0)
        rc = db_rows_next(rows, err);
    if (rc == 1 && db_u64(rows, 0) < id) {
        rc = sql_odd_row(db, err);
    } else if (rc == 1) {
        *ret_id = db_u64(rows, 0);
        *ret_create_at = db_time(rows, 1);
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    uint64_t low = 0, high = 0, id = 0;
    int64_t create_at = 0;

    buf_str(&sql, "SELECT COALESCE(MIN(id), 0), COALESCE(MAX(id), 0) + 1 FROM dq_task");
    int rc = db_query(db, &sql, 2, false, &rows, err);
    if (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        low = db_u64(rows, 0);
        high = db_u64(rows, 1);
    }
    db_rows_free(rows);
    buf_done(&sql);
    while (rc >= 0 && low < high) {
        uint64_t middle = low + (high - low) / 2;
        rc = task_from_id(db, middle, &id, &create_at, err);
        if (rc == 1 && create_at < at)
            low = id + 1;
        else
            high = middle;
    }
    if (rc < 0)
        return rc;
    *ret_id = low;
    return 0;
}
