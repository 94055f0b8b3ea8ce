/*
 * task_read.c - a row of dq_task as a struct task. Invariant: the task is valid whatever the cells
 * hold.
 */
#include "store/row/task_read.h"
#include "store/row/field.h"
#include "store/row/sql.h"

#include <stdlib.h>

#define COLUMN_ROW(number, ...) COLUMN_UNSHOWN(task, __VA_ARGS__),
_Static_assert(TASK_READ_COUNT <= COLUMN_MOST, "sets of columns");
const struct column task_read_columns[TASK_READ_COUNT] = {TASK_COLUMNS(COLUMN_ROW)};

unsigned task_read_put_columns(struct buf *sql, const char *alias, unsigned set)
{
    unsigned count = 0;

    for (unsigned c = 0; c < TASK_READ_COUNT; c++) {
        if (!(set & TASK_READ_BIT(c)) || !task_read_columns[c].sql)
            continue;
        buf_str(sql, count++ ? ", " : "");
        field_put_names(sql, alias, &task_read_columns[c], 1);
    }
    return count;
}

void task_read(const struct db_rows *r, unsigned set, struct task *ret)
{
    unsigned col = 0;

    task_init(ret);
    for (unsigned c = 0; c < TASK_READ_COUNT; c++)
        if (set & TASK_READ_BIT(c) && task_read_columns[c].sql)
            field_read(r, col++, &task_read_columns[c], ret);
}

void task_read_body(const struct db_rows *r, unsigned col, struct task *t)
{
    size_t len;
    void *body = sql_dup(r, col, &len);

    if (!body)
        return;
    free(t->body);
    t->body = body;
    t->body_size = len;
}
