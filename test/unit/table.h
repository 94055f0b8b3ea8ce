/*
 * table.h - tests whose rows live in test/data/NAME.tbl: one row a line, cells between '|' with
 * blanks around them trimmed, '#' begins a comment line.
 */
#ifndef DQ_TEST_TABLE_H
#define DQ_TEST_TABLE_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_CELLS_MAX 8

static char *table_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    for (size_t n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = '\0';
    return s;
}

/* Calls check for each row; `where` ("instants.tbl:12") goes before its complaints. True when every
 * row was fine and there was one. */
static bool table_check(const char *name, int cells, bool (*check)(char **cell, const char *where))
{
    const char *top = getenv("DQ_TOP");
    char path[4096], line[2048], where[128], *cell[TABLE_CELLS_MAX];
    int number = 0, rows = 0, bad = 0;

    snprintf(path, sizeof path, "%s/test/data/%s", top ? top : ".", name);
    FILE *f = fopen(path, "r");
    if (!f) {
        print_error("%s: cannot be opened\n", path);
        return false;
    }
    while (fgets(line, sizeof line, f)) {
        number++;
        char *rest = line;
        int n = 0;
        if (*table_trim(line) == '#' || !*table_trim(line))
            continue;
        while (rest && n < TABLE_CELLS_MAX)
            cell[n++] = table_trim(strsep(&rest, "|"));
        snprintf(where, sizeof where, "%s:%d", name, number);
        if (n != cells)
            print_error("%s: %d cells instead of %d\n", where, n, cells);
        bad += n != cells || !check(cell, where);
        rows++;
    }
    fclose(f);
    return rows && !bad;
}

#endif
