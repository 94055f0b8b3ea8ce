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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_estimated_within_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
