/*
 * db_handle.h - the handle, and what the db*.c do with a connection that is open. Private to them.
 */
#ifndef DQ_STORE_DB_DB_HANDLE_H
#define DQ_STORE_DB_DB_HANDLE_H

#include "base/err.h"
#include "conf/conf.h"

#include <mysql.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The protocol's own limit; the server's is usually lower. */
#define DB_HANDLE_PACKET_MAX ((size_t)1 << 30)
#define DB_HANDLE_AT_SIZE 160

enum db_cluster { DB_CLUSTER_UNKNOWN, DB_CLUSTER_NONE, DB_CLUSTER_GALERA, DB_CLUSTER_GROUP };

struct db {
    const struct conf_mysql *conf;
    MYSQL *my; /* NULL: not connected */
    char *password;
    bool password_loaded;
    bool in_tx; /* also after the connection of the transaction broke */
    unsigned lock_wait_s, table_wait_s, idle_s; /* as struct db_session */
    int64_t wary_until;                         /* see db_session_beware */
    size_t max_packet;                          /* 0: not asked yet */
    enum db_cluster cluster;
    bool mariadb;
    unsigned version;               /* 101119: 10.11.19 */
    char at[DB_HANDLE_AT_SIZE];     /* "db1:3306", for messages */
    char host[DB_HANDLE_AT_SIZE];   /* of `at`, for db_host */
    char server[256];               /* "MariaDB 10.11.19 at db1:3306" */
    uint64_t insert_id, duplicates; /* of the last statement without a result set */
    /* steady clock: when the connection was made, and when the last statement was sent */
    int64_t connected_at, sent_at;
    uint32_t identity; /* of the server: an address may lead to several; 0: not known */
    bool lasts;
    int64_t start_s; /* of one that lasts: when its server was started, in its own time; else 0 */
    /* The connection that broke under a statement: its id (0: none), server, and connected_at. */
    unsigned long orphan;
    uint32_t orphan_identity;
    int64_t orphan_since, orphan_start_s;
    unsigned left; /* how many of them were, because the next connection led to another server */
    char stalled_at[DB_HANDLE_AT_SIZE]; /* the server on which a statement last timed out, or "" */
    bool reader, read_only;
    bool latest; /* between db_latest_begin and db_latest_end */
    /* See db_connect_patiently; the steady times of the end of an outage's patience (0: there is
     * no outage), and of the pause before the last try. */
    int64_t patience_ms, patience_end, nap_ms;
    void (*away)(const struct err *why, void *arg);
    void *away_arg;
};

/* Closes the connection, but remembers an open transaction: the rest of it must not run on a new
 * connection. */
void db_handle_drop(struct db *db);

/* Ends an open transaction, or closes the connection if that fails. */
void db_handle_rollback(struct db *db);

/* Sets err from an error number and its text, or from the library's current ones, and returns the
 * code. The handle is usable afterwards: the connection is closed if the error says that it is
 * broken, and rolled back after ERR_TRANSIENT and ERR_LOCKED. */
int db_handle_fail_with(struct db *db, unsigned number, const char *text, struct err *err);
int db_handle_fail(struct db *db, struct err *err);

/* The answer has another number of columns than was asked for. Closes the connection, from which
 * nothing more can be learned. Always ERR_FATAL. */
int db_handle_odd_answer(struct db *db, unsigned columns, unsigned wanted, struct err *err);

/* Remembers insert_id, and "Duplicates" of the last statement. */
void db_handle_note_result(struct db *db, uint64_t insert_id);

/* db_handle_run runs a statement without values; the connection must be open. db_handle_ask also
 * sets *ret to the number in the last column of the first row; without a row, *ret is unchanged. */
int db_handle_run(struct db *db, const char *sql, struct err *err)
    __attribute__((warn_unused_result));
int db_handle_ask(struct db *db, const char *sql, unsigned long long *ret, struct err *err)
    __attribute__((warn_unused_result));

/* From now on the connection breaks if the server's host is silent for [mysql] unacknowledged_ms. A
 * firewall that has forgotten a connection drops its packets, and a new one would pass. A server
 * that takes long is not meant: its host acknowledges what it is sent. */
void db_handle_notice_silence(struct db *db);

#endif
