/*
 * task_get.c - one task with all there is about it.
 *
 * Invariant: reads only.
 */
#include "base/mem.h"
#include "store/task_sql.h"
#include "store/task_store.h"

#include <inttypes.h>
#include <stdlib.h>

int task_store_get(struct db *db, uint64_t id, struct task *ret, struct err *err)
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

static void attempt_read(const struct db_rows *r, struct task_attempt *a)
{
    *a = (struct task_attempt){
        .attempt = db_u32(r, 0),
        .host = sql_dup(r, 1, NULL),
        .pid = db_u32(r, 2),
        .start_at = db_time(r, 3),
        .finish_at = db_time(r, 4),
        .outcome = task_outcome_parse(db_string(r, 5)),
        .exit_code = db_int(r, 6, -1),
        .signal = db_int(r, 7, 0),
        .error = sql_dup(r, 8, NULL),
    };
    a->output = sql_dup(r, 9, &a->output_size);
}

int task_store_attempts(struct db *db, uint64_t id, struct task_attempt **ret, size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    struct task_attempt *list = NULL;
    size_t count = 0, cap = 0;

    buf_printf(&sql,
               "SELECT attempt, host, pid, start_time, finish_time, outcome, exit_code, `signal`, error_stack, output"
               " FROM dq_attempt WHERE task_id = %" PRIu64 " ORDER BY version",
               id);
    int rc = db_query(db, &sql, 10, true, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        if (count == cap) {
            cap = cap ? 2 * cap : 16;
            list = mem_resize(list, cap, sizeof *list);
        }
        attempt_read(rows, &list[count++]);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    if (rc < 0) {
        task_attempts_free(list, count);
        return rc;
    }
    *ret = list;
    *ret_count = count;
    return 0;
}

void task_attempts_free(struct task_attempt *a, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(a[i].host);
        free(a[i].error);
        free(a[i].output);
    }
    free(a);
}

int task_store_now(struct db *db, int64_t *ret_at, struct err *err)
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
