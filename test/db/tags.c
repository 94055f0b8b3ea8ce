/* Tags: counts, switches, lateness. */
#include "harness.h"
#include "store/tag_lateness.h"
#include "store/tag_pause.h"
#include "store/tag_store.h"

#include <stdio.h>
#include <stdlib.h>

static const struct tag_count_how quick, exact = {.exact = true},
                                         rough = {.rough = ~TASK_BIT(TASK_RUNNING)};

static void counts_are_exact_while_they_are_cheap(void **state)
{
    struct tag_info *list;
    size_t count;
    int64_t now_at;
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time) SELECT 'big', '', 1, UTC_TIMESTAMP(3), "
        "UTC_TIMESTAMP(3)"
        " FROM %s",
        numbers(10500));
    add("big", NULL, -5000);
    add("big", NULL, 60000);
    add("a.later", NULL, 60000);
    ok(tag_store_list(db, NULL, &quick, &list, &count, &now_at, &err));
    assert_int_equal(count, 2);
    assert_string_equal(list[0].tag, "a.later");
    assert_int_equal(list[0].count[TASK_PENDING], 1);
    assert_int_equal(list[0].due, 0);
    assert_true(list[0].late_from_at == TASK_TIME_NONE);
    assert_in_range(list[0].next_at - now_at, 1, 60000);
    assert_string_equal(list[1].tag, "big");
    assert_int_equal(list[1].count[TASK_DONE], 10500);
    assert_false(list[1].sampled[TASK_DONE]);
    assert_int_equal(list[1].count[TASK_PENDING], 2);
    assert_int_equal(list[1].due, 1);
    tag_store_free(list, count);
}

/* Beyond the limit: the server's estimate, marked; and the real number if it is asked for. */
static void large_counts_are_estimates_unless_exact(void **state)
{
    struct tag_info *list;
    size_t count;
    int64_t now_at;
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time) SELECT IF(seq %% 250, 'big', 'small'), '', "
        "2, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM %s",
        numbers(3 * TAG_COUNT_ENTRIES));
    add("small", NULL, -5000);
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time) SELECT 'small', '', 3, UTC_TIMESTAMP(3), "
        "UTC_TIMESTAMP(3) FROM %s",
        numbers(2));
    number(db, "ANALYZE NO_WRITE_TO_BINLOG TABLE dq_task");
    ok(tag_store_list(db, NULL, &quick, &list, &count, &now_at, &err));
    assert_int_equal(count, 2);
    assert_true(list[0].sampled[TASK_FAILED]);
    assert_in_range(list[0].count[TASK_FAILED], TAG_COUNT_ENTRIES / 3, 6 * TAG_COUNT_ENTRIES);
    assert_false(list[1].sampled[TASK_FAILED]);
    assert_int_equal(list[1].count[TASK_FAILED], 1200);
    tag_store_free(list, count);
    ok(tag_store_list(db, NULL, &rough, &list, &count, &now_at, &err));
    assert_true(list[1].sampled[TASK_FAILED]); /* it would have been counted */
    assert_int_equal(list[1].count[TASK_RUNNING], 2);
    assert_false(list[1].sampled[TASK_RUNNING]);
    assert_int_equal(list[1].due, 1);
    assert_false(list[1].due_sampled);
    tag_store_free(list, count);
    ok(tag_store_list(db, "b*", &exact, &list, &count, &now_at, &err));
    assert_int_equal(count, 1);
    assert_int_equal(list[0].count[TASK_FAILED], 3 * TAG_COUNT_ENTRIES - 1200);
    assert_false(list[0].sampled[TASK_FAILED]);
    tag_store_free(list, count);
}

/* How late a tag is, as the list of those that match the glob says; -1: nothing is due. */
static int64_t late_in(const char *glob, const char *tag, bool *ret_sampled)
{
    struct tag_info *list;
    size_t count, i = 0;
    int64_t now_at, late;

    ok(tag_store_list(db, glob, &quick, &list, &count, &now_at, &err));
    while (i < count && strcmp(list[i].tag, tag) != 0)
        i++;
    assert_true(i < count);
    late = list[i].late_from_at == TASK_TIME_NONE ? -1 : now_at - list[i].late_from_at;
    *ret_sampled = list[i].late_sampled;
    tag_store_free(list, count);
    return late;
}

static int64_t late_ms(const char *tag)
{
    bool sampled;
    int64_t late = late_in(tag, tag, &sampled);

    assert_false(sampled);
    return late;
}

/* Tasks that were given a time in the past are late from when they were given it. */
static void lateness_counts_from_when_a_task_could_have_started(void **state)
{
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time) SELECT 'past', '', '2020-01-01', UTC_TIMESTAMP(3) "
        "FROM %s",
        numbers(1500));
    assert_in_range(late_ms("past"), 0, 60000);
    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES ('past', '', UTC_TIMESTAMP(3) - INTERVAL 10 "
        "MINUTE, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR)");
    assert_in_range(late_ms("past"), 600000, 700000);
    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time, update_time) VALUES ('moved', '', '2020-01-01', "
        "'2020-01-01', UTC_TIMESTAMP(3))");
    assert_in_range(late_ms("moved"), 0, 60000);
    /* a claim that was given back leaves its token, and no time of a start */
    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time, update_time, claim_token) VALUES ('released', '', "
        "UTC_TIMESTAMP(3) - INTERVAL 10 MINUTE, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3), REPEAT('a', 16))");
    assert_in_range(late_ms("released"), 600000, 700000);
}

/* Tags with few due tasks are read by one statement. */
static void lateness_of_many_tags_is_that_of_each(void **state)
{
    bool sampled;
    (void)state;

    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time) SELECT CONCAT('few', seq), '', '2020-01-01', "
        "UTC_TIMESTAMP(3) - INTERVAL seq MINUTE FROM %s",
        numbers(300));
    for (unsigned i = 1; i < 300; i += 99) {
        char tag[16];
        snprintf(tag, sizeof tag, "few%u", i);
        assert_in_range(late_in(NULL, tag, &sampled), i * 60000, (i + 2) * 60000);
        assert_false(sampled);
        assert_in_range(late_ms(tag), i * 60000, (i + 2) * 60000);
    }
}

/* However many tags there are, a bounded number of rows is read, and what was left out is marked.
 */
static void lateness_of_many_tags_is_marked_if_it_is_a_part(void **state)
{
    bool sampled;
    (void)state;

    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time) SELECT CONCAT('big', seq %% 200), '', '2020-01-01', "
        "UTC_TIMESTAMP(3) FROM %s",
        numbers(140000));
    assert_in_range(late_in(NULL, "big7", &sampled), 0, 600000);
    assert_true(sampled);
    assert_in_range(late_ms("big7"), 0, 600000);
}

static void a_pause_is_seen_until_it_ends(void **state)
{
    struct tag_pause one;
    struct tag_info *list;
    size_t count;
    int64_t now_at;
    (void)state;
    struct event_act p = {.token = "1", .actor = "root@host", .verb = "pause", .tag = "p"},
                     q = {.token = "2", .actor = "me", .verb = "pause", .tag = "q"},
                     absent = {.token = "3", .actor = "me", .verb = "resume", .tag = "absent"};
    assert_int_equal(tag_pause_begin(db, &p, INT64_MAX, 0, "it's broken", &err), 1);
    assert_int_equal(tag_pause_begin(db, &q, TASK_TIME_NONE, 3600000, NULL, &err), 1);
    run(db, "INSERT INTO dq_tag (tag) VALUES ('lock only')");
    ok(tag_store_list(db, NULL, &quick, &list, &count, &now_at, &err));
    assert_int_equal(count, 2);
    assert_true(list[0].paused_until_at == INT64_MAX);
    assert_string_equal(list[0].paused_by, "root@host");
    assert_string_equal(list[0].pause_reason, "it's broken");
    assert_in_range(list[1].paused_until_at - now_at, 3500000, 3600000);
    assert_null(list[1].pause_reason);
    tag_store_free(list, count);
    assert_int_equal(tag_pause_read(db, "p", &one, &err), 0);
    assert_true(one.until_at == INT64_MAX);
    assert_string_equal(one.by, "root@host");
    assert_string_equal(one.reason, "it's broken");
    tag_pause_done(&one);
    assert_int_equal(tag_pause_begin(db, &q, TASK_TIME_NONE, 0, NULL, &err), 1);
    assert_int_equal(tag_pause_read(db, "q", &one, &err), 0);
    assert_true(one.until_at == TASK_TIME_NONE);
    tag_pause_done(&one);
    p.token[0] = '4';
    p.verb = "resume";
    assert_int_equal(tag_pause_end(db, &p, &err), 1);
    assert_int_equal(tag_pause_end(db, &p, &err), 0);
    assert_int_equal(tag_pause_end(db, &absent, &err), 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event WHERE actor = 'root@host'"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event WHERE verb = 'resume'"), 1);
    ok(tag_store_list(db, NULL, &quick, &list, &count, &now_at, &err));
    assert_int_equal(count, 0);
    tag_store_free(list, count);
}

static void lateness_is_by_nearest_rank(void **state)
{
    struct tag_lateness *list;
    size_t count;
    (void)state;
    ok(tag_lateness_list(db, NULL, 3600000, &list, &count, &err));
    assert_int_equal(count, 0);
    tag_lateness_free(list, count);
    /* a: 1 .. 100 ms late; b: one task, 5 s late, failed; out of the window or not started: not
     * measured. */
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, execution_time, finish_time, create_time)"
        " SELECT 'a', '', 1, n, n + INTERVAL seq * 1000 MICROSECOND, n, n FROM %s, (SELECT UTC_TIMESTAMP(3) - "
        "INTERVAL 10 MINUTE AS n) x",
        numbers(100));
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, execution_time, finish_time, create_time)"
        " SELECT 'b', '', 2, n, n + INTERVAL 5 SECOND, n + INTERVAL 6 SECOND, n FROM (SELECT UTC_TIMESTAMP(3) - INTERVAL 10 "
        "MINUTE AS n) x");
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, execution_time, finish_time, create_time)"
        " SELECT 'a', '', 1, n, n + INTERVAL 1 HOUR, n, n FROM (SELECT UTC_TIMESTAMP(3) - INTERVAL 2 HOUR AS n) x");
    add("a", NULL, -1000);
    ok(tag_lateness_list(db, NULL, 3600000, &list, &count, &err));
    assert_int_equal(count, 3);
    assert_null(list[0].tag);
    assert_int_equal(list[0].started, 101);
    assert_int_equal(list[0].max_ms, 5000);
    assert_int_equal(list[0].failed, 1);
    assert_string_equal(list[1].tag, "a");
    assert_int_equal(list[1].started, 100);
    assert_int_equal(list[1].p50_ms, 50);
    assert_int_equal(list[1].p95_ms, 95);
    assert_int_equal(list[1].p99_ms, 99);
    assert_int_equal(list[1].max_ms, 100);
    assert_int_equal(list[1].done, 100);
    assert_false(list[1].sampled);
    assert_in_range((int)(list[1].done_per_second * 3600 + 0.5), 100, 100);
    assert_string_equal(list[2].tag, "b");
    assert_int_equal(list[2].p50_ms, 5000);
    tag_lateness_free(list, count);
    ok(tag_lateness_list(db, "b", 3600000, &list, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(list[0].started, 1);
    tag_lateness_free(list, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counts_are_exact_while_they_are_cheap, harness_setup),
        cmocka_unit_test_setup(large_counts_are_estimates_unless_exact, harness_setup),
        cmocka_unit_test_setup(lateness_counts_from_when_a_task_could_have_started, harness_setup),
        cmocka_unit_test_setup(lateness_of_many_tags_is_that_of_each, harness_setup),
        cmocka_unit_test_setup(lateness_of_many_tags_is_marked_if_it_is_a_part, harness_setup),
        cmocka_unit_test_setup(a_pause_is_seen_until_it_ends, harness_setup),
        cmocka_unit_test_setup(lateness_is_by_nearest_rank, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
