/*
 * table_rows.h - as table.h, but each row is a test of its own, named by its first cell.
 */
#ifndef DQ_TEST_TABLE_ROWS_H
#define DQ_TEST_TABLE_ROWS_H

#include "table.h"

#define TABLE_ROWS_MAX 400

static struct table_row {
    char *cell[TABLE_CELLS_MAX], where[128];
} table_rows[TABLE_ROWS_MAX];
static size_t table_row_count;
static int table_cells;
static bool (*table_check_row)(char **cell, const char *where);

static bool table_keep_row(char **cell, const char *where)
{
    struct table_row *r = &table_rows[table_row_count++];

    snprintf(r->where, sizeof r->where, "%s", where);
    for (int i = 0; i < table_cells; i++)
        r->cell[i] = strdup(cell[i]);
    return table_row_count < TABLE_ROWS_MAX;
}

static void table_test_row(void **state)
{
    struct table_row *r = *state;
    char *cell[TABLE_CELLS_MAX];

    memcpy(cell, r->cell, sizeof cell); /* the check may move them */
    assert_true(table_check_row(cell, r->where));
}

/* Runs a test for each row, then `others`. Returns the exit status of the program. */
static int table_run_rows(const char *name, int cells,
                          bool (*check)(char **cell, const char *where),
                          const struct CMUnitTest *others, size_t other_count)
{
    struct CMUnitTest tests[TABLE_ROWS_MAX + 16];
    size_t n = 0;

    table_cells = cells;
    table_check_row = check;
    if (!table_check(name, cells, table_keep_row))
        return 1;
    for (; n < table_row_count; n++)
        tests[n] =
            (struct CMUnitTest){table_rows[n].cell[0], table_test_row, NULL, NULL, &table_rows[n]};
    for (size_t i = 0; i < other_count; i++)
        tests[n++] = others[i];
    int failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
    for (size_t i = 0; i < table_row_count; i++)
        for (int k = 0; k < cells; k++)
            free(table_rows[i].cell[k]);
    return failed;
}

#endif
