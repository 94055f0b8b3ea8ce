/*
 * handler_store.c - see handler_store.h.
 *
 * Invariant: the handlers of a number are there completely or not at all.
 */
#include "store/fleet/handler_store.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/db/columns.h"
#include "store/row/field.h"
#include "store/row/sql.h"

#include <sys/param.h>

/* Far below any max_allowed_packet in use, and enough for hundreds of rows. */
#define STATEMENT_BYTES ((size_t)64 << 10)

/* clang-format off */
#define SEEN_COLUMNS(X)                                                                     \
    X(SEEN_KNOWN, "EXISTS (SELECT 1 FROM dq_handler WHERE handlers = ?)")                   \
    X(SEEN_RESTS, "EXISTS (SELECT 1 FROM dq_rest)")
/* clang-format on */
enum { SEEN_COLUMNS(COLUMNS_NAME) SEEN_COUNT };

static void take_seen(const struct db_rows *r, void *arg)
{
    *(struct handler_seen *)arg =
        (struct handler_seen){db_u64(r, SEEN_KNOWN) == 1, db_u64(r, SEEN_RESTS) == 1};
}

int handler_store_look(struct db *db, uint64_t handlers, struct handler_seen *ret, struct err *err)
{
    BUF_LOCAL struct buf columns = BUF_INIT;

    sql_put(&columns, COLUMNS_SELECT(SEEN_COLUMNS), SQL_ID(handlers));
    return sql_read(db, SEEN_COUNT, take_seen, ret, err, "SELECT ?", SQL_PART(columns.data));
}

static void put_row(struct buf *sql, uint64_t handlers, size_t number, const struct handler_row *r)
{
    sql_put(sql, "(?,?,?,?,?,?,?,?,?,?,?,?,?)", SQL_ID(handlers), SQL_TEXT(r->pattern),
            SQL_INT(r->is_glob), SQL_ID(number), SQL_INT(r->line), SQL_ID(r->digest),
            SQL_INT(r->batch), SQL_INT(r->max_running), SQL_INT(r->global_max_running),
            SQL_INT(r->max_attempts), SQL_INT(r->timeout_ms), SQL_TEXT(r->retry),
            SQL_TEXT(r->limit));
}

static int insert_all(struct db *db, uint64_t handlers, const struct handler_row *rows,
                      size_t count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        buf_str(
            &sql,
            sql.len
                ? ","
                : "INSERT INTO dq_handler (handlers, pattern, is_glob, number, line, digest, batch, max_running,"
                  " global_max_running, max_attempts, timeout, retry, limit_name) VALUES ");
        put_row(&sql, handlers, i, &rows[i]);
        if (sql.len < STATEMENT_BYTES && i + 1 < count)
            continue;
        rc = db_exec(db, &sql, NULL, err);
        buf_reset(&sql);
    }
    return rc;
}

int handler_store_put(struct db *db, const struct claim_owner *owner, uint64_t handlers,
                      const struct handler_row *rows, size_t count, struct err *err)
{
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = insert_all(db, handlers, rows, count, err);
    if (rc == 0)
        rc = sql_exec(db, NULL, err, "UPDATE dq_poller SET handlers = ? WHERE token = ?",
                      SQL_ID(handlers), SQL_TOKEN(owner->token));
    rc = db_end(db, rc, err);
    if (rc == ERR_DUPLICATE && count) /* another dqd has added them since */
        rc = handler_store_put(db, owner, handlers, NULL, 0, err);
    return rc;
}

/* ---- what nobody refers to */

#define ROW(of, sql, type, field) COLUMN(of, sql, NULL, type, field, 0, 0, NULL, NULL)

struct number {
    uint64_t handlers;
};
static const struct column number_columns[] = {ROW(number, "handlers", U64, handlers)};
static const struct field_table number_table = FIELD_TABLE(number, number_columns);

/* A read first: nearly always there is nothing to delete, and nothing is locked. */
int handler_store_clean(struct db *db, struct err *err)
{
    MEM_LOCAL struct number *unused = NULL;
    size_t count = 0;
    int rc = field_list(
        db, &number_table, &unused, &count, err,
        "FROM (SELECT handlers FROM dq_handler GROUP BY handlers) h"
        " WHERE handlers NOT IN (SELECT handlers FROM dq_poller WHERE handlers IS NOT NULL)");

    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = sql_exec(db, NULL, err, "DELETE FROM dq_handler WHERE handlers = ?",
                      SQL_ID(unused[i].handlers));
    if (rc == 0)
        rc = sql_exec(db, NULL, err,
                      "DELETE FROM dq_rest WHERE token NOT IN (SELECT token FROM dq_poller)");
    return rc;
}

/* ---- lists */

static const struct column row_columns[] = {
    ROW(handler_row, "handlers", U64, handlers),
    ROW(handler_row, "pattern", NAME, pattern),
    ROW(handler_row, "is_glob", BOOL, is_glob),
    ROW(handler_row, "line", U32, line),
    ROW(handler_row, "digest", U64, digest),
    ROW(handler_row, "batch", U32, batch),
    ROW(handler_row, "max_running", U32, max_running),
    ROW(handler_row, "global_max_running", U32, global_max_running),
    ROW(handler_row, "max_attempts", U32, max_attempts),
    ROW(handler_row, "timeout", MS, timeout_ms),
    ROW(handler_row, "retry", TEXT, retry),
    ROW(handler_row, "limit_name", TEXT, limit),
};
static const struct field_table row_table = FIELD_TABLE(handler_row, row_columns);

int handler_store_list(struct db *db, const uint64_t *handlers, size_t n, struct handler_row **ret,
                       size_t *ret_count, struct err *err)
{
    *ret = NULL;
    *ret_count = 0;
    if (!n)
        return 0;
    return field_list(db, &row_table, ret, ret_count, err,
                      "FROM dq_handler WHERE handlers IN ? ORDER BY handlers, number",
                      SQL_IDS(handlers, n));
}

void handler_store_free(struct handler_row *rows, size_t count)
{
    field_free(&row_table, rows, count);
}

/* ---- rests */

static int replace_rests(struct db *db, const struct claim_owner *owner,
                         const struct handler_rest *rests, size_t count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    int rc =
        sql_exec(db, NULL, err, "DELETE FROM dq_rest WHERE token = ?", SQL_TOKEN(owner->token));
    buf_str(&sql, "INSERT INTO dq_rest (token, tag, rest_until, reason, error) VALUES ");
    for (size_t i = 0; i < count; i++)
        sql_put(&sql, i ? ",(?,?,?,?,?)" : "(?,?,?,?,?)", SQL_TOKEN(owner->token),
                SQL_TEXT(rests[i].tag), SQL_FROM_NOW(rests[i].for_ms), SQL_INT(rests[i].reason),
                SQL_TEXT(rests[i].error));
    if (rc == 0 && count)
        rc = db_exec(db, &sql, NULL, err);
    return rc;
}

int handler_store_put_rests(struct db *db, const struct claim_owner *owner,
                            const struct handler_rest *rests, size_t count, struct err *err)
{
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = replace_rests(db, owner, rests, count, err);
    return db_end(db, rc, err);
}

static const struct column rest_columns[] = {
    ROW(handler_rest, "token", TOKEN, token),
    ROW(handler_rest, "tag", TAG, tag),
    ROW(handler_rest, "reason", INT, reason),
    ROW(handler_rest, "COALESCE(error, 'not known why')", TEXT, error),
    ROW(handler_rest, "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), rest_until) DIV 1000", MS,
        for_ms),
};
static const struct field_table rest_table = FIELD_TABLE(handler_rest, rest_columns);

int handler_store_list_rests(struct db *db, struct handler_rest **ret, size_t *ret_count,
                             struct err *err)
{
    int rc = field_list(db, &rest_table, ret, ret_count, err,
                        "FROM dq_rest ORDER BY token, tag LIMIT " TEXT_OF(HANDLER_RESTS_MOST));

    for (size_t i = 0; rc == 0 && i < *ret_count; i++)
        (*ret)[i].reason = (int)MIN((unsigned)(*ret)[i].reason, (unsigned)HANDLER_KEPT);
    return rc;
}

void handler_store_free_rests(struct handler_rest *rests, size_t count)
{
    field_free(&rest_table, rests, count);
}
