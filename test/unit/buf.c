/* Strings that grow, and the memory under them. */
#include "base/buf.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void an_empty_buffer_needs_no_memory(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    assert_null(b.data);
    buf_reset(&b);
    buf_done(&b);
    assert_null(b.data);
}

static void whatever_is_added_ends_in_a_nul(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    buf_str(&b, "");
    assert_string_equal(b.data, "");
    buf_add(&b, "a\0b", 3);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 4);
    buf_chr(&b, 'c');
    assert_memory_equal(b.data, "a\0bc", 5);
    buf_reset(&b);
    assert_string_equal(b.data, "");
    buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 0);
    buf_done(&b);
}

static void it_grows_across_every_boundary(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        buf_chr(&b, (char)('a' + i % 26));
        assert_true(b.len < b.cap && b.data[b.len] == '\0');
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(b.data[i], 'a' + i % 26);
    buf_done(&b);
}

static void numbers_are_written_in_decimal(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    buf_u64(&b, 0);
    buf_chr(&b, ',');
    buf_u64(&b, 10);
    buf_chr(&b, ',');
    buf_u64(&b, 18446744073709551615u);
    assert_string_equal(b.data, "0,10,18446744073709551615");
    buf_done(&b);
}

static void formatted_text_of_any_length_fits(void **state)
{
    (void)state;
    for (int width = 1; width < 300; width++) {
        struct buf b = BUF_INIT;
        buf_str(&b, "=");
        buf_printf(&b, "%*d", width, 7);
        assert_int_equal(b.len, 1 + width);
        assert_int_equal(strlen(b.data), b.len);
        assert_int_equal(b.data[b.len - 1], '7');
        buf_done(&b);
    }
}

static void what_is_taken_belongs_to_the_taker(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    char *none = buf_take(&b);
    assert_string_equal(none, "");
    free(none);
    buf_str(&b, "text");
    char *text = buf_take(&b);
    assert_string_equal(text, "text");
    assert_null(b.data);
    assert_int_equal(b.len + b.cap, 0);
    free(text);
}

static void memory_of_no_size_is_memory_all_the_same(void **state)
{
    void *p[] = {mem_alloc(0), mem_zero(0, 8), mem_resize(NULL, 0, 8), mem_dup(NULL, 0),
                 mem_printf("%s", "")};

    (void)state;
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        assert_non_null(p[i]);
        free(p[i]);
    }
    assert_null(mem_strdup(NULL));
}

static void a_copy_has_a_nul_behind_it(void **state)
{
    (void)state;
    char *copy = mem_dup("a\0bcd", 3), *text = mem_strdup("word"),
         *made = mem_printf("%d-%s", 4, "x");
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(text, "word");
    assert_string_equal(made, "4-x");
    free(copy);
    free(text);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_needs_no_memory),
        cmocka_unit_test(whatever_is_added_ends_in_a_nul),
        cmocka_unit_test(it_grows_across_every_boundary),
        cmocka_unit_test(numbers_are_written_in_decimal),
        cmocka_unit_test(formatted_text_of_any_length_fits),
        cmocka_unit_test(what_is_taken_belongs_to_the_taker),
        cmocka_unit_test(memory_of_no_size_is_memory_all_the_same),
        cmocka_unit_test(a_copy_has_a_nul_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
