/*
 * dbclock.c - the database's clock as the poller guesses it: never early, soon precise, and right
 * again after a clock was set.
 */
#include "poller/dbclock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* the database's clock minus the steady one, as it really is */
#define OFFSET_US INT64_C(1790000000123456)

static int64_t shown(int64_t steady_us)
{
    return steady_us + OFFSET_US;
}

static void reached_is_never_early(void **state)
{
    struct dbclock c = {0};

    (void)state;
    for (int64_t at = 5000000; at < 9000000; at += 37211) {
        dbclock_sample(&c, at, at + 900, shown(at + 700));
        for (int64_t due = shown(at) / 1000 + 10; due < shown(at) / 1000 + 20; due++)
            assert_true(shown(dbclock_reached_us(&c, due)) >= due * 1000);
    }
}

static void samples_narrow_it_to_the_way_to_the_server_and_back(void **state)
{
    struct dbclock c = {0};
    int64_t at = 5000000;

    (void)state;
    for (int i = 0; i < 200; i++, at += 10139)
        dbclock_sample(&c, at, at + 400, shown(at + 200));
    assert_in_range(c.high_us - c.low_us, 0, 400);
    assert_true(c.low_us <= OFFSET_US && OFFSET_US <= c.high_us);
}

/* By 100 microseconds a second: what was known a while ago is known less well. */
static void clocks_that_drift_apart_are_followed(void **state)
{
    struct dbclock c = {0};

    (void)state;
    for (int64_t second = 1; second < 100; second++) {
        const int64_t at = second * 1000000, offset = OFFSET_US + second * 100;

        dbclock_sample(&c, at, at + 400, at + 200 + offset);
        assert_true(c.low_us <= offset && offset <= c.high_us);
    }
}

static void a_slow_answer_does_not_spoil_it(void **state)
{
    struct dbclock c = {0};

    (void)state;
    dbclock_sample(&c, 1000000, 1000300, shown(1000100));
    dbclock_sample(&c, 1100000, 9000000, shown(1100100));
    assert_true(c.low_us <= OFFSET_US && OFFSET_US <= c.high_us);
    assert_true(c.high_us - c.low_us < 10000);
}

static void a_reading_at_the_end_of_a_slow_statement_makes_up_for_that(void **state)
{
    struct dbclock c = {0};

    (void)state;
    dbclock_sample_twice(&c, 1000000, 1005000, shown(1000100), shown(1004900));
    assert_true(c.low_us <= OFFSET_US && OFFSET_US <= c.high_us);
    assert_in_range(c.high_us - c.low_us, 0, 200);
}

static void of_a_clock_that_was_set_between_two_readings_the_first_counts(void **state)
{
    const int64_t jumps[] = {-3600000000, -5000, 5000, 3600000000};

    (void)state;
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        struct dbclock c = {0};
        dbclock_sample_twice(&c, 1000000, 1005000, shown(1000100), shown(1004900) + jumps[i]);
        assert_true(c.low_us <= OFFSET_US && OFFSET_US <= c.high_us);
        assert_in_range(c.high_us - c.low_us, 5000, 5000);
    }
}

static void a_clock_that_was_set_is_followed(void **state)
{
    struct dbclock c = {0};

    (void)state;
    dbclock_sample(&c, 1000000, 1000300, shown(1000100));
    dbclock_sample(&c, 2000000, 2000300, shown(2000100) - INT64_C(3600000000));
    assert_in_range(shown(2000200) / 1000 - 3600000 - dbclock_at(&c, 2000200) + 1, 0, 2);
}

static void only_a_clock_that_was_set_ahead_is_noted(void **state)
{
    const int64_t jumps[] = {-3600000000, -5000, 0, 5000, 3600000000};

    (void)state;
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        struct dbclock c = {0};
        dbclock_sample(&c, 1000000, 1000300, shown(1000100));
        assert_true(dbclock_is_before(&c, shown(9000000) / 1000, 7000000));
        assert_false(dbclock_is_before(&c, shown(9000000) / 1000, 8999000));
        assert_false(dbclock_is_before(&c, INT64_MIN, 7000000));
        dbclock_sample(&c, 2000000, 2000300, shown(2000100) + jumps[i]);
        assert_int_equal(c.ahead_us, jumps[i] == 3600000000 ? 2000300 : 0);
    }
}

static void drift_widens_the_bounds(void **state)
{
    struct dbclock c = {0};
    int64_t width;

    (void)state;
    dbclock_sample(&c, 1000000, 1000300, shown(1000100));
    width = c.high_us - c.low_us;
    /* an hour later the other clock has fallen behind by 100 ppm: no contradiction, just a new
     * sample */
    dbclock_sample(&c, 3601000000, 3601000300, shown(3601000100) - 360000);
    assert_true(c.low_us <= OFFSET_US - 360000 && OFFSET_US - 360000 <= c.high_us);
    assert_true(c.high_us - c.low_us <= width + 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reached_is_never_early),
        cmocka_unit_test(samples_narrow_it_to_the_way_to_the_server_and_back),
        cmocka_unit_test(clocks_that_drift_apart_are_followed),
        cmocka_unit_test(a_slow_answer_does_not_spoil_it),
        cmocka_unit_test(a_reading_at_the_end_of_a_slow_statement_makes_up_for_that),
        cmocka_unit_test(of_a_clock_that_was_set_between_two_readings_the_first_counts),
        cmocka_unit_test(a_clock_that_was_set_is_followed),
        cmocka_unit_test(only_a_clock_that_was_set_ahead_is_noted),
        cmocka_unit_test(drift_widens_the_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
