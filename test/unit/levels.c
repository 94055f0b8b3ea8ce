/* Which level of a tag's due tasks starts next, over many claims. */
#include "poller/look_tag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/param.h>

/* A claim as the store makes it: what is owed first, then the highest levels. Appends the levels to
 * `starts`. */
static size_t start_some(struct look_tag *t, size_t count, size_t due[TASK_LEVELS],
                         enum task_level *starts)
{
    size_t owed[TASK_LEVELS], won[TASK_LEVELS] = {0}, n = 0;
    bool drained[TASK_LEVELS] = {false};

    task_levels_owed(t->levels, t->passed, count, owed);
    for (int i = 0; i < 2 * TASK_LEVELS; i++) {
        enum task_level of = task_levels[i % TASK_LEVELS];
        size_t most = i < TASK_LEVELS ? MIN(owed[of], count - n) : count - n, had = n;

        for (; n < had + most && due[of]; due[of]--, won[of]++)
            starts[n++] = of;
        drained[of] |= n < had + most;
    }
    look_tag_passed(t, won, drained);
    return n;
}

static void begin_levels(struct look_tag *t, const size_t due[TASK_LEVELS])
{
    *t = (struct look_tag){.next_at = TASK_TIME_NONE};
    for (int i = 0; i < TASK_LEVELS; i++)
        if (due[i])
            look_tag_new(t, (enum task_level)i, 0);
}

#define STARTS 4000

/* Of any eight starts, each level that has tasks due gets one, and the highest gets the rest. */
static void no_level_starves_the_others(void **state)
{
    static const size_t dues[][TASK_LEVELS] = {{4000, 4000, 4000}, {4000, 4000, 0},
                                               {4000, 0, 4000},    {0, 4000, 4000},
                                               {4000, 300, 40},    {40, 4000, 300}};

    (void)state;
    for (size_t i = 0; i < sizeof dues / sizeof *dues; i++) {
        enum task_level starts[STARTS];
        size_t due[TASK_LEVELS], since[TASK_LEVELS] = {0}, n = 0;
        struct look_tag t;

        memcpy(due, dues[i], sizeof due);
        begin_levels(&t, due);
        while (n < STARTS && start_some(&t, 1, due, &starts[n])) {
            for (int of = 0; of < TASK_LEVELS; of++) {
                since[of] = (int)starts[n] == of || !due[of] ? 0 : since[of] + 1;
                assert_in_range(since[of], 0, 7);
            }
            n++;
        }
        size_t high = 0;
        for (size_t k = 0; k < n && k < 40; k++)
            high += starts[k] == (dues[i][TASK_HIGH] ? TASK_HIGH : TASK_NORMAL);
        assert_in_range(high, 40 * 5 / 7, 40);
    }
}

/* Claims of many at once. */
static void large_claims_share_as_small_ones_do(void **state)
{
    size_t due[TASK_LEVELS] = {100000, 100000, 100000}, sum[TASK_LEVELS] = {0}, all = 0;
    enum task_level starts[500];
    struct look_tag t;

    (void)state;
    begin_levels(&t, due);
    for (size_t count = 1; count <= 200; count++) {
        size_t n = start_some(&t, count, due, starts);
        for (size_t i = 0; i < n; i++)
            sum[starts[i]]++;
        all += n;
        for (int of = 0; of < TASK_LEVELS && all > 100; of++)
            assert_true(sum[of] * 8 >= all);
    }
    assert_true(sum[TASK_HIGH] * 10 >= all * 7);
}

/* Each run ends before the next level has its part, whatever place it begins at. */
static void runs_of_a_few_starts_share_as_one_does(void **state)
{
    const size_t places = TASK_LEVEL_PART * TASK_LEVEL_PART * TASK_LEVEL_PART;
    size_t sum[TASK_LEVELS] = {0}, all = 0;

    (void)state;
    for (size_t run = 0; run < places; run++) {
        size_t due[TASK_LEVELS] = {100, 100, 100};
        enum task_level starts[TASK_LEVEL_PART];
        struct look_tag t;

        begin_levels(&t, due);
        look_tag_begin_levels(&t, run);
        for (size_t i = 0; i + 1 < TASK_LEVEL_PART; i++, all++) {
            assert_int_equal(start_some(&t, 1, due, &starts[i]), 1);
            sum[starts[i]]++;
        }
    }
    for (int of = 0; of < TASK_LEVELS; of++)
        assert_true(sum[of] * 8 >= all);
    assert_true(sum[TASK_HIGH] * 10 >= all * 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_level_starves_the_others),
        cmocka_unit_test(large_claims_share_as_small_ones_do),
        cmocka_unit_test(runs_of_a_few_starts_share_as_one_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
