/* Texts and their numbers. */
#include "base/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MANY 1000

/* To a comparison as strings, all of them would be the same. */
static size_t make_key(char key[16], size_t i)
{
    return (size_t)snprintf(key, 16, "key%c%zu", '\0', i);
}

static void keys_are_numbered_in_the_order_in_which_they_were_added(void **state)
{
    static char keys[MANY][16];
    struct index x = {0};
    char copy[16];

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        size_t len = make_key(keys[i], i);
        assert_int_equal(index_find(&x, keys[i], len), INDEX_NONE);
        index_add(&x, keys[i], len);
        assert_int_equal(index_find(&x, keys[i], len), i);
    }
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(index_find(&x, copy, make_key(copy, i)), i);
    assert_int_equal(index_find(&x, copy, make_key(copy, MANY)), INDEX_NONE);
    assert_int_equal(index_find(&x, "", 0), INDEX_NONE);
    index_add(&x, "", 0);
    assert_int_equal(index_find(&x, "", 0), MANY);
    index_done(&x);
}

static void an_index_that_is_done_is_empty(void **state)
{
    struct index x = {0};

    (void)state;
    index_add(&x, "mail", 4);
    index_done(&x);
    assert_int_equal(index_find(&x, "mail", 4), INDEX_NONE);
    index_add(&x, "sms", 3);
    assert_int_equal(index_find(&x, "sms", 3), 0);
    index_done(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_numbered_in_the_order_in_which_they_were_added),
        cmocka_unit_test(an_index_that_is_done_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
