/*
 * naive.c - the poller that everybody writes first: a row at a time, a statement a step, with the
 * index that suits it.
 *
 * usage: naive init                    an empty table
 *        naive add BODY                one task, due now: connect, insert, exit
 *        naive fill                    tasks from stdin, a planned instant (microseconds) on each
 *                                      line, which is also the body; prints tasks a second
 *        naive drain COUNT [COMMAND]   one worker, until COUNT are done, each by COMMAND (none: in
 *                                      the process); prints tasks a second
 *        naive poll MS COUNT COMMAND   the same for tasks that become due meanwhile; sleeps MS when
 *                                      nothing is due
 */
#include "sql.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EPOCH "TIMESTAMP'1970-01-01 00:00:00'"

static void init(MYSQL *my)
{
    sql_run(my, "DROP TABLE IF EXISTS naive_task");
    sql_run(
        my,
        "CREATE TABLE naive_task (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, tag varchar(128) NOT NULL,"
        " body longblob NOT NULL, status tinyint NOT NULL DEFAULT 0, expected_time datetime(3) NOT NULL,"
        " finish_time datetime(3) NULL, KEY due (status, expected_time)) ENGINE=InnoDB");
}

static void add(MYSQL *my, const char *body)
{
    char text[2 * 1024 + 1];

    if (strlen(body) > 1024)
        tool_die("body too long");
    mysql_real_escape_string(my, text, body, strlen(body));
    sql_run(
        my,
        "INSERT INTO naive_task (tag, body, expected_time) VALUES ('bench', '%s', UTC_TIMESTAMP(3))",
        text);
    printf("%llu\n", (unsigned long long)mysql_insert_id(my));
}

static void fill(MYSQL *my)
{
    int64_t from = tool_steady_us();
    long long at;
    long n = 0;

    for (; scanf("%lld", &at) == 1; n++)
        sql_run(my,
                "INSERT INTO naive_task (tag, body, expected_time) VALUES ('bench', '%lld', " EPOCH
                " + INTERVAL %lld MICROSECOND)",
                at, at);
    tool_print_rate(n, from);
}

/* One task, if one is due. */
static int step(MYSQL *my, const char *command)
{
    MYSQL_RES *rows = sql_rows(
        my, "SELECT id, body FROM naive_task WHERE status = 0 AND expected_time <= UTC_TIMESTAMP(3)"
            " ORDER BY expected_time LIMIT 1");
    MYSQL_ROW row = mysql_fetch_row(rows);
    int done = 0;

    if (row &&
        sql_run(my, "UPDATE naive_task SET status = 3 WHERE id = %s AND status = 0", row[0]) == 1) {
        if (command)
            tool_run(command, row[1], mysql_fetch_lengths(rows)[1]);
        sql_run(
            my,
            "UPDATE naive_task SET status = 1, finish_time = UTC_TIMESTAMP(3) WHERE id = %s AND status = 3",
            row[0]);
        done = 1;
    }
    mysql_free_result(rows);
    return done;
}

static void work(MYSQL *my, long count, const char *command, long poll_ms)
{
    int64_t from = tool_steady_us();

    for (long done = 0; done < count;) {
        if (step(my, command))
            done++;
        else
            usleep((useconds_t)poll_ms * 1000);
    }
    tool_print_rate(count, from);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    MYSQL *my = sql_connect();

    if (strcmp(verb, "init") == 0) {
        init(my);
    } else if (strcmp(verb, "add") == 0 && argc == 3) {
        add(my, argv[2]);
    } else if (strcmp(verb, "fill") == 0) {
        fill(my);
    } else if (strcmp(verb, "drain") == 0 && argc >= 3) {
        work(my, tool_number(argv[2], "COUNT"), argv[3], 1);
    } else if (strcmp(verb, "poll") == 0 && argc == 5) {
        work(my, tool_number(argv[3], "COUNT"), argv[4], tool_number(argv[2], "MS"));
    } else {
        errno = 0;
        tool_die(
            "usage: naive init | add BODY | fill | drain COUNT [COMMAND] | poll MS COUNT COMMAND");
    }
    mysql_close(my);
    return 0;
}
