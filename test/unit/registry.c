/*
 * registry.c - for how long a pass that has ended speaks for the next one.
 */
#include "poller/registry.h"

#include "base/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void passes_are_expected_by_the_interval_of_the_last_two(void **state)
{
    static const struct {
        int64_t since_ms, next_ms;
    } cases[] = {
        {-1, 2 * WHEN_MINUTE}, /* the first one: as if cron had started it */
        {0, WHEN_MINUTE},
        {5 * WHEN_SECOND, WHEN_MINUTE},
        {WHEN_MINUTE, 3 * WHEN_MINUTE},
        {WHEN_HOUR, 3 * WHEN_HOUR},
        {3 * WHEN_DAY, 7 * WHEN_DAY},
        {INT64_MAX, 7 * WHEN_DAY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(registry_next_pass_ms(cases[i].since_ms), cases[i].next_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_expected_by_the_interval_of_the_last_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
