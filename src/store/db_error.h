/*
 * db_error.h - what the numbers of server and client library mean for us. Private to db*.c.
 */
#ifndef DQ_STORE_DB_ERROR_H
#define DQ_STORE_DB_ERROR_H

#include "base/err.h"

#include <stdbool.h>

#define DB_ERROR_WHERE "is the server running? check host, port and socket in [mysql]"

/* Fills err for an error number of the server (1000 and up, by the ER_ names) or of the client
 * library (2000 to 2999) and returns its code. server_text is what the server said: names that it
 * quotes are shown, values are not. `at` names the server. *ret_drop: the connection is of no use
 * any more. */
int db_error_set(struct err *err, unsigned number, const char *server_text, const char *at,
                 bool *ret_drop);

#endif
