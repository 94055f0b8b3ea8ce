/*
 * sql.h - a plain connection to the server of the benchmark: its socket is $BENCH_SOCKET, its
 * database dq.
 */
#ifndef DQ_BENCH_SQL_H
#define DQ_BENCH_SQL_H

#include <mysql.h>

MYSQL *sql_connect(void);
/* One statement without a result; the number of rows it matched or added. Dies on any fault. */
unsigned long long sql_run(MYSQL *my, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sql_send(MYSQL *my, const char *sql, size_t size); /* the same for a long one */
MYSQL_RES *sql_rows(MYSQL *my, const char *sql);        /* one with a result, all of it in memory */

#endif
