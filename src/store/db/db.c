/*
 * db.c - statements, results and transactions on one connection to the server.
 *
 * Invariant: a statement that changes something is sent at most once, and within a transaction only
 * on the connection that began it.
 */
#include "store/db/db.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "conf/conf_file.h"
#include "store/db/columns.h"
#include "store/db/db_connect.h"
#include "store/db/db_handle.h"
#include "store/db/db_session.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define USUAL_PORT ":3306"

#define STAMP_DIGITS 17

struct db_rows {
    struct db *db;
    bool stream;
    MYSQL_RES *res;
    MYSQL_ROW row;
    const unsigned long *len;
    bool *refused; /* see db_refuse_row */
};

/* ---- the handle */

struct db *db_new(const struct conf_mysql *conf)
{
    static const struct db_session usual = DB_SESSION_DEFAULT;
    struct db *db = mem_zero(1, sizeof *db);

    db->conf = conf;
    db_session_set(db, &usual);
    return db;
}

void db_free(struct db *db)
{
    if (!db)
        return;
    db_close(db);
    conf_file_wipe_secret(db->password);
    free(db);
}

bool db_connected(const struct db *db)
{
    return db->my;
}

void db_close(struct db *db)
{
    db_handle_drop(db);
    db->in_tx = false;
}

const char *db_client(void)
{
    static char text[64];
#ifdef MARIADB_PACKAGE_VERSION
    snprintf(text, sizeof text, "MariaDB Connector/C %s", mysql_get_client_info());
#else
    snprintf(text, sizeof text, "libmysqlclient %s", mysql_get_client_info());
#endif
    return text;
}

const char *db_server(const struct db *db)
{
    return db->my ? db->server : "not connected";
}

const char *db_host(struct db *db)
{
    const size_t usual = strlen(USUAL_PORT), len = strlen(db->at);

    snprintf(db->host, sizeof db->host, "%s", *db->at == '/' ? "localhost" : db->at);
    if (len > usual && !strcmp(db->at + len - usual, USUAL_PORT))
        db->host[len - usual] = '\0';
    return db->host;
}

bool db_is_mariadb(const struct db *db)
{
    return db->mariadb;
}

bool db_skips_locked(const struct db *db)
{
    return db->version >= (db->mariadb ? 100600 : 80001);
}

unsigned db_server_version(const struct db *db)
{
    return db->version;
}

/* ---- statements */

static int send_statement(struct db *db, const struct buf *sql, struct err *err)
{
    int rc = db_connect(db, err);
    if (rc < 0)
        return rc;
    db->sent_at = when_steady();
    return mysql_real_query(db->my, sql->data, sql->len) ? db_handle_fail(db, err) : 0;
}

int db_exec(struct db *db, const struct buf *sql, uint64_t *ret_rows, struct err *err)
{
    int rc = send_statement(db, sql, err);
    if (rc < 0)
        return rc;
    if (mysql_field_count(db->my))
        return db_handle_odd_answer(db, mysql_field_count(db->my), 0, err);
    db_handle_note_result(db, mysql_insert_id(db->my));
    if (ret_rows)
        *ret_rows = mysql_affected_rows(db->my);
    return 0;
}

uint64_t db_insert_id(const struct db *db)
{
    return db->insert_id;
}

uint64_t db_duplicates(const struct db *db)
{
    return db->duplicates;
}

static int query_once(struct db *db, const struct buf *sql, unsigned columns, bool stream,
                      struct db_rows **ret, struct err *err)
{
    int rc = send_statement(db, sql, err);
    if (rc < 0)
        return rc;
    if (columns == DB_ANY_COLUMNS ? mysql_field_count(db->my) == 0
                                  : mysql_field_count(db->my) != columns)
        return db_handle_odd_answer(db, mysql_field_count(db->my), columns, err);
    MYSQL_RES *res = stream ? mysql_use_result(db->my) : mysql_store_result(db->my);
    if (!res)
        return db_handle_fail(db, err);
    struct db_rows *r = mem_zero(1, sizeof *r);
    r->db = db;
    r->stream = stream;
    r->res = res;
    *ret = r;
    return 0;
}

int db_query(struct db *db, const struct buf *sql, unsigned columns, bool stream,
             struct db_rows **ret, struct err *err)
{
    static const char select[] = "SELECT ";
    const bool again = !db->in_tx && !db->latest && sql->len >= strlen(select) &&
                       !memcmp(sql->data, select, strlen(select));
    int rc;

    do
        rc = query_once(db, sql, columns, stream, ret, err);
    while (rc < 0 && again && db_connect_again(db, rc, err));
    return rc;
}

int db_rows_next(struct db_rows *r, struct err *err)
{
    char text[512];

    if (!r || !r->res)
        return 0;
    r->row = mysql_fetch_row(r->res);
    if (r->row) {
        r->len = mysql_fetch_lengths(r->res);
        return 1;
    }
    unsigned number = r->stream && r->db->my ? mysql_errno(r->db->my) : 0;
    if (!number)
        return 0;
    snprintf(text, sizeof text, "%s", mysql_error(r->db->my));
    mysql_free_result(r->res); /* while the connection exists: a streamed result points to it */
    r->res = NULL;
    return db_handle_fail_with(r->db, number, text, err);
}

void db_rows_free(struct db_rows *r)
{
    if (!r)
        return;
    if (r->res)
        mysql_free_result(r->res);
    free(r);
}

int db_odd_row(const struct db *db, struct err *err)
{
    return err_set(
        err, ERR_FATAL,
        "%s: the server sent a row that was not requested: is something else listening there?",
        db_server(db));
}

void db_refuse_row(const struct db_rows *r)
{
    *r->refused = true;
}

static int each_row(struct db *db, const struct buf *sql, unsigned columns, bool stream,
                    db_take_row *take, void *arg, struct err *err)
{
    struct db_rows *rows = NULL;
    bool refused = false;

    int rc = db_query(db, sql, columns, stream, &rows, err);
    if (rows)
        rows->refused = &refused;
    while (rc == 0 && !refused && (rc = db_rows_next(rows, err)) == 1) {
        take(rows, arg);
        rc = 0;
    }
    db_rows_free(rows);
    return refused ? db_odd_row(db, err) : MIN(rc, 0);
}

int db_all(struct db *db, const struct buf *sql, unsigned columns, db_take_row *take, void *arg,
           struct err *err)
{
    return each_row(db, sql, columns, false, take, arg, err);
}

int db_all_streamed(struct db *db, const struct buf *sql, unsigned columns, db_take_row *take,
                    void *arg, struct err *err)
{
    return each_row(db, sql, columns, true, take, arg, err);
}

int db_first(struct db *db, const struct buf *sql, unsigned columns, db_take_row *fn, void *arg,
             struct err *err)
{
    struct db_rows *rows = NULL;

    int rc = db_query(db, sql, columns, false, &rows, err);
    if (rc == 0)
        rc = db_rows_next(rows, err);
    if (rc == 1 && rows && fn)
        fn(rows, arg);
    db_rows_free(rows);
    return rc;
}

bool db_is_null(const struct db_rows *r, unsigned col)
{
    return !r->row[col];
}

const char *db_text(const struct db_rows *r, unsigned col, size_t *ret_len)
{
    if (ret_len)
        *ret_len = r->len[col];
    return r->row[col];
}

const char *db_string(const struct db_rows *r, unsigned col)
{
    return r->row[col] ? r->row[col] : "";
}

uint64_t db_u64(const struct db_rows *r, unsigned col)
{
    const char *text = db_string(r, col);

    return *text == '-' ? 0 : strtoull(text, NULL, 10);
}

uint32_t db_u32(const struct db_rows *r, unsigned col)
{
    uint64_t number = db_u64(r, col);

    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

int db_int(const struct db_rows *r, unsigned col, int if_null)
{
    int64_t number = db_i64(r, col, if_null);

    return (int)MIN(MAX(number, INT_MIN), INT_MAX);
}

int64_t db_i64(const struct db_rows *r, unsigned col, int64_t if_null)
{
    return r->row[col] ? strtoll(r->row[col], NULL, 10) : if_null;
}

int64_t db_time(const struct db_rows *r, unsigned col)
{
    int64_t at;

    if (!r->row[col])
        return TASK_TIME_NONE;
    return when_parse_sql(r->row[col], &at, NULL) == 0 ? at : TASK_TIME_ZERO;
}

int64_t db_stamp(const struct db_rows *r, unsigned col)
{
    int64_t stamp = 0;
    int digits = 0;

    for (const char *p = db_string(r, col); *p && digits < STAMP_DIGITS; p++)
        if (*p >= '0' && *p <= '9' && ++digits)
            stamp = stamp * 10 + (*p - '0');
    for (; digits < STAMP_DIGITS; digits++)
        stamp *= 10;
    return stamp;
}

/* ---- transactions */

int db_begin(struct db *db, struct err *err)
{
    db->in_tx = false;
    int rc = db_connect(db, err);
    if (rc < 0)
        return rc;
    rc = db_handle_run(db, "START TRANSACTION", err);
    db->in_tx = rc == 0;
    return rc;
}

static int commit(struct db *db, struct err *err)
{
    int rc = db->my
                 ? db_handle_run(db, "COMMIT", err)
                 : err_set(err, ERR_LOST, "%s: the connection broke within a transaction", db->at);
    db->in_tx = false;
    if (rc == 0)
        db->patience_end = 0;
    return rc;
}

int db_end(struct db *db, int rc, struct err *err)
{
    if (rc == 0)
        rc = commit(db, err);
    if (rc < 0)
        db_handle_rollback(db);
    return rc;
}

int db_max_packet(struct db *db, size_t *ret_bytes, struct err *err)
{
    unsigned long long bytes = 0;

    int rc = db_connect(db, err);
    if (rc == 0 && !db->max_packet) {
        rc = db_handle_ask(db, "SELECT @@max_allowed_packet", &bytes, err);
        db->max_packet = (size_t)bytes;
    }
    if (rc == 0)
        *ret_bytes = MIN(db->max_packet, DB_HANDLE_PACKET_MAX);
    return rc;
}

static void take_now(const struct db_rows *r, void *arg)
{
    *(int64_t *)arg = db_time(r, COLUMNS_ONLY);
}

int db_now(struct db *db, int64_t *ret_at, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT UTC_TIMESTAMP(3)");
    int rc = db_first(db, &sql, COLUMNS_ONE, take_now, ret_at, err);
    return rc < 0 ? rc : 0;
}
