/*
 * task_filter.c - a filter as conditions of a statement. Invariant: a text is a literal of db_put.h
 * and acts as itself; only * and ? of a glob are wildcards.
 */
#include "store/ask/task_filter.h"
#include "base/mem.h"
#include "base/task.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <string.h>

static const char *const columns[TASK_FILTER_TIMES] = {
    [TASK_FILTER_DUE] = "expected_time",
    [TASK_FILTER_CREATED] = "create_time",
    [TASK_FILTER_STARTED] = "execution_time",
    [TASK_FILTER_FINISHED] = "finish_time",
};

bool task_filter_has_wildcard(const char *glob)
{
    return strpbrk(glob, "*?\n");
}

bool task_filter_needs_row(const struct task_filter *f)
{
    bool bounded = false;

    for (int t = TASK_FILTER_DUE + 1; t < TASK_FILTER_TIMES; t++)
        bounded |= f->since[t].set || f->before[t].set;
    return bounded || f->error_glob || f->host_glob || f->body;
}

void task_filter_put_time(struct buf *sql, const struct task_filter *f, enum task_filter_time t)
{
    const struct task_filter_bound *since = &f->since[t], *before = &f->before[t];

    if (since->set && since->at != TASK_TIME_NONE)
        sql_put(sql, " AND ? >= ?", SQL_PART(columns[t]), SQL_TIME(since->at));
    if (before->set)
        sql_put(sql, " AND ? < ?", SQL_PART(columns[t]), SQL_TIME(before->at));
}

static void put_globs(struct buf *sql, const char *column, const char *globs)
{
    buf_str(sql, " AND (");
    for (const char *c = globs;; c++) {
        size_t len = strcspn(c, "\n");
        buf_printf(sql, "%s%s LIKE ", c > globs ? " OR " : "", column);
        sql_put_like(sql, c, len);
        buf_str(sql, " ESCAPE '!'");
        c += len;
        if (!*c)
            break;
    }
    buf_chr(sql, ')');
}

static void put_keys(struct buf *sql, const char *keys)
{
    buf_str(sql, " AND task_key IN (");
    for (const char *s = keys;; s++) {
        MEM_LOCAL char *key = mem_dup(s, strcspn(s, "\n"));
        db_put_text(sql, key);
        s += strlen(key);
        if (!*s)
            break;
        buf_chr(sql, ',');
    }
    buf_chr(sql, ')');
}

void task_filter_put_tag(struct buf *sql, const char *prefix, const char *glob)
{
    BUF_LOCAL struct buf column = BUF_INIT;

    if (task_filter_has_wildcard(glob)) {
        buf_printf(&column, "TRIM(TRAILING ' ' FROM %stag)", prefix);
        put_globs(sql, column.data, glob);
    } else {
        sql_put(sql, " AND ?tag = ?", SQL_PART(prefix), SQL_TEXT(glob));
    }
}

void task_filter_put_row(struct buf *sql, const struct task_filter *f)
{
    for (enum task_filter_time t = TASK_FILTER_DUE + 1; t < TASK_FILTER_TIMES; t++)
        task_filter_put_time(sql, f, t);
    if (f->host_glob)
        put_globs(sql, "host", f->host_glob);
    if (f->error_glob)
        put_globs(sql, "error_stack", f->error_glob);
    if (f->body) {
        buf_str(sql, " AND LOCATE(");
        db_put_bytes(sql, f->body, strlen(f->body));
        buf_str(sql, ", message_body) > 0");
    }
}

void task_filter_put(struct buf *sql, const struct task_filter *f, unsigned statuses)
{
    if (statuses != TASK_ANY)
        sql_put(sql, " AND ?", SQL_STATUSES(statuses));
    if (f->tag_glob && !task_filter_has_wildcard(f->tag_glob))
        task_filter_put_tag(sql, "", f->tag_glob);
    if (f->key)
        put_keys(sql, f->key);
    task_filter_put_time(sql, f, TASK_FILTER_DUE);
    task_filter_put_row(sql, f);
}
