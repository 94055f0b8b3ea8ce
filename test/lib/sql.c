/*
 * sql.c - sql SOCKET TEXT: runs SQL as root on the database dq, and prints what mariadb --batch
 * --skip-column-names would. It starts in half the time, and the tests start it thousands of times.
 */
#include <mysql.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A tab is between two cells, and a newline behind a row. */
static void print_cell(const char *cell, unsigned long len)
{
    static const char special[] = "\t\n\\", letters[] = "tn\\0";
    if (!cell) {
        fputs("NULL", stdout);
        return;
    }
    for (unsigned long i = 0; i < len; i++) {
        const char *at = strchr(special, cell[i]); /* the zero at its end is special, too */
        if (at)
            printf("\\%c", letters[at - special]);
        else
            putchar(cell[i]);
    }
}

/* Returns whether all rows came. The next result would clear the error. */
static bool print_rows(MYSQL *my, MYSQL_RES *rows)
{
    const unsigned columns = mysql_num_fields(rows);
    MYSQL_ROW row;
    while ((row = mysql_fetch_row(rows))) {
        const unsigned long *len = mysql_fetch_lengths(rows);
        for (unsigned i = 0; i < columns; i++) {
            if (i > 0)
                putchar('\t');
            print_cell(row[i], len[i]);
        }
        putchar('\n');
    }
    mysql_free_result(rows);
    return mysql_errno(my) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: sql SOCKET TEXT\n", stderr);
        return 64;
    }
    MYSQL *my = mysql_init(NULL);
    mysql_options(my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    int more = 0;
    if (mysql_real_connect(my, NULL, "root", NULL, "dq", 0, argv[1], CLIENT_MULTI_STATEMENTS))
        for (more = mysql_query(my, argv[2]); more == 0; more = mysql_next_result(my)) {
            MYSQL_RES *rows = mysql_use_result(my);
            if (rows && !print_rows(my, rows))
                break;
        }
    fflush(stdout);
    const unsigned number = mysql_errno(my);
    if (number)
        fprintf(stderr, "ERROR %u (%s) at line 1: %s\n", number, mysql_sqlstate(my),
                mysql_error(my));
    mysql_close(my);
    return number != 0;
}
