/*
 * db_handle.c - statements on an open connection, and what an error makes of it.
 *
 * Invariant: after a failure the handle is either connected and outside a transaction that the
 * failure ended, or not connected at all.
 */
#include "store/db/db_handle.h"
#include "base/when.h"
#include "store/db/db_error.h"

#include <errmsg.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>

void db_handle_drop(struct db *db)
{
    if (db->my)
        mysql_close(db->my);
    db->my = NULL;
    db->max_packet = 0;
    db->cluster = DB_CLUSTER_UNKNOWN;
}

void db_handle_rollback(struct db *db)
{
    db->in_tx = false;
    if (db->my && mysql_query(db->my, "ROLLBACK"))
        db_handle_drop(db);
}

int db_handle_fail_with(struct db *db, unsigned number, const char *text, struct err *err)
{
    bool drop;

    /* MariaDB's library reports this for any connection under TLS that breaks or times out. */
    if (number == CR_SSL_CONNECTION_ERROR)
        number = CR_SERVER_LOST;
    int code = db_error_set(err, number, text, db->at, &drop);

    /* One at a time: the first is killed before anything else is done. */
    if (code == ERR_LOST && db->my && !db->orphan) {
        db->orphan = mysql_thread_id(db->my);
        db->orphan_identity = db->identity;
        db->orphan_since = db->connected_at;
        db->orphan_start_s = db->start_s;
    }
    if (code == ERR_LOST && when_steady() - db->sent_at >= db->conf->read_timeout_ms)
        memcpy(db->stalled_at, db->at, sizeof db->at);
    if (drop)
        db_handle_drop(db);
    else if (code == ERR_TRANSIENT || code == ERR_LOCKED)
        db_handle_rollback(db);
    return code;
}

int db_handle_fail(struct db *db, struct err *err)
{
    return db_handle_fail_with(db, mysql_errno(db->my), mysql_error(db->my), err);
}

int db_handle_odd_answer(struct db *db, unsigned columns, unsigned wanted, struct err *err)
{
    db_handle_drop(db);
    return err_set(
        err, ERR_FATAL,
        "%s: the server sent a result of %u columns instead of %u: is something else listening there?",
        db->at, columns, wanted);
}

void db_handle_note_result(struct db *db, uint64_t insert_id)
{
    const char *info = mysql_info(db->my), *p = info ? strstr(info, "Duplicates: ") : NULL;

    db->insert_id = insert_id;
    db->duplicates = p ? strtoull(p + strlen("Duplicates: "), NULL, 10) : 0;
}

int db_handle_run(struct db *db, const char *sql, struct err *err)
{
    db->sent_at = when_steady();
    return mysql_real_query(db->my, sql, strlen(sql)) ? db_handle_fail(db, err) : 0;
}

int db_handle_ask(struct db *db, const char *sql, unsigned long long *ret, struct err *err)
{
    int rc = db_handle_run(db, sql, err);
    if (rc < 0)
        return rc;
    if (!mysql_field_count(db->my))
        return db_handle_odd_answer(db, 0, 1, err);
    MYSQL_RES *res = mysql_store_result(db->my);
    if (!res)
        return db_handle_fail(db, err);
    MYSQL_ROW row = mysql_fetch_row(res);
    const char *last = row && mysql_num_fields(res) ? row[mysql_num_fields(res) - 1] : NULL;
    if (last)
        *ret = strtoull(last, NULL, 10);
    mysql_free_result(res);
    return 0;
}

#if HAVE_DECL_MYSQL_OPT_SSL_MODE
#define SOCKET_OF(my) ((my)->net.fd)
#else
#define SOCKET_OF(my) mysql_get_socket(my)
#endif

void db_handle_notice_silence(struct db *db)
{
    const unsigned limit = (unsigned)db->conf->unacknowledged_ms;
    const int on = 1, pause = MAX(1, (int)limit / 3000), fd = SOCKET_OF(db->my);

    /* not of a socket of this host, which has no such options */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &pause, sizeof pause);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof pause);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}
