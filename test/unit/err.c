/* What an error says and which exit status it becomes. */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void setting_returns_the_code(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(err_set(&err, ERR_DATA, "line %d", 7), ERR_DATA);
    assert_int_equal(err.code, ERR_DATA);
    assert_string_equal(err.text, "line 7");
    assert_int_equal(err_set(NULL, ERR_BUSY, "nobody listens"), ERR_BUSY);
}

static void a_text_may_quote_the_error_it_replaces(void **state)
{
    struct err err;

    (void)state;
    err_set(&err, ERR_SYSTEM, "cause");
    err_set(&err, ERR_CONFIG, "effect (%s)", err.text);
    assert_string_equal(err.text, "effect (cause)");
    assert_int_equal(err_prefix(&err, "%s:%d", "dq.ini", 3), ERR_CONFIG);
    assert_string_equal(err.text, "dq.ini:3: effect (cause)");
    err_prefix(&err, "%s", err.text);
    assert_string_equal(err.text, "dq.ini:3: effect (cause): dq.ini:3: effect (cause)");
}

static void long_texts_are_cut_visibly_at_a_character(void **state)
{
    struct err err;
    char text[2 * sizeof err.text];

    (void)state;
    memset(text, 'x', sizeof err.text - 1);
    text[sizeof err.text - 1] = '\0';
    err_set(&err, ERR_DATA, "%s", text);
    assert_string_equal(err.text, text); /* just fits */
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "€", 4);
        err_set(&err, ERR_DATA, "%s", text);
        size_t len = strlen(err.text);
        assert_true(len >= sizeof err.text - 4 && len < sizeof err.text);
        assert_string_equal(err.text + len - 3, "...");
        assert_int_equal((len - 3 - shift) % 3, 0);
        err_prefix(&err, "%s", text);
        assert_string_equal(err.text + strlen(err.text) - 3, "...");
    }
}

static void control_characters_never_reach_the_terminal(void **state)
{
    struct err err;

    (void)state;
    err_set(&err, ERR_DATA, "%s",
            "a\nb\x1b[2J\x7f"
            "c\xc2\x9b"
            "dä\xe2\x80\xae\xe2\x80\x8b\x9b");
    assert_string_equal(err.text, "a?b?[2J?c??dä???????");
}

static void exit_statuses_are_those_of_sysexits(void **state)
{
    static const int rows[][2] = {
        {ERR_NONE, 0},       {ERR_NOT_FOUND, 1},    {ERR_STATE, 1},   {ERR_USAGE, 64},
        {ERR_DATA, 65},      {ERR_UNAVAILABLE, 69}, {ERR_LOST, 69},   {ERR_TRANSIENT, 75},
        {ERR_DUPLICATE, 65}, {ERR_DENIED, 77},      {ERR_CONFIG, 78}, {ERR_BUSY, 75},
        {ERR_SYSTEM, 71},    {ERR_FATAL, 70},       {-99, 70},        {ERR_LOCKED, 75},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(err_exit_status(rows[i][0]), rows[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_returns_the_code),
        cmocka_unit_test(a_text_may_quote_the_error_it_replaces),
        cmocka_unit_test(long_texts_are_cut_visibly_at_a_character),
        cmocka_unit_test(control_characters_never_reach_the_terminal),
        cmocka_unit_test(exit_statuses_are_those_of_sysexits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
