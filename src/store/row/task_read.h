/*
 * task_read.h - a row of dq_task as a struct task.
 */
#ifndef DQ_STORE_ROW_TASK_READ_H
#define DQ_STORE_ROW_TASK_READ_H

#include "base/task.h"
#include "store/db/columns.h"
#include "store/db/db.h"

/* Every column of dq_task that struct task has, and how its cell becomes a field. To add a column,
 * add a line. The last two can be long. */
/* clang-format off */
#define TASK_READ_COLUMNS(X)                                                                                   \
    X(TASK_READ_ID, "id", t->id = db_u64(r, col))                                                              \
    X(TASK_READ_TAG, "tag", t->tag = sql_dup_tag(r, col))                                                      \
    X(TASK_READ_KEY, "task_key", t->key = sql_dup_key(r, col))                                                 \
    X(TASK_READ_BODY_SIZE, "body_size", t->body_size = db_is_null(r, col) ? SIZE_MAX : (size_t)db_u64(r, col)) \
    X(TASK_READ_STATUS, "status", t->status = sql_status(r, col))                                              \
    X(TASK_READ_VERSION, "version", t->version = db_u64(r, col))                                               \
    X(TASK_READ_ATTEMPT, "attempt", t->attempt = db_u32(r, col))                                               \
    X(TASK_READ_MAX_ATTEMPTS, "max_attempts", t->max_attempts = db_u32(r, col))                                \
    X(TASK_READ_TOKEN, "claim_token", read_token(r, col, t))                                                   \
    X(TASK_READ_HOST, "host", t->host = sql_dup(r, col, NULL))                                                 \
    X(TASK_READ_PID, "pid", t->pid = db_u32(r, col))                                                           \
    X(TASK_READ_LEASE_UNTIL, "lease_until", t->lease_until_at = db_time(r, col))                               \
    X(TASK_READ_DELAY, "delay_time", t->delay_ms = db_i64(r, col, 0))                                          \
    X(TASK_READ_EXPECTED, "expected_time", t->expected_at = sql_due(r, col))                                   \
    X(TASK_READ_EXECUTION, "execution_time", t->execution_at = db_time(r, col))                                \
    X(TASK_READ_FINISH, "finish_time", t->finish_at = db_time(r, col))                                         \
    X(TASK_READ_EXIT_CODE, "exit_code", t->exit_code = db_int(r, col, -1))                                     \
    X(TASK_READ_SIGNAL, "`signal`", t->signal = db_int(r, col, 0))                                             \
    X(TASK_READ_ERROR, "error_stack", t->error = sql_dup(r, col, NULL))                                        \
    X(TASK_READ_CREATE, "create_time", t->create_at = db_time(r, col))                                         \
    X(TASK_READ_UPDATE, "update_time", t->update_at = db_time(r, col))                                         \
    X(TASK_READ_BODY, "message_body", task_read_body(r, col, t))                                               \
    X(TASK_READ_OUTPUT, "output", t->output = sql_dup(r, col, &t->output_size))
/* clang-format on */
enum task_read_column { TASK_READ_COLUMNS(COLUMNS_NAME) TASK_READ_COUNT };

/* Sets of them. */
#define TASK_READ_BIT(column) (1u << (column))
#define TASK_READ_SHORT (TASK_READ_BIT(TASK_READ_BODY) - 1) /* all but body and output */

#define TASK_READ_ALL (TASK_READ_BIT(TASK_READ_COUNT) - 1)

/* Append the columns of a set, `t.id, t.tag, ...` (alias: "t."), and count them. */
void task_read_put_columns(struct buf *sql, const char *alias, unsigned set);
unsigned task_read_count(unsigned set);
/* Fills *ret from a row that begins with these columns. Free it with task_done. */
void task_read(const struct db_rows *r, unsigned set, struct task *ret);
/* Sets body and body_size; nothing for SQL NULL. */
void task_read_body(const struct db_rows *r, unsigned col, struct task *t);

#endif
