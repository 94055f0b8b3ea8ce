/* When a failed attempt is tried again. */
#include "base/retry.h"
#include "base/when.h"
#include "base/when_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table.h"

static bool read_ladder(char *text, struct retry_policy *p)
{
    struct err err;
    char *step;

    if (!strcmp(text, "default")) {
        *p = retry_default;
        return true;
    }
    *p = (struct retry_policy){0};
    while ((step = strsep(&text, " ")) && strcmp(step, "-"))
        if (when_parse_duration(step, &p->step_ms[p->steps++], &err))
            return false;
    return true;
}

static bool check_row(char **cell, const char *where)
{
    struct retry_policy p;
    struct err err;
    int64_t expected = -1;

    if (!read_ladder(cell[0], &p) ||
        (strcmp(cell[5], "never") && when_parse_duration(cell[5], &expected, &err))) {
        print_error("%s: malformed row\n", where);
        return false;
    }
    p.jitter_percent = (unsigned)atoi(cell[1]);
    int64_t delay_ms =
        retry_delay_ms(&p, (uint32_t)strtoul(cell[2], NULL, 10),
                       (uint32_t)strtoul(cell[3], NULL, 10), strtoull(cell[4], NULL, 10));
    if (delay_ms != expected)
        print_error("%s: got %lld ms\n", where, (long long)delay_ms);
    return delay_ms == expected;
}

static void the_delay_follows_the_ladder(void **state)
{
    (void)state;
    assert_true(table_check("retry.tbl", 6, check_row));
}

static void the_default_ladder_allows_ten_attempts(void **state)
{
    struct retry_policy none = {0};

    (void)state;
    assert_int_equal(retry_max_attempts(&retry_default), 10);
    assert_int_equal(retry_max_attempts(&none), 1);
}

/* Stored at 10:00:00; the attempts at 10:00:00, :05, :35 and 10:01:35 are where the ladder is known
 * from. */
static void a_task_that_keeps_failing_is_planned_to_the_millisecond(void **state)
{
    static const char *const planned[] = {
        "2026-11-20T10:00:05.000Z", "2026-11-20T10:00:35.000Z", "2026-11-20T10:01:35.000Z",
        "2026-11-20T10:11:35.000Z", "2026-11-20T10:41:35.000Z", "2026-11-20T11:41:35.000Z",
        "2026-11-20T17:41:35.000Z", "2026-11-21T17:41:35.000Z", "2026-11-23T17:41:35.000Z"};
    struct err err;
    char text[WHEN_TEXT_SIZE];
    int64_t at;

    (void)state;
    assert_int_equal(when_parse_instant("2026-11-20T10:00:00Z", 0, &at, &err), 0);
    for (uint32_t attempt = 1; attempt <= 9; attempt++) {
        at += retry_delay_ms(&retry_default, attempt, 0, 12345);
        assert_string_equal(when_format_utc(text, at), planned[attempt - 1]);
    }
    assert_int_equal(retry_delay_ms(&retry_default, 10, 0, 12345), -1);
}

static void jitter_spreads_over_its_whole_share_and_no_further(void **state)
{
    struct retry_policy p = {.step_ms = {10000}, .steps = 1, .jitter_percent = 20};
    uint64_t random = 7;
    int64_t least = INT64_MAX, most = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t delay_ms = retry_delay_ms(&p, 1, 0, random >> 20);
        least = delay_ms < least ? delay_ms : least;
        most = delay_ms > most ? delay_ms : most;
    }
    assert_in_range(least, 10000, 10020);
    assert_in_range(most, 11980, 12000);
}

static void failures_settled_together_are_up_to_a_tenth_apart(void **state)
{
    const struct retry_policy given = {.step_ms = {10000}, .steps = 1, .jitter_percent = 20};

    (void)state;
    assert_int_equal(retry_apart_ms(&retry_default, 5000), 500);
    assert_int_equal(retry_apart_ms(&retry_default, 9), 0);
    assert_int_equal(retry_apart_ms(&given, 10000), 0);
}

static void pauses_double_up_to_the_longest(void **state)
{
    (void)state;
    assert_int_equal(retry_pause(0, 5, 30), 5);
    assert_int_equal(retry_pause(5, 5, 30), 10);
    assert_int_equal(retry_pause(20, 5, 30), 30);
    assert_int_equal(retry_pause(0, 5, 3), 3);
}

static void pauses_for_a_lock_are_long_beside_the_tries(void **state)
{
    (void)state;
    assert_int_equal(retry_pause_locked(0, 0), 5000);
    assert_int_equal(retry_pause_locked(5000, 100), 10000);
    assert_int_equal(retry_pause_locked(5000, 20000), 100000);
    assert_int_equal(retry_pause_locked(5000, 2000000), 5000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_delay_follows_the_ladder),
        cmocka_unit_test(the_default_ladder_allows_ten_attempts),
        cmocka_unit_test(a_task_that_keeps_failing_is_planned_to_the_millisecond),
        cmocka_unit_test(jitter_spreads_over_its_whole_share_and_no_further),
        cmocka_unit_test(failures_settled_together_are_up_to_a_tenth_apart),
        cmocka_unit_test(pauses_double_up_to_the_longest),
        cmocka_unit_test(pauses_for_a_lock_are_long_beside_the_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
