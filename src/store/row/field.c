/*
 * field.c - see field.h. Invariant: a field that was read and stored is the same in the table.
 */
#include "store/row/field.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "store/db/db_put.h"

#include <stdlib.h>
#include <string.h>

unsigned field_put_names(struct buf *sql, const char *alias, const struct column *c, size_t count)
{
    unsigned put = 0;

    for (size_t i = 0; i < count; i++) {
        if (!c[i].sql)
            continue;
        buf_str(sql, put++ ? ", " : "");
        buf_str(sql, alias);
        buf_str(sql, c[i].sql);
    }
    return put;
}

static void read_bytes(const struct db_rows *r, unsigned col, void **to)
{
    size_t len = 0;

    *to = sql_dup(r, col, &len);
    if (*to)
        *(size_t *)(void *)(to + 1) = len;
}

static void read_token(const struct db_rows *r, unsigned col, unsigned char *to)
{
    size_t len = 0;

    db_text(r, col, &len);
    to[TASK_TOKEN_SIZE] = len == TASK_TOKEN_SIZE;
    if (len == TASK_TOKEN_SIZE)
        sql_read_token(r, col, to);
}

void field_read(const struct db_rows *r, unsigned col, const struct column *c, void *row)
{
    void *to = (char *)row + c->offset;

    switch (c->type) {
    case COLUMN_ID:
    case COLUMN_U64:
        *(uint64_t *)to = db_u64(r, col);
        break;
    case COLUMN_U32:
    case COLUMN_SOME:
        *(uint32_t *)to = db_u32(r, col);
        break;
    case COLUMN_INT:
    case COLUMN_SIGNAL:
    case COLUMN_EXIT:
        *(int *)to = db_int(r, col, c->type == COLUMN_EXIT ? -1 : 0);
        break;
    case COLUMN_SIZE:
        *(size_t *)to = db_is_null(r, col) ? SIZE_MAX : (size_t)db_u64(r, col);
        break;
    case COLUMN_BOOL:
        *(bool *)to = db_u64(r, col) == 1;
        break;
    case COLUMN_MS:
    case COLUMN_AHEAD:
        *(int64_t *)to = db_i64(r, col, c->type == COLUMN_AHEAD ? INT64_MIN : 0);
        break;
    case COLUMN_TIME:
        *(int64_t *)to = db_time(r, col);
        break;
    case COLUMN_UNTIL:
        *(int64_t *)to = db_time(r, col) >= WHEN_AT_MAX ? INT64_MAX : db_time(r, col);
        break;
    case COLUMN_DUE:
        *(int64_t *)to = sql_due(r, col);
        break;
    case COLUMN_TEXT:
        *(char **)to = sql_dup(r, col, NULL);
        break;
    case COLUMN_NAME:
        *(char **)to = mem_strdup(db_string(r, col));
        break;
    case COLUMN_TAG:
        *(char **)to = sql_dup_tag(r, col);
        break;
    case COLUMN_TAGS:
        *(char **)to = db_is_null(r, col) ? NULL : sql_dup_tag(r, col);
        break;
    case COLUMN_KEY:
        *(char **)to = sql_dup_key(r, col);
        break;
    case COLUMN_BYTES:
        read_bytes(r, col, to);
        break;
    case COLUMN_TOKEN:
        read_token(r, col, to);
        break;
    case COLUMN_STATUS:
        *(int *)to = sql_status(r, col);
        break;
    case COLUMN_LEVEL:
        *(int *)to = (int)sql_level(r, col);
        break;
    case COLUMN_OUTCOME:
        *(int *)to = task_outcome_parse(db_string(r, col));
        break;
    case COLUMN_REAL:
    case COLUMN_CHARS:
        break;
    }
}

void field_read_all(const struct db_rows *r, const struct column *c, size_t count, void *row)
{
    unsigned col = 0;

    for (size_t i = 0; i < count; i++)
        if (c[i].sql)
            field_read(r, col++, &c[i], row);
}

struct listing {
    const struct field_table *of;
    char *rows;
    size_t count, cap;
};

static void take_row(const struct db_rows *r, void *arg)
{
    struct listing *l = arg;

    l->rows = mem_room(l->rows, l->count, &l->cap, l->of->size);
    char *row = l->rows + l->count++ * l->of->size;
    memset(row, 0, l->of->size);
    field_read_all(r, l->of->columns, l->of->count, row);
}

int field_list_values(struct db *db, const struct field_table *t, void *ret, size_t *ret_count,
                      struct err *err, const char *tail, const struct sql_value *v, size_t count)
{
    struct listing l = {.of = t};
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT ");
    unsigned columns = field_put_names(&sql, "", t->columns, t->count);
    buf_chr(&sql, ' ');
    sql_put_values(&sql, tail, v, count);
    int rc = db_all_streamed(db, &sql, columns, take_row, &l, err);
    if (rc < 0) {
        field_free(t, l.rows, l.count);
        return rc;
    }
    memcpy(ret, &l.rows, sizeof l.rows);
    *ret_count = l.count;
    return 0;
}

void field_done(const struct field_table *t, void *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < t->count; k++)
            if (t->columns[k].sql && t->columns[k].type >= COLUMN_TEXT &&
                t->columns[k].type <= COLUMN_BYTES)
                free(*(void **)(void *)((char *)rows + i * t->size + t->columns[k].offset));
}

void field_free(const struct field_table *t, void *rows, size_t count)
{
    field_done(t, rows, count);
    free(rows);
}

static void put_value(struct db_statement *st, const struct column *c, const void *row)
{
    const void *p = (const char *)row + c->offset;
    const unsigned char *token = p;
    uint64_t number;

    switch (c->type) {
    case COLUMN_TIME:
    case COLUMN_DUE:
        db_put_time(&st->sql, *(const int64_t *)p);
        break;
    case COLUMN_TEXT:
    case COLUMN_NAME:
    case COLUMN_TAG:
    case COLUMN_TAGS:
    case COLUMN_KEY:
        db_put_text(&st->sql, *(char *const *)p);
        break;
    case COLUMN_BYTES:
        db_statement_put(st, *(void *const *)p, *(const size_t *)((void *const *)p + 1));
        break;
    case COLUMN_TOKEN:
        if (token[TASK_TOKEN_SIZE])
            sql_put_token(&st->sql, token);
        else
            buf_str(&st->sql, "NULL");
        break;
    case COLUMN_LEVEL:
        sql_put(&st->sql, "?", SQL_LEVEL(*(const int *)p));
        break;
    case COLUMN_OUTCOME:
        db_put_text(&st->sql, task_outcome_name(*(const int *)p));
        break;
    default:
        if (column_number(c, row, &number))
            buf_u64(&st->sql, number);
        else
            buf_str(&st->sql, "NULL");
    }
}

void field_put_values(struct db_statement *st, const struct column *c, size_t count,
                      const void *row)
{
    const char *between = "";

    for (size_t i = 0; i < count; i++) {
        if (!c[i].sql)
            continue;
        buf_str(&st->sql, between);
        put_value(st, &c[i], row);
        between = ", ";
    }
}
