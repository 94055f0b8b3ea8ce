/*
 * db_statement.c - statements whose long values are sent beside their text.
 *
 * Invariant: such a value is sent as it is, so that the server's packet limit applies to its own
 * length, not to that of a literal.
 */
#include "store/db/db_statement.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/db.h"
#include "store/db/db_connect.h"
#include "store/db/db_handle.h"
#include "store/db/db_put.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

/* A literal saves the two round trips of a prepared statement, but takes twice the length of the
 * value if it is in hex. */
#define LONG_PLAIN 16384
#define LONG_HEX 1024
#define PACKET_OVERHEAD 64 /* of a statement's text, or of all values together */
#define VALUE_OVERHEAD 16  /* of each value */
#define ER_MAX_PREPARED_STMT_COUNT 1461
#define ER_MAX_STATEMENT_HANDLES 6411
#define CR_MALFORMED 2027

void db_statement_done(struct db_statement *s)
{
    buf_done(&s->sql);
    free(s->values);
    *s = (struct db_statement)DB_STATEMENT_INIT;
}

void db_statement_cut(struct db_statement *s, size_t len, size_t count)
{
    s->sql.len = len;
    if (s->sql.data)
        s->sql.data[len] = '\0';
    s->count = count;
}

static void add_value(struct db_statement *s, struct db_statement_value value)
{
    MEM_ROOM(s->values, s->count, s->cap);
    s->values[s->count++] = value;
}

void db_statement_put(struct db_statement *s, const void *p, size_t len)
{
    if (!p || len <= LONG_HEX || (len <= LONG_PLAIN && db_put_is_plain(p, len))) {
        db_put_bytes(&s->sql, p, len);
        return;
    }
    buf_chr(&s->sql, '?');
    add_value(s, (struct db_statement_value){p, len});
}

void db_statement_add(struct db_statement *to, const struct db_statement *from)
{
    buf_add(&to->sql, from->sql.data, from->sql.len);
    for (size_t i = 0; i < from->count; i++)
        add_value(to, from->values[i]);
}

size_t db_statement_room(size_t len, size_t *ret_values)
{
    *ret_values = len > LONG_HEX ? len + VALUE_OVERHEAD : 0;
    return len > LONG_PLAIN ? 1 : len > LONG_HEX ? db_put_room(len) - len : db_put_room(len);
}

size_t db_statement_packet(const struct db_statement *s)
{
    size_t values = 0;

    for (size_t i = 0; i < s->count; i++)
        values += s->values[i].size + VALUE_OVERHEAD;
    return MAX(values, s->sql.len) + PACKET_OVERHEAD;
}

/* The server allows no further prepared statement, so the values are sent as literals. A ? within
 * quotes is text. */
static int exec_literals(struct db *db, const struct db_statement *s, uint64_t *ret_rows,
                         struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    size_t max = 0, used = 0;
    bool quoted = false;

    for (const char *p = s->sql.data, *end = p + s->sql.len; p < end; p++) {
        quoted ^= *p == '\'';
        if (*p == '?' && !quoted && used < s->count) {
            db_put_bytes(&sql, s->values[used].data, s->values[used].size);
            used++;
        } else {
            buf_chr(&sql, *p);
        }
    }
    int rc = db_max_packet(db, &max, err);
    if (rc == 0 && sql.len + PACKET_OVERHEAD > max)
        rc = err_set(
            err, ERR_DATA,
            "%s: the server has no prepared statement left, and a value does not fit into a packet without one: raise"
            " max_prepared_stmt_count or max_allowed_packet",
            db->at);
    if (rc == 0)
        rc = db_exec(db, &sql, ret_rows, err);
    return rc;
}

/* Returns 0, or the number of an error, with its message in text. */
static unsigned run_prepared(struct db *db, const struct db_statement *s, uint64_t *ret_rows,
                             char *text, size_t size)
{
    MYSQL_STMT *stmt = mysql_stmt_init(db->my);
    MEM_LOCAL MYSQL_BIND *bind = mem_zero(s->count, sizeof *bind);
    MEM_LOCAL unsigned long *lengths = mem_zero(s->count, sizeof *lengths);
    unsigned number = 0;

    for (size_t i = 0; i < s->count; i++) {
        lengths[i] = s->values[i].size;
        bind[i].buffer_type = MYSQL_TYPE_LONG_BLOB;
        bind[i].buffer = (void *)s->values[i].data;
        bind[i].buffer_length = lengths[i];
        bind[i].length = &lengths[i];
    }
    if (!stmt)
        abort(); /* out of memory */
    if (mysql_stmt_prepare(stmt, s->sql.data, s->sql.len) ||
        mysql_stmt_param_count(stmt) != s->count || mysql_stmt_bind_param(stmt, bind) ||
        mysql_stmt_execute(stmt)) {
        number = mysql_stmt_errno(stmt);
        snprintf(text, size, "%s", mysql_stmt_error(stmt));
        if (!number) { /* the server counts the parameters differently */
            number = CR_MALFORMED;
            snprintf(text, size, "malformed packet");
        }
    } else {
        db_handle_note_result(db, mysql_stmt_insert_id(stmt));
        if (ret_rows)
            *ret_rows = mysql_stmt_affected_rows(stmt);
    }
    mysql_stmt_close(stmt);
    return number;
}

int db_statement_exec(struct db *db, const struct db_statement *s, uint64_t *ret_rows,
                      struct err *err)
{
    char text[512];

    if (!s->count)
        return db_exec(db, &s->sql, ret_rows, err);
    int rc = db_connect(db, err);
    if (rc < 0)
        return rc;
    db->sent_at = when_steady();
    unsigned number = run_prepared(db, s, ret_rows, text, sizeof text);
    if (number == ER_MAX_PREPARED_STMT_COUNT || number == ER_MAX_STATEMENT_HANDLES)
        return exec_literals(db, s, ret_rows, err);
    return number ? db_handle_fail_with(db, number, text, err) : 0;
}
