/*
 * db_tls.h - how a connection is encrypted. Private to db*.c.
 */
#ifndef DQ_STORE_DB_DB_TLS_H
#define DQ_STORE_DB_DB_TLS_H

#include "base/err.h"
#include "conf/conf.h"

#include <mysql.h>
#include <stdbool.h>

/* Whether this is the local socket, which needs no TLS: no host, or "localhost" with the port 0. */
bool db_tls_local(const char *host, unsigned port);

/* Sets on `my` the options that follow from [mysql] and the host. ERR_CONFIG: tls_ca is missing. */
int db_tls_options(const struct conf_mysql *c, const char *host, unsigned port, MYSQL *my,
                   struct err *err) __attribute__((warn_unused_result));

/* mysql_real_connect, after db_tls_options. Sends nothing if TLS is required and the server does
 * not offer it (*ret_stripped), and never a password in the clear over a network. Blocks as
 * db_connect does. */
bool db_tls_connect(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port,
                    const char *password, const char *database, bool *ret_stripped)
    __attribute__((warn_unused_result));

#endif
