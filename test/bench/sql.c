/*
 * sql.c - see sql.h.
 */
#include "sql.h"
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail(MYSQL *my)
{
    errno = 0;
    tool_die("server: %s", mysql_error(my));
}

MYSQL *sql_connect(void)
{
    MYSQL *my = mysql_init(NULL);

    if (!my || !mysql_real_connect(my, NULL, "dq", NULL, "dq", 0, getenv("BENCH_SOCKET"),
                                   CLIENT_FOUND_ROWS))
        fail(my);
    return my;
}

void sql_send(MYSQL *my, const char *sql, size_t size)
{
    if (mysql_real_query(my, sql, size) != 0)
        fail(my);
}

unsigned long long sql_run(MYSQL *my, const char *fmt, ...)
{
    char sql[4096];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(sql, sizeof sql, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof sql)
        tool_die("statement too long");
    sql_send(my, sql, (size_t)n);
    return mysql_affected_rows(my);
}

MYSQL_RES *sql_rows(MYSQL *my, const char *sql)
{
    MYSQL_RES *rows;

    sql_send(my, sql, strlen(sql));
    rows = mysql_store_result(my);
    if (!rows)
        fail(my);
    return rows;
}
