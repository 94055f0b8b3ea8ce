/* What is shown of the server's error texts: names, never values. */
#include "store/db_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table.h"

static bool check_text(char **cell, const char *where)
{
    struct err err = {0};
    char expected[sizeof err.text];
    bool drop;

    db_error_set(&err, (unsigned)atoi(cell[0]), cell[1], "here", &drop);
    snprintf(expected, sizeof expected, "here: %s", cell[2]);
    if (!strcmp(table_trim(err.text), expected) && !strstr(err.text, "SECRET"))
        return true;
    print_error("%s: got \"%s\"\n", where, err.text);
    return false;
}

static void names_are_shown_and_values_withheld(void **state)
{
    (void)state;
    assert_true(table_check("db_error.tbl", 3, check_text));
}

/* The server cuts its texts at 512 bytes: the last mark that is there need not be the value's
 * end. */
static void a_text_without_its_end_shows_nothing_of_a_value(void **state)
{
    char text[600] = "near 'SEC'";
    struct err err;
    bool drop;

    (void)state;
    memset(text + strlen(text), 'R', 511 - strlen(text));
    db_error_set(&err, 1064, text, "here", &drop);
    assert_string_equal(err.text, "here: unexpected error 1064: near '...'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_shown_and_values_withheld),
        cmocka_unit_test(a_text_without_its_end_shows_nothing_of_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
