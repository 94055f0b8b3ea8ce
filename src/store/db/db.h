/*
 * db.h - statements on one connection to the server, their results, and transactions.
 *
 * The client library is known to db*.c only, which also map its error numbers and the server's to
 * enum err_code. db_connect.h makes the connection: the functions below call it if there is none,
 * or if it broke earlier. A statement is sent at most once, but for a SELECT of
 * a patient handle (db_connect_patiently). If its connection breaks, that is ERR_LOST, and the
 * outcome is unknown until the caller has looked it up.
 */
#ifndef DQ_STORE_DB_DB_H
#define DQ_STORE_DB_DB_H

#include "base/buf.h"
#include "base/err.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;

/* A handle that is not connected yet. conf must outlive it. db_free closes the connection and wipes
 * the password; NULL is fine. */
struct db *db_new(const struct conf_mysql *conf);
void db_free(struct db *db);

/* Closes the connection and abandons an open transaction. The handle stays usable: the next
 * statement connects again. */
void db_close(struct db *db);
bool db_connected(const struct db *db);
/* "MariaDB 10.11.19 at db1:3306" or "not connected", for messages. */
const char *db_server(const struct db *db);
/* The host of the connection, "db1" or, over a socket, "localhost"; a port only if it is not the
 * usual one. Valid until the next connection. */
const char *db_host(struct db *db);
const char *db_client(void); /* name and version of the client library */

/* Of the server connected to last. */
bool db_is_mariadb(const struct db *db);
unsigned db_server_version(const struct db *db); /* 101119: 10.11.19 */
bool db_skips_locked(const struct db *db);       /* has SKIP LOCKED and NOWAIT */
/* The most bytes in a packet: max_allowed_packet, asked once per connection. */
int db_max_packet(struct db *db, size_t *ret_bytes, struct err *err)
    __attribute__((warn_unused_result));

/* Runs a statement without a result set, connecting first if need be. sql is sent as it is: values
 * that dq did not format itself belong in db_put.h. *ret_rows, unless NULL, is set to the number of
 * matched rows. After ERR_TRANSIENT and ERR_LOCKED a ROLLBACK has been done. */
int db_exec(struct db *db, const struct buf *sql, uint64_t *ret_rows, struct err *err)
    __attribute__((warn_unused_result));
/* After db_exec and db_statement_exec: the id that the statement generated, and "Duplicates" of a
 * multi-row INSERT ... ON DUPLICATE KEY UPDATE. */
uint64_t db_insert_id(const struct db *db);
uint64_t db_duplicates(const struct db *db);

/* Results. The server is not trusted: a result with another number of columns, or none, is
 * ERR_FATAL and closes the connection. Any cell may be NULL or hold any bytes, whatever the schema
 * says; the functions below return a value in every case, and callers check what they use as an
 * index or a size. */
struct db_rows;
/* For statements whose columns depend on the server: any number but 0. */
#define DB_ANY_COLUMNS 0

/* r is valid until it returns. */
typedef void db_take_row(const struct db_rows *r, void *arg);
/* Runs a statement and calls fn for each row. Returns 0 or the error. db_all has the whole result
 * in memory, so fn may use the connection; db_all_streamed fetches row by row, and it may not. */
int db_all(struct db *db, const struct buf *sql, unsigned columns, db_take_row *fn, void *arg,
           struct err *err) __attribute__((warn_unused_result));
int db_all_streamed(struct db *db, const struct buf *sql, unsigned columns, db_take_row *fn,
                    void *arg, struct err *err) __attribute__((warn_unused_result));
/* For fn: the statement cannot return this row. No other is taken, and db_odd_row returned, which
 * is always ERR_FATAL. */
void db_refuse_row(const struct db_rows *r);
int db_odd_row(const struct db *db, struct err *err);
/* Calls fn (NULL: nothing) for the first row alone. 1: there was one, 0: none. */
int db_first(struct db *db, const struct buf *sql, unsigned columns, db_take_row *fn, void *arg,
             struct err *err) __attribute__((warn_unused_result));

/* The same in steps, for tests and loops that db_all does not fit. db_rows_next: 1, or 0 at the
 * end or if r is NULL; cells are valid until the next call. db_rows_free reads what is left of a
 * streamed result; NULL is fine. */
int db_query(struct db *db, const struct buf *sql, unsigned columns, bool stream,
             struct db_rows **ret, struct err *err) __attribute__((warn_unused_result));
int db_rows_next(struct db_rows *r, struct err *err) __attribute__((warn_unused_result));
void db_rows_free(struct db_rows *r);

/* Cells of a row. Text that does not begin with a number counts as 0; a number out of range as the
 * nearest one in range. */
bool db_is_null(const struct db_rows *r, unsigned col);
/* NUL-terminated, NULL for SQL NULL. *ret_len, unless NULL, is set to its length. */
const char *db_text(const struct db_rows *r, unsigned col, size_t *ret_len);
const char *db_string(const struct db_rows *r, unsigned col); /* "" for NULL */
uint64_t db_u64(const struct db_rows *r, unsigned col);       /* 0 for NULL */
uint32_t db_u32(const struct db_rows *r, unsigned col);       /* 0 for NULL */
int db_int(const struct db_rows *r, unsigned col, int if_null);
int64_t db_i64(const struct db_rows *r, unsigned col, int64_t if_null);
/* A DATETIME(3) in ms; TASK_TIME_NONE for NULL, TASK_TIME_ZERO for what is no date. */
int64_t db_time(const struct db_rows *r, unsigned col);
/* The digits YYYYMMDDhhmmssmmm of a DATETIME as a number: orders dates that do not exist as the
 * server does, and loses nothing. */
int64_t db_stamp(const struct db_rows *r, unsigned col);

/* Reads the server's clock. Blocks. */
int db_now(struct db *db, int64_t *ret_at, struct err *err) __attribute__((warn_unused_result));

/* Transactions of a few statements. db_begin connects if need be; while a transaction is open,
 * nothing else does: ERR_LOST instead.
 *
 * db_end ends it: commits if rc, which is that of its statements, is 0, else rolls back, and also
 * if it cannot commit. Returns rc, or the failure of the commit; after ERR_LOST the outcome is
 * unknown. Rolling back cannot fail, but may close the connection. */
int db_begin(struct db *db, struct err *err) __attribute__((warn_unused_result));
int db_end(struct db *db, int rc, struct err *err) __attribute__((warn_unused_result));

#endif
