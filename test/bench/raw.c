/*
 * raw.c - the limit of the server: the statements that any queue in dq's own table must make, and
 * nothing else.
 *
 * usage: raw insert COUNT ROWS SIZE   COUNT tasks of tag "raw", due now, bodies of SIZE bytes, ROWS
 *                                     to a statement; prints rows a second
 *        raw settle COUNT BATCH       takes and finishes them, BATCH at a time, on one
 *                                     connection: a SELECT and two UPDATEs; prints tasks a second
 *        raw ask MS                   SELECT 1 every MS milliseconds, until it is killed
 */
#include "sql.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void insert(MYSQL *my, long count, long rows, long size)
{
    char *sql = malloc((size_t)rows * ((size_t)size + 200) + 400), *body = malloc((size_t)size + 1);
    int64_t from;

    if (!sql || !body)
        tool_die("memory");
    memset(body, 'x', (size_t)size);
    body[size] = '\0';
    from = tool_steady_us();
    for (long at = 0; at < count; at += rows) {
        size_t n = (size_t)sprintf(
            sql,
            "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time) VALUES ");

        for (long i = 0; i < rows && at + i < count; i++)
            n += (size_t)sprintf(sql + n, "%s('raw','%s',%ld,UTC_TIMESTAMP(3),UTC_TIMESTAMP(3))",
                                 i ? "," : "", body, size);
        sql_send(my, sql, n);
    }
    tool_print_rate(count, from);
    free(sql);
    free(body);
}

/* "(id, version), ..." of the rows, the version raised by `more`. */
static size_t pairs(char *out, MYSQL_RES *rows, unsigned long long more)
{
    size_t n = 0;
    MYSQL_ROW row;

    mysql_data_seek(rows, 0);
    while ((row = mysql_fetch_row(rows)))
        n += (size_t)sprintf(out + n, "%s(%s,%llu)", n ? "," : "", row[0],
                             strtoull(row[1], NULL, 10) + more);
    return n;
}

static void change(MYSQL *my, char *sql, const char *set, const char *status, MYSQL_RES *rows,
                   unsigned long long more)
{
    size_t n = (size_t)sprintf(
        sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET %s WHERE status = %s AND (id, version) IN (",
        set, status);

    n += pairs(sql + n, rows, more);
    sql[n++] = ')';
    sql_send(my, sql, n);
    if (mysql_affected_rows(my) != mysql_num_rows(rows)) {
        errno = 0;
        tool_die("somebody else is at work in this table");
    }
}

static void settle(MYSQL *my, long count, long batch)
{
    char select[512], *sql = malloc((size_t)batch * 50 + 1024);
    int64_t from = tool_steady_us();

    if (!sql)
        tool_die("memory");
    snprintf(
        select, sizeof select,
        "SELECT id, version, task_key, message_body, attempt, max_attempts, expected_time FROM dq_task FORCE INDEX (due)"
        " WHERE status = 0 AND tag = 'raw' AND expected_time <= UTC_TIMESTAMP(3) ORDER BY expected_time LIMIT %ld",
        batch);
    for (long done = 0; done < count;) {
        MYSQL_RES *rows = sql_rows(my, select);

        if (mysql_num_rows(rows) == 0)
            tool_die("there are fewer than %ld", count);
        change(
            my, sql,
            "status = 3, version = version + 1, attempt = attempt + 1, claim_token = 'abcdefghijklmnop', host = 'here', pid = 1,"
            " max_attempts = 10, lease_until = UTC_TIMESTAMP(3) + INTERVAL 30 SECOND, update_time = UTC_TIMESTAMP(3)",
            "0", rows, 0);
        change(
            my, sql,
            "status = 1, version = version + 1, lease_until = NULL, execution_time = UTC_TIMESTAMP(3),"
            " finish_time = UTC_TIMESTAMP(3), exit_code = 0, update_time = UTC_TIMESTAMP(3)",
            "3", rows, 1);
        done += (long)mysql_num_rows(rows);
        mysql_free_result(rows);
    }
    tool_print_rate(count, from);
    free(sql);
}

static _Noreturn void ask(MYSQL *my, long ms)
{
    for (;;) {
        mysql_free_result(sql_rows(my, "SELECT 1"));
        usleep((useconds_t)ms * 1000);
    }
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    MYSQL *my = sql_connect();

    sql_run(my, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    if (strcmp(verb, "insert") == 0 && argc == 5) {
        insert(my, tool_number(argv[2], "COUNT"), tool_number(argv[3], "ROWS"),
               tool_number(argv[4], "SIZE"));
    } else if (strcmp(verb, "settle") == 0 && argc == 4) {
        settle(my, tool_number(argv[2], "COUNT"), tool_number(argv[3], "BATCH"));
    } else if (strcmp(verb, "ask") == 0 && argc == 3) {
        ask(my, tool_number(argv[2], "MS"));
    } else {
        errno = 0;
        tool_die("usage: raw insert COUNT ROWS SIZE | settle COUNT BATCH | ask MS");
    }
    mysql_close(my);
    return 0;
}
