/*
 * results_client.c - replaces the client library: a server whose answers the input decides. An
 * answer is correct, an error, or has other columns; cells are NULL, numbers, times or any bytes.
 * Each row is a block of its own, freed at the next one, so that the sanitizer notices every byte
 * that is read beyond it.
 */
#include "results.h"

#include "base/mem.h"
#include "store/db/db_connect.h"
#include "store/db/db_handle.h"

#include <errmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef MARIADB_PACKAGE_VERSION
typedef my_bool client_bool;
#else
typedef bool client_bool;
#endif

static const uint8_t *input;
static size_t left;
static bool used_up; /* from then on every answer is plain, so that all loops end */

unsigned results_next(void)
{
    if (!left) {
        used_up = true;
        return 0;
    }
    left--;
    return *input++;
}

/* Nobody waits here. */
int nanosleep(const struct timespec *wanted, struct timespec *rest)
{
    (void)wanted;
    (void)rest;
    return 0;
}

/* ---- the server */

static MYSQL connection;
static bool connected, mariadb;
static unsigned error_number, columns;
static bool idle_process; /* the statement asks whether a broken connection is still at work */

static MYSQL_RES *result; /* one at a time, and nothing in it but that it is there */
static char **row;
static unsigned long *lengths;
static unsigned rows_left;

/* How many columns a statement asks for: commas outside of parentheses and quotes. 0: it has no
 * result. */
static unsigned asked_for(const char *sql, size_t len)
{
    const char *end = sql + len, *p = memmem(sql, len, " RETURNING ", 11);
    unsigned count = 1, depth = 0;

    if (p)
        p += 11;
    else if (len > 5 && !strncmp(sql, "SHOW ", 5))
        return 2;
    else if (len > 8 && !strncmp(sql, "EXPLAIN ", 8))
        return mariadb ? 10 : 12;
    else if (len > 8 && !strncmp(sql + (*sql == '('), "SELECT ", 7))
        p = sql + 7 + (*sql == '(');
    if (!p)
        return 0;
    for (; p < end; p++) {
        if (*p == '\'' && !(p = memchr(p + 1, '\'', (size_t)(end - p - 1))))
            break;
        depth += *p == '(';
        if (*p == ')' && depth-- == 0)
            break;
        if (!depth && end - p > 6 && !memcmp(p, " FROM ", 6))
            break;
        count += *p == ',' && !depth;
    }
    return count;
}

static char *cell(size_t *ret_len)
{
    static const char *const times[] = {"2026-11-21 09:00:00.000", "0000-00-00 00:00:00.000",
                                        "0001-01-01 00:00:00",     "2026-00-15 00:00:00",
                                        "9999-12-31 23:59:59.999", "2026-11-21",
                                        "1969-12-31 23:59:59.999", "99999999-99-99 99:99:99"};
    static const char *const numbers[] = {"18446744073709551615", "-1",   "9223372036854775807",
                                          "-9223372036854775808", "1e99", "99999999999999999999",
                                          "4294967296",           "3.5"};
    unsigned kind = used_up ? 255 : results_next();
    char text[80], *p;

    if (kind < 24)
        return NULL;
    if (used_up)
        snprintf(text, sizeof text, "%d", !idle_process);
    else if (kind < 112)
        snprintf(text, sizeof text, "%u", results_next());
    else if (kind < 144)
        snprintf(text, sizeof text, "%s", numbers[kind % 8]);
    else if (kind < 184)
        snprintf(text, sizeof text, "%s", times[kind % 8]);
    else {
        *ret_len = kind & 31;
        p = mem_alloc(*ret_len + 1);
        for (size_t i = 0; i < *ret_len; i++)
            p[i] = (char)results_next();
        p[*ret_len] = '\0';
        return p;
    }
    *ret_len = strlen(text);
    return mem_dup(text, *ret_len);
}

static void row_free(void)
{
    for (unsigned i = 0; row && i < columns; i++)
        free(row[i]);
    free(row);
    free(lengths);
    row = NULL;
    lengths = NULL;
}

int mysql_real_query(MYSQL *my, const char *sql, unsigned long len)
{
    static const unsigned errors[] = {1020, 1062, 1142, 1205, 1213, 1290, 1317, 1406,
                                      1927, 2006, 2013, 2014, 3100, 4031, 9999, 1046};

    if (my != &connection || !connected || result)
        abort(); /* a statement on no connection, or within a result */
    unsigned how = results_next();
    columns = asked_for(sql, len);
    idle_process = memmem(sql, len, "processlist", 11);
    error_number = 0;
    if (used_up || how < 208)
        return 0;
    if (how < 232)
        error_number = errors[results_next() % 16];
    else
        columns = results_next() % 32;
    return error_number != 0;
}

int mysql_query(MYSQL *my, const char *sql)
{
    return mysql_real_query(my, sql, strlen(sql));
}

unsigned mysql_field_count(MYSQL *my)
{
    (void)my;
    return columns;
}

unsigned mysql_num_fields(MYSQL_RES *r)
{
    (void)r;
    return columns;
}

MYSQL_RES *mysql_store_result(MYSQL *my)
{
    (void)my;
    if (!columns)
        return NULL;
    unsigned rows = used_up ? 1 : results_next();
    result = mem_zero(1, sizeof *result);
    rows_left = rows < 240 ? rows % 6 : rows; /* some pages are full */
    return result;
}

MYSQL_RES *mysql_use_result(MYSQL *my)
{
    return mysql_store_result(my);
}

MYSQL_ROW mysql_fetch_row(MYSQL_RES *r)
{
    if (r != result)
        abort();
    row_free();
    if (!rows_left) {
        if (!used_up && results_next() > 250)
            error_number = 2013; /* a streamed result breaks */
        return NULL;
    }
    rows_left--;
    row = mem_zero(columns, sizeof *row);
    lengths = mem_zero(columns, sizeof *lengths);
    for (unsigned i = 0; i < columns; i++) {
        size_t len = 0;
        row[i] = cell(&len);
        lengths[i] = len;
    }
    return row;
}

unsigned long *mysql_fetch_lengths(MYSQL_RES *r)
{
    (void)r;
    return lengths;
}

void mysql_free_result(MYSQL_RES *r)
{
    if (!r || r != result)
        abort();
    row_free();
    free(r);
    result = NULL;
}

unsigned mysql_errno(MYSQL *my)
{
    (void)my;
    return error_number;
}

const char *mysql_error(MYSQL *my)
{
    (void)my;
    return error_number ? "what the server says about 'x'" : "";
}

my_ulonglong mysql_affected_rows(MYSQL *my)
{
    (void)my;
    unsigned rows = used_up ? 1 : results_next();
    return rows < 250 ? rows % 8 : (my_ulonglong)-1;
}

my_ulonglong mysql_insert_id(MYSQL *my)
{
    (void)my;
    return 7;
}

const char *mysql_info(MYSQL *my)
{
    (void)my;
    return results_next() % 2 ? "Records: 3  Duplicates: 99999999999999999999  Warnings: 0" : NULL;
}

unsigned long mysql_thread_id(MYSQL *my)
{
    (void)my;
    return 1;
}

/* const or not: the libraries differ */
__typeof__(mysql_get_server_info((MYSQL *)0)) mysql_get_server_info(MYSQL *my)
{
    static char version[] = "10.11.0-MariaDB";

    (void)my;
    return version;
}

int mysql_session_track_get_first(MYSQL *my, enum enum_session_state_type what, const char **text,
                                  size_t *len)
{
    static const char value[] = "last_insert_id";

    (void)my, (void)what;
    *text = value;
    *len = results_next() % sizeof value;
    return results_next() % 2;
}

int mysql_session_track_get_next(MYSQL *my, enum enum_session_state_type what, const char **text,
                                 size_t *len)
{
    static char value[40];

    (void)my, (void)what;
    *len = results_next() % sizeof value;
    for (size_t i = 0; i < *len; i++)
        value[i] = (char)results_next();
    *text = value;
    return results_next() % 4 != 1;
}

my_socket mysql_get_socket(MYSQL *my)
{
    (void)my;
    return -1;
}

const char *mysql_get_client_info(void)
{
    return "none";
}

void mysql_close(MYSQL *my)
{
    if (my != &connection || result)
        abort(); /* a result outlives its connection */
    connected = false;
}

/* Only long values are prepared, and none of these is long. */
MYSQL_STMT *mysql_stmt_init(MYSQL *my)
{
    (void)my;
    abort();
}

my_ulonglong mysql_stmt_affected_rows(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

client_bool mysql_stmt_bind_param(MYSQL_STMT *s, MYSQL_BIND *b)
{
    (void)s;
    (void)b;
    return 0;
}

client_bool mysql_stmt_close(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

unsigned mysql_stmt_errno(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

const char *mysql_stmt_error(MYSQL_STMT *s)
{
    (void)s;
    return "";
}

int mysql_stmt_execute(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

my_ulonglong mysql_stmt_insert_id(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

unsigned long mysql_stmt_param_count(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

int mysql_stmt_prepare(MYSQL_STMT *s, const char *sql, unsigned long len)
{
    (void)s;
    (void)sql;
    (void)len;
    return 0;
}

int db_connect(struct db *db, struct err *err)
{
    if (db->my)
        return 0;
    if (db->in_tx)
        return err_set(err, ERR_LOST, "the connection broke within a transaction");
    connected = true;
    db->my = &connection;
    db->mariadb = mariadb = results_next() % 2;
    db->version = 101100;
    return 0;
}

int db_connect_create(struct db *db, struct err *err)
{
    return db_connect(db, err);
}

bool db_connect_again(struct db *db, int rc, struct err *err)
{
    (void)db, (void)rc, (void)err;
    return false;
}

unsigned db_connect_left(const struct db *db)
{
    (void)db;
    return 0;
}

bool db_connect_is_read_only(const struct db *db)
{
    return db->read_only;
}

void results_begin(const uint8_t *bytes, size_t len)
{
    input = bytes;
    left = len;
    used_up = false;
}

bool results_ended(void)
{
    return !result && !connected;
}
