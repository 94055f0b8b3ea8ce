/*
 * aside.c - which rows that cannot be changed are worth a line in the log.
 */
#include "poller/aside.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STEP_US INT64_C(100000)

static void locked(struct aside *a, uint64_t id, int64_t now_us)
{
    struct rows_fault fault = {.id = id, .err = {.code = ERR_LOCKED}};
    struct rows_faults faults = {.items = &fault, .count = 1};
    aside_put(a, &faults, now_us);
}

static void claims_of_other_dqds_are_no_news(void **state)
{
    struct aside a = {.rows = NULL};

    (void)state;
    /* for three seconds another row each time, as they go through a backlog */
    for (uint64_t id = 1; id <= 30; id++) {
        locked(&a, id, (int64_t)id * STEP_US);
        assert_false(aside_news(&a, (int64_t)id * STEP_US));
    }
    aside_done(&a);
}

static void a_row_that_stays_locked_is_named(void **state)
{
    struct aside a = {.rows = NULL};
    int64_t news_at = 0;

    (void)state;
    for (int64_t n = 1; !news_at && n <= 30; n++) {
        locked(&a, 7, n * STEP_US);
        locked(&a, 100 + (uint64_t)n, n * STEP_US);
        locked(&a, 7, n * STEP_US);
        if (aside_news(&a, n * STEP_US))
            news_at = n * STEP_US;
    }
    assert_true(news_at > 0);
    assert_int_equal(a.last.id, 7);
    aside_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_of_other_dqds_are_no_news),
        cmocka_unit_test(a_row_that_stays_locked_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
