/*
 * crowded.c - when jobs that were claimed ahead are too many for how slow they have become.
 */
#include "poller/look_tag.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#define MS 1000

static const struct {
    uint32_t max_running, slots, queued, running, elsewhere;
    int64_t mean_us, idle_us,
        crowded_us; /* crowded_us: the duration that it has then; 0: it is not */
} cases[] = {
    /* as quick as expected: 800 wait for 100 ms */
    {8, 32, 800, 8, 0, MS, -5 * MS, 0},
    {8, 32, 800, 8, 0, MS, 15 * MS, 0},
    /* none has been started for a while, and the rest would take more than two seconds */
    {8, 32, 800, 8, 0, MS, 21 * MS, 21 * MS},
    {8, 32, 800, 8, 0, MS, 2000 * MS, 2000 * MS},
    /* jobs have ended, and took long; some are started all the time */
    {8, 32, 12, 8, 0, 1300 * MS, 0, 0},
    {8, 32, 13, 8, 0, 1300 * MS, 0, 1300 * MS},
    /* no more than can run at once: a process takes long to be ready, or other tags have the slots
     */
    {8, 32, 8, 0, 0, MS, 9000 * MS, 0},
    {8, 32, 9, 0, 0, MS, 9000 * MS, 9000 * MS},
    {32, 4, 4, 0, 0, MS, 9000 * MS, 0},
    {32, 4, 4, 4, 0, MS, 9000 * MS, 9000 * MS},
    /* what runs elsewhere makes no room here */
    {8, 32, 3, 6, 6, 1000 * MS, 0, 0},
    {8, 32, 3, 7, 6, 1000 * MS, 0, 0},
    {8, 32, 9, 6, 6, 1000 * MS, 0, 1000 * MS},
};

static void as_slow_as_they_are_by_now(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct look_tag t = {.max_running = cases[i].max_running,
                             .queued = cases[i].queued,
                             .running = cases[i].running,
                             .elsewhere = cases[i].elsewhere,
                             .mean_us = cases[i].mean_us};
        const bool crowded = look_tag_is_crowded(&t, cases[i].slots, cases[i].idle_us);

        if (crowded != (cases[i].crowded_us > 0))
            fail_msg("case %zu: %d", i, crowded);
        assert_int_equal(t.mean_us, crowded ? cases[i].crowded_us : cases[i].mean_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_slow_as_they_are_by_now)};

    return cmocka_run_group_tests_name("crowded", tests, NULL, NULL);
}
