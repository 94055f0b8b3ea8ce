/*
 * wake_pace.c - how often dqd lets itself be woken.
 */
#include "poller/state.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000)

static void cheap_looks_are_two_milliseconds_apart(void **state)
{
    int64_t paid_us = 0, now_us = 100 * SECOND;
    int looks = 0;

    (void)state;
    for (int64_t end_us = now_us + SECOND; now_us < end_us; looks++)
        now_us = wake_pace(&paid_us, now_us, 100);
    assert_int_equal(looks, 500);
}

static void a_look_that_takes_long_for_once_puts_none_off(void **state)
{
    int64_t paid_us = 0, now_us = 100 * SECOND;

    (void)state;
    assert_int_equal(wake_pace(&paid_us, now_us, 100000), now_us + 2000);
    assert_int_equal(wake_pace(&paid_us, now_us + 20000, 200), now_us + 22000);
    assert_true(wake_pace(&paid_us, now_us + 40000, 5 * SECOND) > now_us + 10 * SECOND);
}

static void dear_looks_take_a_quarter_of_the_time(void **state)
{
    int64_t paid_us = 0, now_us = 100 * SECOND, cost_us = 0;

    (void)state;
    for (int64_t end_us = now_us + 100 * SECOND; now_us < end_us; cost_us += 30000)
        now_us = wake_pace(&paid_us, now_us, 30000);
    assert_in_range(cost_us, 24 * SECOND, 26 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheap_looks_are_two_milliseconds_apart),
        cmocka_unit_test(a_look_that_takes_long_for_once_puts_none_off),
        cmocka_unit_test(dear_looks_take_a_quarter_of_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
