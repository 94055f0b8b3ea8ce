/*
 * task_get.c - one task with all there is about it.
 *
 * Invariant: reads only.
 */
#include "store/task_get.h"
#include "store/sql.h"
#include "store/task_read.h"

#include <inttypes.h>

int task_get(struct db *db, uint64_t id, struct task *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_printf(&sql, "SELECT " TASK_COLUMNS ", t.message_body, t.output FROM dq_task t WHERE t.id = %" PRIu64, id);
    int rc = db_query(db, &sql, TASK_COLUMN_COUNT + 2, false, &rows, err);
    if (rc == 0)
        rc = db_rows_next(rows, err);
    if (rc == 1) {
        task_read(rows, ret);
        task_read_body(rows, TASK_COLUMN_COUNT, ret);
        ret->output = sql_dup(rows, TASK_COLUMN_COUNT + 1, &ret->output_size);
        rc = 0;
    } else if (rc == 0) {
        rc = err_set(err, ERR_NOT_FOUND, "there is no task %" PRIu64, id);
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

int task_get_now(struct db *db, int64_t *ret_at, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_str(&sql, "SELECT UTC_TIMESTAMP(3)");
    int rc = db_query(db, &sql, 1, false, &rows, err);
    if (rc == 0)
        rc = db_rows_next(rows, err);
    if (rc == 1)
        *ret_at = db_time(rows, 0);
    db_rows_free(rows);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}
