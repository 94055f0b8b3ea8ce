/*
 * task_read.h - a row of dq_task as a struct task. Private to src/store.
 */
#ifndef DQ_STORE_TASK_READ_H
#define DQ_STORE_TASK_READ_H

#include "base/task.h"
#include "store/db.h"

/* The columns that task_read expects first in a row, of a table with the alias t. */
#define TASK_COLUMNS                                                                                                               \
    "t.id, t.tag, t.task_key, t.body_size, t.status, t.version, t.attempt, t.max_attempts, t.claim_token, t.host, t.pid,"          \
    " t.lease_until, t.delay_time, t.expected_time, t.execution_time, t.finish_time, t.exit_code, t.`signal`, t.error_stack,"      \
    " t.create_time, t.update_time"
#define TASK_COLUMN_COUNT 21
void task_read(const struct db_rows *r, struct task *ret);
void task_read_body(const struct db_rows *r, unsigned col, struct task *t); /* SQL NULL: stays not loaded */

#endif
