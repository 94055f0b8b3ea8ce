/*
 * words.c - what words_split accepts is what a shell makes of it.
 */
#include "base/words.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SHOW "printf '<%s>'"

static void what_is_split_is_what_a_shell_makes_of_it(void **state)
{
    (void)state;
    static const char *const lines[] = {"a",
                                        " a  b\tc ",
                                        "'a b' \"c d\"",
                                        "a'b'\"c\"d",
                                        "'' \"\"",
                                        "a\\ b \\' \\\"",
                                        "'$x `y`'",
                                        "\"\\$x \\` \\\\ \\q\"",
                                        "--a=b -c,d /e.f:g @h %i +j",
                                        "'*' '?' '~' '#'",
                                        "\303\244 '\303\266'",
                                        "'it'\\''s'",
                                        "\"it's\"",
                                        "'a\\b'",
                                        "'a\nb'"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char **words, shown[200] = "", said[200];
        size_t len = 0;
        assert_true(words_split(lines[i], &words));
        for (char **w = words; *w; w++)
            len += (size_t)snprintf(shown + len, sizeof shown - len, "<%s>", *w);
        char *command = mem_printf("%s %s", SHOW, lines[i]);
        FILE *f = popen(command, "re");
        said[fread(said, 1, sizeof said - 1, f)] = '\0';
        assert_int_equal(pclose(f), 0);
        assert_string_equal(shown, said);
        free(command);
        free(words);
    }
}

static void a_shell_is_needed_for_what_it_would_expand_or_do(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "a | b",   "a; b", "a && b", "a & ", "a > b", "a < b",  "$a",         "\"$a\"", "`a`",
        "\"`a`\"", "(a)",  "{ a",    "a*",   "a?",    "[a]",    "~/a",        "a ~",    "# a",
        "! a",     "a\nb", "'a",     "\"a",  "a\\",   "a\\\nb", "\"a\\\nb\"", "a^b"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char **words = NULL;
        if (words_split(lines[i], &words))
            fail_msg("%s", lines[i]);
        assert_null(words);
    }
}

static void an_empty_line_has_no_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char **words;
        assert_true(words_split(i ? " \t" : "", &words));
        assert_null(words[0]);
        free(words);
    }
}

static void what_a_shell_does_itself_is_no_program(void **state)
{
    (void)state;
    static const char *const built_in[] = {"cd", ".", "[", "exec", "while", ":", ""};
    static const char *const programs[] = {"c", "cdx", "/bin/cd", "cancel-order", "exe"};
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
        assert_true(words_is_built_in(built_in[i]));
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        assert_false(words_is_built_in(programs[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_split_is_what_a_shell_makes_of_it),
        cmocka_unit_test(a_shell_is_needed_for_what_it_would_expand_or_do),
        cmocka_unit_test(an_empty_line_has_no_words),
        cmocka_unit_test(what_a_shell_does_itself_is_no_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
