/*
 * db_error.h - what the numbers of server and client library mean for us. Private to db*.c.
 */
#ifndef DQ_STORE_DB_DB_ERROR_H
#define DQ_STORE_DB_DB_ERROR_H

#include "base/err.h"

#include <stdbool.h>

#define DB_ERROR_WHERE "is the server running? check host, port and socket in [mysql]"

/* Fills err for an error number of the server (1000 and up, by the ER_ names) or of the client
 * library (2000 to 2999) and returns its code. server_text is what the server said: names that it
 * quotes are shown, values are not. `at` names the server. *ret_drop: the connection is of no use
 * any more. */
int db_error_set(struct err *err, unsigned number, const char *server_text, const char *at,
                 bool *ret_drop);

/* The same for an error of mysql_real_connect. checked: the server's certificate has to be
 * verified. ERR_LOST: the connection broke while it was being made, or the server took too long;
 * otherwise what db_error_away returns. */
int db_error_connect(struct err *err, unsigned number, const char *text, const char *at,
                     bool checked);

/* Whether an unexpected error is one that a server has of a statement, and will have of it again.
 * The others are those of proxies, which have nothing to do with the statement. */
bool db_error_of_statement(unsigned number);

/* What may end a dqd for good, because it stays until somebody changes something: ERR_CONFIG for
 * settings and files of this host and a database that does not exist, ERR_DENIED for accounts and
 * their rights, ERR_SYSTEM for this host. If a connection cannot be made for any other reason,
 * another host or a later try is as good: err gets ERR_UNAVAILABLE. Returns err's code. */
int db_error_away(int code, struct err *err);

#endif
