/*
 * handler_store.c - see handler_store.h.
 *
 * Invariant: the handlers of a number are there completely or not at all.
 */
#include "store/fleet/handler_store.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/field.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

/* Far below any max_allowed_packet in use, and enough for hundreds of rows. */
#define STATEMENT_BYTES ((size_t)64 << 10)

/* clang-format off */
#define SEEN_COLUMNS(X)                                                                     \
    X(SEEN_KNOWN, "EXISTS (SELECT 1 FROM dq_handler WHERE handlers = %" PRIu64 ")")         \
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
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT ");
    buf_printf(&sql, COLUMNS_SELECT(SEEN_COLUMNS), handlers);
    int rc = db_first(db, &sql, SEEN_COUNT, take_seen, ret, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

static void put_row(struct buf *sql, uint64_t handlers, size_t number, const struct handler_row *r)
{
    buf_printf(sql, "(%" PRIu64 ",", handlers);
    db_put_text(sql, r->pattern);
    buf_printf(sql,
               ",%d,%zu,%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32
               ",%" PRId64 ",",
               r->is_glob, number, r->line, r->digest, r->batch, r->max_running,
               r->global_max_running, r->max_attempts, r->timeout_ms);
    db_put_text(sql, r->retry);
    buf_chr(sql, ')');
}

static int insert_all(struct db *db, uint64_t handlers, const struct handler_row *rows,
                      size_t count, struct err *err)
{
    struct buf sql = BUF_INIT;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        buf_str(
            &sql,
            sql.len
                ? ","
                : "INSERT INTO dq_handler (handlers, pattern, is_glob, number, line, digest, batch, max_running,"
                  " global_max_running, max_attempts, timeout, retry) VALUES ");
        put_row(&sql, handlers, i, &rows[i]);
        if (sql.len < STATEMENT_BYTES && i + 1 < count)
            continue;
        rc = db_exec(db, &sql, NULL, err);
        buf_reset(&sql);
    }
    buf_done(&sql);
    return rc;
}

int handler_store_put(struct db *db, uint64_t handlers, const struct handler_row *rows,
                      size_t count, struct err *err)
{
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = insert_all(db, handlers, rows, count, err);
    rc = db_end(db, rc, err);
    return rc == ERR_DUPLICATE ? 0 : rc; /* another dqd has added them since */
}

/* ---- what nobody refers to */

struct numbers {
    uint64_t *items;
    size_t count;
};

static int add_number(const struct db_rows *r, void *arg, struct err *err)
{
    struct numbers *n = arg;

    (void)err;
    n->items = mem_resize(n->items, n->count + 1, sizeof *n->items);
    n->items[n->count++] = db_u64(r, COLUMNS_ONLY);
    return 0;
}

/* A read first: nearly always there is nothing to delete, and nothing is locked. */
static int find_unused(struct db *db, struct numbers *ret, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql,
            "SELECT handlers FROM (SELECT handlers FROM dq_handler GROUP BY handlers) h"
            " WHERE handlers NOT IN (SELECT handlers FROM dq_poller WHERE handlers IS NOT NULL)");
    int rc = db_each(db, &sql, COLUMNS_ONE, add_number, ret, err);
    buf_done(&sql);
    return rc;
}

int handler_store_clean(struct db *db, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct numbers unused = {0};
    int rc = find_unused(db, &unused, err);

    for (size_t i = 0; rc == 0 && i < unused.count; i++) {
        buf_reset(&sql);
        buf_printf(&sql, "DELETE FROM dq_handler WHERE handlers = %" PRIu64, unused.items[i]);
        rc = db_exec(db, &sql, NULL, err);
    }
    buf_reset(&sql);
    buf_str(&sql, "DELETE FROM dq_rest WHERE token NOT IN (SELECT token FROM dq_poller)");
    if (rc == 0)
        rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    free(unused.items);
    return rc;
}

/* ---- lists */

#define ROW(sql, type, field) COLUMN(handler_row, sql, NULL, type, field, 0, 0, NULL, NULL)
static const struct column row_columns[] = {
    ROW("handlers", U64, handlers),
    ROW("pattern", NAME, pattern),
    ROW("is_glob", BOOL, is_glob),
    ROW("line", U32, line),
    ROW("digest", U64, digest),
    ROW("batch", U32, batch),
    ROW("max_running", U32, max_running),
    ROW("global_max_running", U32, global_max_running),
    ROW("max_attempts", U32, max_attempts),
    ROW("timeout", MS, timeout_ms),
    ROW("retry", TEXT, retry),
};
#define ROW_COLUMNS (sizeof row_columns / sizeof row_columns[0])

struct rows {
    struct handler_row *items;
    size_t count, cap;
};

static int add_row(const struct db_rows *r, void *arg, struct err *err)
{
    struct rows *list = arg;

    (void)err;
    MEM_ROOM(list->items, list->count, list->cap);
    field_read_all(r, row_columns, ROW_COLUMNS, &list->items[list->count++]);
    return 0;
}

int handler_store_list(struct db *db, const uint64_t *handlers, size_t n, struct handler_row **ret,
                       size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct rows list = {0};
    int rc = 0;

    if (n) {
        buf_str(&sql, "SELECT ");
        unsigned columns = field_put_names(&sql, "", row_columns, ROW_COLUMNS);
        buf_str(&sql, " FROM dq_handler WHERE ");
        sql_put_ids(&sql, "handlers", handlers, n);
        buf_str(&sql, " ORDER BY handlers, number");
        rc = db_each(db, &sql, columns, add_row, &list, err);
    }
    buf_done(&sql);
    if (rc < 0) {
        handler_store_free(list.items, list.count);
        return rc;
    }
    *ret = list.items;
    *ret_count = list.count;
    return 0;
}

void handler_store_free(struct handler_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(rows[i].pattern), free(rows[i].retry);
    free(rows);
}

/* ---- rests */

static void put_rest(struct buf *sql, const struct claim_owner *owner, const struct handler_rest *r)
{
    buf_chr(sql, '(');
    sql_put_token(sql, owner->token);
    buf_chr(sql, ',');
    db_put_text(sql, r->tag);
    buf_chr(sql, ',');
    sql_put_from_now(sql, r->for_ms);
    buf_printf(sql, ",%d,", (int)r->reason);
    db_put_text(sql, r->error);
    buf_chr(sql, ')');
}

static int replace_rests(struct db *db, const struct claim_owner *owner,
                         const struct handler_rest *rests, size_t count, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "DELETE FROM dq_rest WHERE token = ");
    sql_put_token(&sql, owner->token);
    int rc = db_exec(db, &sql, NULL, err);
    buf_reset(&sql);
    buf_str(&sql, "INSERT INTO dq_rest (token, tag, rest_until, reason, error) VALUES ");
    for (size_t i = 0; i < count; i++) {
        buf_str(&sql, i ? "," : "");
        put_rest(&sql, owner, &rests[i]);
    }
    if (rc == 0 && count)
        rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
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

/* clang-format off */
#define REST_COLUMNS(X)      \
    X(REST_TOKEN, "token")   \
    X(REST_TAG, "tag")       \
    X(REST_REASON, "reason") \
    X(REST_ERROR, "error")   \
    X(REST_FOR, "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), rest_until) DIV 1000")
/* clang-format on */
enum { REST_COLUMNS(COLUMNS_NAME) REST_COUNT };

struct rests {
    struct handler_rest *items;
    size_t count;
};

static int add_rest(const struct db_rows *r, void *arg, struct err *err)
{
    struct rests *list = arg;

    (void)err;
    list->items = mem_resize(list->items, list->count + 1, sizeof *list->items);
    struct handler_rest *rest = &list->items[list->count++];
    *rest = (struct handler_rest){
        .reason = MIN((enum handler_reason)db_u32(r, REST_REASON), HANDLER_SLOW),
        .tag = sql_dup_tag(r, REST_TAG),
        .error = sql_dup(r, REST_ERROR, NULL),
        .for_ms = db_i64(r, REST_FOR, 0)};
    sql_read_token(r, REST_TOKEN, rest->token);
    return 0;
}

int handler_store_list_rests(struct db *db, struct handler_rest **ret, size_t *ret_count,
                             struct err *err)
{
    struct buf sql = BUF_INIT;
    struct rests list = {0};

    buf_printf(&sql, "SELECT %s FROM dq_rest ORDER BY token, tag LIMIT %d",
               COLUMNS_SELECT(REST_COLUMNS), HANDLER_RESTS_MOST);
    int rc = db_each(db, &sql, REST_COUNT, add_rest, &list, err);
    buf_done(&sql);
    if (rc < 0) {
        handler_store_free_rests(list.items, list.count);
        return rc;
    }
    *ret = list.items;
    *ret_count = list.count;
    return 0;
}

void handler_store_free_rests(struct handler_rest *rests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(rests[i].tag), free(rests[i].error);
    free(rests);
}
