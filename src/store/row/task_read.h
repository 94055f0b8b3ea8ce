/*
 * task_read.h - a row of dq_task as a struct task.
 */
#ifndef DQ_STORE_ROW_TASK_READ_H
#define DQ_STORE_ROW_TASK_READ_H

#include "base/column.h"
#include "base/task.h"
#include "store/db/db.h"

/* The columns that are read, TASK_COLUMNS (base/task.h), by number. */
#define TASK_READ_NUMBER(name, ...) TASK_READ_##name,
enum task_read_column { TASK_COLUMNS(TASK_READ_NUMBER) TASK_READ_COUNT };
extern const struct column task_read_columns[TASK_READ_COUNT];

/* Sets of them. Bodies and output can be long. */
#define TASK_READ_BIT(column) (1u << (column))
#define TASK_READ_ALL (UINT_MAX >> (COLUMN_MOST - TASK_READ_COUNT))
#define TASK_READ_SHORT                                                                            \
    (TASK_READ_ALL & ~(TASK_READ_BIT(TASK_READ_BODY) | TASK_READ_BIT(TASK_READ_OUTPUT) |           \
                       TASK_READ_BIT(TASK_READ_AGAIN_BODY)))

/* Appends the columns of a set, `t.id, t.tag, ...` (alias: "t."), and returns how many. */
unsigned task_read_put_columns(struct buf *sql, const char *alias, unsigned set);
/* Fills *ret from a row that begins with these columns. Free it with task_done. */
void task_read(const struct db_rows *r, unsigned set, struct task *ret);
/* Sets body and body_size; nothing for SQL NULL. */
void task_read_body(const struct db_rows *r, unsigned col, struct task *t);

#endif
