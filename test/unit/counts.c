/* What happened to tasks in some time. */
#include "base/counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void percentiles_are_estimated_within_a_step(void **state)
{
    struct counts c = {0};
    (void)state;
    assert_int_equal(counts_late(&c, 50), -1);
    counts_start(&c, -3);
    assert_int_equal(counts_late(&c, 50), 0);
    for (int i = 0; i < 97; i++)
        counts_start(&c, 20);
    counts_start(&c, 4000);
    counts_start(&c, 7200001);
    assert_int_equal(c.started, 100);
    assert_in_range(counts_late(&c, 50), 10, 25);
    assert_in_range(counts_late(&c, 99), 1000, 5000);
    assert_int_equal(counts_late(&c, 100), 7200001);
}

static void a_bound_belongs_to_its_step_and_ranks_are_rounded_up(void **state)
{
    struct counts c = {0};
    (void)state;
    counts_start(&c, 5);
    counts_start(&c, 5);
    assert_int_equal(c.late[0], 2);
    counts_start(&c, 4000);
    assert_in_range(counts_late(&c, 66), 1, 5);
    assert_in_range(counts_late(&c, 67), 1000, 4000);
}

static void no_estimate_exceeds_the_maximum(void **state)
{
    struct counts c = {0};
    (void)state;
    counts_start(&c, 30);
    assert_int_equal(counts_late(&c, 50), 30);
}

static void run_times_are_counted_apart_from_lateness(void **state)
{
    struct counts c = {0}, sum = {0};
    (void)state;
    assert_int_equal(counts_took(&c, 50), -1);
    counts_start(&c, 4000);
    assert_int_equal(counts_took(&c, 50), -1);
    for (int i = 0; i < 19; i++)
        counts_end(&c, 200);
    counts_end(&c, 7200001);
    counts_add(&sum, &c);
    assert_int_equal(sum.ended, 20);
    assert_int_equal(sum.run_sum_ms, 19 * 200 + 7200001);
    assert_in_range(counts_took(&sum, 50), 100, 250);
    assert_in_range(counts_took(&sum, 95), 100, 250);
    assert_int_equal(counts_took(&sum, 96), 7200001);
    assert_in_range(counts_late(&sum, 50), 1000, 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_estimated_within_a_step),
        cmocka_unit_test(a_bound_belongs_to_its_step_and_ranks_are_rounded_up),
        cmocka_unit_test(run_times_are_counted_apart_from_lateness),
        cmocka_unit_test(no_estimate_exceeds_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
