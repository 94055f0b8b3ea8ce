/* Errors: what is shown of their texts, names and never values; and which of those of connecting
 * may end dqd for good. */
#include "store/db/db_error.h"

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

static void a_connection_that_broke_is_not_used_again(void **state)
{
    size_t broken = 0;

    (void)state;
    for (unsigned number = 1000; number < 7000; number++) {
        struct err err;
        bool drop;
        int rc = db_error_set(&err, number, "", "here", &drop);

        assert_int_equal(err.code, rc);
        if (strstr(err.text, "broke"))
            assert_int_equal(rc, ERR_LOST);
        if (rc == ERR_LOST)
            assert_true(drop);
        broken += rc == ERR_LOST;
    }
    assert_in_range(broken, 20, 40);
}

static bool check_connect(char **cell, const char *where)
{
    static const struct {
        const char *name;
        int code;
    } ends[] = {{"broke", ERR_LOST},
                {"away", ERR_UNAVAILABLE},
                {"config", ERR_CONFIG},
                {"denied", ERR_DENIED}};
    struct err err = {0};

    int rc =
        db_error_connect(&err, (unsigned)atoi(cell[0]), cell[2], "here", !strcmp(cell[1], "yes"));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!strcmp(cell[3], ends[i].name) && rc == ends[i].code && err.code == rc)
            return true;
    print_error("%s: got %d, \"%s\"\n", where, rc, err.text);
    return false;
}

static void only_what_stays_may_end_a_dqd(void **state)
{
    (void)state;
    assert_true(table_check("db_connects.tbl", 4, check_connect));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_shown_and_values_withheld),
        cmocka_unit_test(a_connection_that_broke_is_not_used_again),
        cmocka_unit_test(only_what_stays_may_end_a_dqd),
        cmocka_unit_test(a_text_without_its_end_shows_nothing_of_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
