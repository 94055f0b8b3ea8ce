/*
 * db_connect.h - making the connection.
 *
 * The hosts of [mysql] are tried in order. If an earlier connection of this handle broke under a
 * statement, that statement is killed first on the server, so that its outcome can be looked up
 * and does not change afterwards. This needs a connection to the same server (db_connect_left).
 * Connections have no LOCAL INFILE, no automatic reconnect and no multi-statements, and count
 * matched rows, not changed ones (CLIENT_FOUND_ROWS).
 */
#ifndef DQ_STORE_DB_DB_CONNECT_H
#define DQ_STORE_DB_DB_CONNECT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct db;

/* Does nothing if the handle is connected, else connects. Blocks per host for up to connect_timeout
 * until it accepts, again until it greets, and then up to read_timeout for each step of the login.
 * With several hosts, a read-only one is skipped, and one on which the last statement timed out is
 * used only if no other can be. ERR_UNAVAILABLE, ERR_DENIED, ERR_CONFIG (unknown database, TLS);
 * ERR_LOST if a transaction was open when the connection broke: its rest must not run on a new
 * one. */
int db_connect(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* The same for dq init: creates the database (utf8mb4) if it does not exist. */
int db_connect_create(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* Reads password_file now; otherwise the first connect does. The password is kept until db_free, so
 * a process can give up its privileges after this. */
int db_connect_load_secret(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* Whether later connections may be to a read-only server if no other can be used: the caller only
 * reads. */
void db_connect_for_reading(struct db *db, bool yes);
/* Whether the server in use is read-only; always false without several hosts and
 * db_connect_for_reading. */
bool db_connect_is_read_only(const struct db *db);
/* For one that reads again and again: if the server is read-only and has been in use for a while,
 * the next statement looks for a better one. Not within a transaction. */
void db_connect_seek_writable(struct db *db);

/* From now on, connecting, and SELECT outside of a transaction, are tried again while no server is
 * available: for ms at most, with growing pauses, counted from the beginning of an outage. away is
 * called when one begins. */
void db_connect_patiently(struct db *db, int64_t ms, void (*away)(const struct err *why, void *arg),
                          void *arg);
/* After a failure that changed nothing: pauses and returns true if it was ERR_UNAVAILABLE or
 * ERR_LOST and this patience is not used up. If it is, the text says so. */
bool db_connect_again(struct db *db, int rc, struct err *err);

/* How many statements, whose connections broke, were left to themselves, because the next
 * connection of this handle led to another server: they may still be running. */
unsigned db_connect_left(const struct db *db);

#endif
