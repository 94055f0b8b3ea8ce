/* What errors have in common. */
#include "base/pattern.h"
#include "base/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table.h"

static bool check(const char *error, const char *pattern, const char *where)
{
    struct buf b = BUF_INIT;
    pattern_put(&b, error);
    bool same = strcmp(b.data ? b.data : "", pattern) == 0,
         fits = task_tag_glob(b.data ? b.data : "", error);
    if (!same)
        print_error("%s: got %s\n", where, b.data);
    if (!fits)
        print_error("%s: %s does not match it\n", where, b.data);
    buf_done(&b);
    return same && fits;
}

static bool check_row(char **cell, const char *where)
{
    return check(cell[0], cell[1], where);
}

static void the_pattern_leaves_out_numbers_ids_and_quoted_words(void **state)
{
    (void)state;
    assert_true(table_check("errors.tbl", 2, check_row));
}

static void nothing_in_a_pattern_acts_on_a_terminal(void **state)
{
    (void)state;
    assert_true(check("a\033[31mb\n\xe2\x80\xae", "a?[*mb??", "controls"));
    assert_true(check("", "", "empty"));
}

static void a_long_pattern_is_cut_at_a_character_and_still_matches(void **state)
{
    char text[4 * PATTERN_MAX + 1];

    (void)state;
    for (size_t shift = 0; shift < 2; shift++) {
        struct buf b = BUF_INIT;
        memset(text, 'x', shift);
        for (size_t i = shift; i + 2 <= 4 * PATTERN_MAX; i += 2)
            memcpy(text + i, "\xc3\xa4", 3);
        pattern_put(&b, text);
        assert_in_range(b.len, PATTERN_MAX - 3, PATTERN_MAX + 1);
        assert_int_equal(b.data[b.len - 1], '*');
        assert_true(task_tag_glob(b.data, text));
        assert_int_not_equal((unsigned char)b.data[b.len - 2], 0xc3);
        buf_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pattern_leaves_out_numbers_ids_and_quoted_words),
        cmocka_unit_test(nothing_in_a_pattern_acts_on_a_terminal),
        cmocka_unit_test(a_long_pattern_is_cut_at_a_character_and_still_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
