/*
 * db_private.h - what the db*.c share: the handle, and statements on a connection that is there.
 * Nobody else includes it.
 */
#ifndef DQ_STORE_DB_PRIVATE_H
#define DQ_STORE_DB_PRIVATE_H

#include "store/db.h"

#include <mysql.h>

#define CLIENT_PACKET_MAX                                                                          \
    (1UL << 30) /* the protocol's own limit; the server's is usually lower                         \
                 */
#define DB_AT_SIZE 160

enum db_cluster { DB_CLUSTER_UNKNOWN, DB_CLUSTER_NONE, DB_CLUSTER_GALERA, DB_CLUSTER_GROUP };

struct db {
    const struct conf_mysql *conf;
    MYSQL *my; /* NULL: not connected */
    char *password;
    bool password_loaded, in_tx;
    struct db_session session;
    size_t max_packet; /* 0: not asked yet */
    enum db_cluster cluster;
    bool mariadb;
    unsigned version;
    char at[DB_AT_SIZE];            /* "db1:3306", for messages */
    char server[256];               /* "MariaDB 10.11.19 at db1:3306" */
    uint64_t insert_id, duplicates; /* of the last statement without a result set */
    int64_t connected_at;           /* steady clock: when the connection was made */
    unsigned long orphan;           /* id of a connection that broke under a statement; 0: none */
    char orphan_at[DB_AT_SIZE];
    int64_t orphan_since;        /* steady clock: it was made then */
    int64_t sent_at;             /* steady clock: the last statement was sent */
    char stalled_at[DB_AT_SIZE]; /* the server that let a statement time out last; empty: none */
    bool reader, read_only;
};

/* closes, but remembers an open transaction: the rest of it must not run on a new connection */
void db_drop(struct db *db);

/* Sets err by a number and a text (or what the library says now), and brings the handle into a
 * state from which it can go on: closed, or rolled back, where the class of the error asks for
 * it. */
int db_fail_with(struct db *db, unsigned number, const char *text, struct err *err);
int db_fail(struct db *db, struct err *err);

void db_note_result(struct db *db, uint64_t insert_id);

/* A statement without values on an open connection; the same with one number as its result, in the
 * last column (no row: *ret stays). */
int db_run(struct db *db, const char *sql, struct err *err) __attribute__((warn_unused_result));
int db_ask(struct db *db, const char *sql, unsigned long long *ret, struct err *err)
    __attribute__((warn_unused_result));

/* db_literal.c: whether bytes may stand between quotes as they are. */
bool db_is_plain(const char *p, size_t len);

/* db_session.c: the settings that every session has; ends a transaction that somebody else's
 * statement left open. */
int db_session_set_up(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* db_tls.c: sets what [mysql] says about TLS; and mysql_real_connect, which sends nothing if TLS is
 * required and the server does not offer it (*ret_stripped), and no password in the clear. A local
 * socket needs no TLS. host NULL: the local socket. */
int db_tls_options(const struct conf_mysql *c, const char *host, MYSQL *my, struct err *err)
    __attribute__((warn_unused_result));
bool db_tls_connect(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port,
                    const char *password, const char *database, bool *ret_stripped)
    __attribute__((warn_unused_result));

#endif
