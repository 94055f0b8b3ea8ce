/*
 * task_row.h - a new task as SQL. Private to src/store.
 */
#ifndef DQ_STORE_TASK_ROW_H
#define DQ_STORE_TASK_ROW_H

#include "store/db.h"
#include "store/db_statement.h"
#include "store/task_add.h"

void task_row_put_expected(struct buf *sql, const struct task_new *t);
void task_row_put_max_attempts(struct buf *sql, const struct task_new *t);

/* Columns that not every task needs. What no row of a statement needs is left out of it: a sixth of
 * the server's work. */
enum { TASK_ROW_KEY = 1, TASK_ROW_MAX_ATTEMPTS = 2, TASK_ROW_DELAY = 4 };
unsigned task_row_columns(const struct task_new *t, size_t n);

/* `INSERT INTO dq_task (...) `, and for each of its columns the value, with commas between them.
 * token NULL: none. */
void task_row_put_insert(struct buf *sql, unsigned has);
void task_row_put_values(struct db_statement *st, const struct task_new *t, unsigned has,
                         const unsigned char *token);

/* As many rows of t[0..n-1] as go into packets of `most` bytes, `(...),(...)`, at least one;
 * returns how many. The token of the first row without a key speaks for all others without one, as
 * they are stored together; a row with a key may be kept out, and so each carries it. */
size_t task_row_put_many(struct db_statement *st, const struct task_new *t, size_t n, unsigned has,
                         const unsigned char token[TASK_TOKEN_SIZE], size_t most);

/* ERR_DATA: st, which stores t, is more than the server takes. */
int task_row_check_packet(struct db *db, const struct db_statement *st, const struct task_new *t,
                          struct err *err) __attribute__((warn_unused_result));

#endif
