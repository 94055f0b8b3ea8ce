/*
 * db.h - one connection to the server. Behind it (db*.c) is the only place that knows the client
 * library.
 *
 * A connection is made when it is first needed and again after it broke, never behind a statement's
 * back: a statement whose connection breaks returns ERR_LOST, and its outcome is unknown until the
 * caller has looked. The next connection to that server first kills what the broken one left
 * running there, so that what the caller then sees does not change behind his back. Sessions are
 * autocommit, READ COMMITTED, utf8mb4, without limits and modes of the server's configuration
 * (db_session.c has the list), CLIENT_FOUND_ROWS (affected rows are matched rows), no LOCAL INFILE,
 * no automatic reconnect, no multi-statements. Client and server error numbers are mapped to enum
 * err_code here and nowhere else.
 */
#ifndef DQ_STORE_DB_H
#define DQ_STORE_DB_H

#include "base/buf.h"
#include "base/err.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;

/* A handle, not yet connected. conf must outlive it. The password is read (password_file) at the
 * first connect and kept, so that a process may give up its rights afterwards; `db_load_secret`
 * does that at once. db_free closes and wipes. */
struct db *db_new(const struct conf_mysql *conf);
void db_free(struct db *db);
int db_load_secret(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* Makes sure of a connection: none yet, or broken: tries the hosts in order. Blocks up to
 * connect_timeout per host. If several hosts are configured, one that is read-only is passed over,
 * and one that let the last statement time out is used only if there is no other. ERR_UNAVAILABLE,
 * ERR_DENIED, ERR_CONFIG (unknown database, TLS). */
int db_connect(struct db *db, struct err *err) __attribute__((warn_unused_result));
/* db_connect for the one who sets up: a database that does not exist is created (utf8mb4). */
int db_connect_create(struct db *db, struct err *err) __attribute__((warn_unused_result));
/* Before connecting: this handle only reads; a read-only server is used if there is no other.
 * db_is_read_only: this happened. */
void db_set_reader(struct db *db);
bool db_is_read_only(const struct db *db);
bool db_connected(const struct db *db);
void db_close(struct db *db); /* keeps the handle: the next db_connect starts anew */
/* "MariaDB 10.11.19 at db1:3306" for messages; "not connected" */
const char *db_server(const struct db *db);

const char *db_client(void); /* name and version of the client library */

/* How long a session waits, and is waited for, in seconds. Call before connecting; otherwise as
 * DB_SESSION_DEFAULT says. */
struct db_session {
    /* For a row that another transaction has locked: then ERR_LOCKED. 0: not at all on MariaDB, 1 s
     * on MySQL. */
    unsigned lock_wait_s;
    /* For a table that is being altered, or locked as a whole: at least 1. */
    unsigned table_wait_s;
    /* The server ends a session that is silent for this long, and rolls its transaction back: what
     * becomes of the locks of a host that is gone. Within a transaction, or a half-sent statement,
     * at most 30 s on MariaDB. */
    unsigned idle_s;
};
/* clang-format off */
#define DB_SESSION_DEFAULT {2, 20, 3600}
/* clang-format on */
void db_set_session(struct db *db, const struct db_session *session);

/* One statement without a result set. sql is sent as it is: numbers formatted by us, everything
 * else through db_put_*. *ret_rows, where not NULL, gets the matched rows. After ERR_TRANSIENT and
 * ERR_LOCKED a ROLLBACK has been done. */
int db_exec(struct db *db, const struct buf *sql, uint64_t *ret_rows, struct err *err)
    __attribute__((warn_unused_result));
uint64_t db_insert_id(const struct db *db); /* of the last statement without a result set */
/* the same: "Duplicates" of a multi-row INSERT ... ON DUPLICATE KEY UPDATE */
uint64_t db_duplicates(const struct db *db);

/* A statement with a result set of so many columns, read row by row. `stream` true: rows are
 * fetched as they are asked for (nothing else may use the connection meanwhile), else the whole
 * result is in memory. What a server sends is not trusted: another number of columns, or no result
 * at all, is ERR_FATAL and closes the connection; any cell may be NULL or hold any bytes, also
 * where the schema says otherwise. The functions below give a value for all of these; callers check
 * what they use as an index or a size. */
struct db_rows;
/* as many as come, at least one: for statements whose columns depend on the server */
#define DB_ANY_COLUMNS 0
int db_query(struct db *db, const struct buf *sql, unsigned columns, bool stream,
             struct db_rows **ret, struct err *err) __attribute__((warn_unused_result));
/* The next row: 1, 0 at the end or if r is NULL, negative on error. Cells are valid until the next
 * call. */
int db_rows_next(struct db_rows *r, struct err *err) __attribute__((warn_unused_result));
void db_rows_free(struct db_rows *r); /* drains what is left; NULL is fine */

/* What most statements need of these: runs one and calls fn for each row; r is valid until fn
 * returns, which goes on with 0, ends it with 1, and ends it with an error that is negative. 0 or
 * the error. db_each_streamed: as `stream`. db_first: for the first row alone (fn NULL: none); 1,
 * or 0 without a row. */
int db_each(struct db *db, const struct buf *sql, unsigned columns,
            int (*fn)(const struct db_rows *r, void *arg, struct err *err), void *arg,
            struct err *err) __attribute__((warn_unused_result));
int db_each_streamed(struct db *db, const struct buf *sql, unsigned columns,
                     int (*fn)(const struct db_rows *r, void *arg, struct err *err), void *arg,
                     struct err *err) __attribute__((warn_unused_result));
int db_first(struct db *db, const struct buf *sql, unsigned columns,
             void (*fn)(const struct db_rows *r, void *arg), void *arg, struct err *err)
    __attribute__((warn_unused_result));

/* Cells of a row. */
bool db_is_null(const struct db_rows *r, unsigned col);
/* NULL for SQL NULL; NUL-terminated */
const char *db_text(const struct db_rows *r, unsigned col, size_t *ret_len);
const char *db_string(const struct db_rows *r, unsigned col); /* "" for NULL */
/* Numbers: what begins no number is 0, what is out of range the nearest that is in it. */
uint64_t db_u64(const struct db_rows *r, unsigned col); /* 0 for NULL */
uint32_t db_u32(const struct db_rows *r, unsigned col); /* 0 for NULL */
int db_int(const struct db_rows *r, unsigned col, int if_null);
int64_t db_i64(const struct db_rows *r, unsigned col, int64_t if_null);
/* DATETIME(3) -> ms; TASK_TIME_NONE for NULL, TASK_TIME_ZERO for no date */
int64_t db_time(const struct db_rows *r, unsigned col);
/* The digits YYYYMMDDhhmmssmmm of a DATETIME as a number: in the server's order, whatever they say,
 * and nothing is lost. */
uint64_t db_stamp(const struct db_rows *r, unsigned col);

/* Literals, appended to a statement: the same value in every character set and sql_mode. No
 * connection is needed. */
/* utf8mb4 string, invalid UTF-8 as '?'; NULL: NULL */
void db_put_text(struct buf *sql, const char *s);
void db_put_bytes(struct buf *sql, const void *p, size_t len); /* binary string; p NULL: NULL */
/* DATETIME(3) literal; TASK_TIME_NONE: NULL */
void db_put_time(struct buf *sql, int64_t at);
void db_put_stamp(struct buf *sql, uint64_t stamp); /* DATETIME(3) literal */

/* A statement whose long values are sent beside its text, one for each ? outside of its literals: a
 * packet then takes what they are, not what they would be as literals. The values belong to the
 * caller, and are read when the statement is executed. */
struct db_value {
    const void *data;
    size_t size;
};
struct db_statement {
    struct buf sql;
    struct db_value *values;
    size_t count, cap;
};
/* clang-format off */
#define DB_STATEMENT_INIT {BUF_INIT, NULL, 0, 0}
/* clang-format on */
/* leaves an empty usable one */
void db_statement_done(struct db_statement *s);
void db_put_value(struct db_statement *s, const void *p, size_t len); /* db_put_bytes, or a ? */
void db_statement_add(struct db_statement *to, const struct db_statement *from);
/* back to what sql.len and count were */
void db_statement_cut(struct db_statement *s, size_t len, size_t count);
/* the largest packet it takes; for db_max_packet */
size_t db_statement_packet(const struct db_statement *s);
/* What db_put_text appends at most for a text of that length; and db_put_value, to the text and
 * (*ret_values) to the values. */
size_t db_text_room(size_t len);
size_t db_value_room(size_t len, size_t *ret_values);
int db_exec_statement(struct db *db, const struct db_statement *s, uint64_t *ret_rows,
                      struct err *err) __attribute__((warn_unused_result)); /* as db_exec */

/* Transactions of a few statements. db_begin/db_commit may return ERR_LOST: unknown. db_rollback
 * never fails (it may close). */
int db_begin(struct db *db, struct err *err) __attribute__((warn_unused_result));
int db_commit(struct db *db, struct err *err) __attribute__((warn_unused_result));
void db_rollback(struct db *db);

/* For the look-up of an unknown outcome. The connection may lead to another server of a cluster by
 * now, one that has not applied yet what the first one committed: between these two, reads wait
 * until it has (Galera: wsrep_sync_wait; Group Replication: group_replication_consistency =
 * BEFORE). Two statements on such servers, none on others, and one more per connection to know.
 * db_latest_end never fails (it may close). */
int db_latest_begin(struct db *db, struct err *err) __attribute__((warn_unused_result));
void db_latest_end(struct db *db);

/* The server's max_allowed_packet, asked once per connection. */
int db_max_packet(struct db *db, size_t *ret_bytes, struct err *err)
    __attribute__((warn_unused_result));
bool db_is_mariadb(const struct db *db);
unsigned db_server_version(const struct db *db); /* 101119 for 10.11.19 */
/* whether the server knows SKIP LOCKED and NOWAIT */
bool db_skips_locked(const struct db *db);

#endif
