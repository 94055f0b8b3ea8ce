/*
 * task_read.c - a row of dq_task as a struct task. Invariant: the task is valid whatever the cells
 * hold.
 */
#include "store/row/task_read.h"
#include "store/row/sql.h"

#include <stdlib.h>
#include <string.h>

static void read_token(const struct db_rows *r, unsigned col, struct task *t)
{
    size_t len;
    const char *token = db_text(r, col, &len);

    t->claimed = token && len == TASK_TOKEN_SIZE;
    if (t->claimed)
        memcpy(t->claim_token, token, TASK_TOKEN_SIZE);
}

static void read_cell(const struct db_rows *r, unsigned col, enum task_read_column column,
                      struct task *t)
{
    switch (column) {
#define READ(name, text, statement)                                                                \
    case name:                                                                                     \
        statement; /* NOLINT(bugprone-macro-parentheses) */                                        \
        break;
        TASK_READ_COLUMNS(READ)
#undef READ
    case TASK_READ_COUNT:
        break;
    }
}

void task_read_put_columns(struct buf *sql, const char *alias, unsigned set)
{
    static const char *const names[] = {
#define NAME(name, text, ...) [name] = text,
        TASK_READ_COLUMNS(NAME)
#undef NAME
    };
    const char *separator = "";

    for (unsigned c = 0; c < TASK_READ_COUNT; c++) {
        if (!(set & TASK_READ_BIT(c)))
            continue;
        buf_str(sql, separator);
        buf_str(sql, alias);
        buf_str(sql, names[c]);
        separator = ", ";
    }
}

unsigned task_read_count(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

void task_read(const struct db_rows *r, unsigned set, struct task *ret)
{
    unsigned col = 0;

    task_init(ret);
    for (unsigned c = 0; c < TASK_READ_COUNT; c++)
        if (set & TASK_READ_BIT(c))
            read_cell(r, col++, (enum task_read_column)c, ret);
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
