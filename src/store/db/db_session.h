/*
 * db_session.h - the settings of a session: autocommit, READ COMMITTED, utf8mb4, and none of the
 * limits and modes of the server's configuration. db_session.c has the list.
 */
#ifndef DQ_STORE_DB_DB_SESSION_H
#define DQ_STORE_DB_DB_SESSION_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct db;

/* How long a session waits, and how long the server waits for it, in seconds. */
struct db_session {
    /* For a row that another transaction has locked; then ERR_LOCKED. 0: not at all on MariaDB, 1 s
     * on MySQL. */
    unsigned lock_wait_s;
    /* For a table that is being altered, or locked as a whole; at least 1. */
    unsigned table_wait_s;
    /* The server ends a session that is silent for this long and rolls its transaction back, which
     * frees the locks of a host that has disappeared. Within a transaction, or a half-sent
     * statement, at most 30 s on MariaDB. */
    unsigned idle_s;
    /* It is that of a dqd: each connection asks when its server was started, three statements more,
     * so that a restart is noticed when it breaks. */
    bool lasts;
};
/* clang-format off */
#define DB_SESSION_DEFAULT {2, 20, 3600, false}
/* clang-format on */

/* Takes effect with the next connection; db_new sets DB_SESSION_DEFAULT. */
void db_session_set(struct db *db, const struct db_session *session);

/* Until db_session_wait, statements on this connection do not wait for locked rows. Has no effect
 * on MySQL, which always waits, nor on a session that never does. A failed db_session_wait closes
 * the connection: the next one waits. */
int db_session_wait_not(struct db *db, struct err *err) __attribute__((warn_unused_result));
void db_session_wait(struct db *db);

/* For how many milliseconds a statement would wait for a row, if it can also be told not to wait at
 * all, by "SET STATEMENT innodb_lock_wait_timeout = 0 FOR"; else 0. */
int64_t db_session_can_try(const struct db *db);

/* Another session has locked a row. If this one would rather not wait, but the server makes it wait
 * (MySQL), it is wary for a minute: statements look for locked rows first, of whatever tag. */
void db_session_beware(struct db *db);
bool db_session_wary(const struct db *db);

/* Until the call with false, statements on this connection wait for a locked table for a second at
 * most; then ERR_LOCKED. A failure closes the connection: the next one waits as usual. */
void db_session_brief(struct db *db, bool brief);

/* Sends the settings over a connection just made, in one statement, and ends a transaction that
 * init_connect or init_command left open. ERR_CONFIG names a setting that the server refuses.
 * Private to db*.c. */
int db_session_set_up(struct db *db, struct err *err) __attribute__((warn_unused_result));

#endif
