/* Tags: counts, switches, lateness. */
#include "harness.h"
#include "store/ask/tag_late.h"
#include "store/ask/tag_store.h"
#include "store/fleet/limit_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

static const struct tag_count_how quick, exact = {.exact = true}, hasty = {.most_ms = -1},
                                         skipping = {.skip = ~TASK_BIT(TASK_RUNNING)};

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

/* The number of tasks in the tags that a list has, and the greatest error of one of them, in
 * percent. */
static uint64_t total(const char *glob, const struct tag_count_how *how, bool *ret_sampled,
                      double *ret_error)
{
    struct tag_info *list;
    size_t count;
    int64_t now_at;
    uint64_t sum = 0;

    *ret_sampled = false;
    *ret_error = 0;
    ok(tag_store_list(db, glob, how, &list, &count, &now_at, &err));
    for (size_t i = 0; i < count; i++) {
        for (int s = 0; s < TASK_STATUS_COUNT; s++) {
            double real = (double)number(
                       db, "SELECT COUNT(*) FROM dq_task WHERE tag = '%s' AND status = %d",
                       list[i].tag, s),
                   error = (double)list[i].count[s] - real;

            sum += list[i].count[s];
            *ret_sampled |= list[i].sampled[s];
            if (!list[i].sampled[s])
                assert_true(list[i].count[s] == (uint64_t)real);
            *ret_error = MAX(*ret_error, real > 0 ? 100 * (error < 0 ? -error : error) / real : 0);
        }
    }
    tag_store_free(list, count);
    return sum;
}

/* In a random order, so that the pages of the index are filled unevenly. */
static void large_counts_are_close(void **state)
{
    const uint64_t all = 300000;
    uint64_t some;
    double error;
    bool sampled;
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)"
        " SELECT CONCAT('t', LPAD(FLOOR(40 * POW(CRC32(seq) / 4294967296, 2)), 2, '0')), '', ELT(1 + seq %% 10, 0, 0, 0, 1, 1, 1, "
        "1, 1, 2, 4), UTC_TIMESTAMP(3) - INTERVAL CRC32(seq + 7) * 1000 MICROSECOND, UTC_TIMESTAMP(3) FROM %s",
        numbers((unsigned)all));
    number(db, "ANALYZE NO_WRITE_TO_BINLOG TABLE dq_task");
    some = (uint64_t)number(db, "SELECT COUNT(*) FROM dq_task WHERE tag LIKE 't0%%'");
    assert_true(total(NULL, &exact, &sampled, &error) == all);
    assert_false(sampled);
    uint64_t n = total(NULL, &hasty, &sampled, &error);
    assert_in_range(n, all * 95 / 100, all * 105 / 100);
    assert_true(sampled);
    assert_true(error < 5);
    n = total("t0*", &hasty, &sampled, &error);
    assert_in_range(n, some * 95 / 100, some * 105 / 100);
    assert_true(sampled);
    assert_true(error < 5);
}

static void states_are_skipped(void **state)
{
    struct tag_info *list;
    size_t count;
    int64_t now_at;
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time) SELECT 'small', '', 2 + (seq > 10), "
        "UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM %s",
        numbers(12));
    add("small", NULL, -5000);
    ok(tag_store_list(db, NULL, &skipping, &list, &count, &now_at, &err));
    assert_int_equal(list[0].count[TASK_FAILED], 1);
    assert_int_equal(list[0].count[TASK_RUNNING], 2);
    assert_int_equal(list[0].due, 1);
    assert_false(list[0].due_sampled || list[0].sampled[TASK_RUNNING]);
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
    /* a claim that was given back leaves its owner, and no time of a start */
    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time, update_time, host) VALUES ('released', '', "
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

/* A row may cost 50 us: without time, only some are read, however many tags there are. */
static void lateness_is_read_while_there_is_time(void **state)
{
    struct tag_info *list;
    size_t count;
    int64_t now_at;
    (void)state;

    run(db,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time) SELECT CONCAT('tag', seq %% 40), '', '2020-01-01', "
        "UTC_TIMESTAMP(3) FROM %s",
        numbers(40000));
    ok(tag_store_list(db, NULL, &quick, &list, &count, &now_at, &err));
    int64_t before = reads(db);
    ok(tag_late_read(db, list, count, true, 0, &err));
    assert_in_range(reads(db) - before, 40, 10000);
    assert_true(list[0].late_sampled);
    tag_store_free(list, count);
}

static void a_pause_is_seen_until_it_ends(void **state)
{
    struct tag_info one;
    struct tag_info *list;
    size_t count;
    int64_t now_at;
    (void)state;
    struct event_act p = {.token = "1", .actor = "root@host", .verb = "pause", .tag = "p"},
                     q = {.token = "2", .actor = "me", .verb = "pause", .tag = "q"},
                     absent = {.token = "3", .actor = "me", .verb = "resume", .tag = "absent"};
    assert_int_equal(limit_store_pause(db, &p, false, INT64_MAX, 0, "it's broken", &err), 1);
    assert_int_equal(limit_store_pause(db, &q, false, TASK_TIME_NONE, 3600000, NULL, &err), 1);
    run(db, "INSERT INTO dq_limit (name) VALUES ('lock only')");
    ok(tag_store_list(db, NULL, &quick, &list, &count, &now_at, &err));
    assert_int_equal(count, 2);
    assert_true(list[0].paused_until_at == INT64_MAX);
    assert_string_equal(list[0].paused_by, "root@host");
    assert_string_equal(list[0].pause_reason, "it's broken");
    assert_in_range(list[1].paused_until_at - now_at, 3500000, 3600000);
    assert_null(list[1].pause_reason);
    tag_store_free(list, count);
    assert_int_equal(limit_store_tag(db, "p", &one, &err), 0);
    assert_true(one.paused_until_at == INT64_MAX);
    assert_string_equal(one.paused_by, "root@host");
    assert_string_equal(one.pause_reason, "it's broken");
    limit_store_tag_done(&one);
    assert_int_equal(limit_store_pause(db, &q, false, TASK_TIME_NONE, 0, NULL, &err), 1);
    assert_int_equal(limit_store_tag(db, "q", &one, &err), 0);
    assert_true(one.paused_until_at == TASK_TIME_NONE);
    limit_store_tag_done(&one);
    p.token[0] = '4';
    p.verb = "resume";
    assert_int_equal(limit_store_resume(db, &p, &err), 1);
    assert_int_equal(limit_store_resume(db, &p, &err), 0);
    assert_int_equal(limit_store_resume(db, &absent, &err), 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event WHERE actor = 'root@host'"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event WHERE verb = 'resume'"), 1);
    ok(tag_store_list(db, NULL, &quick, &list, &count, &now_at, &err));
    assert_int_equal(count, 0);
    tag_store_free(list, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counts_are_exact_while_they_are_cheap, harness_setup),
        cmocka_unit_test_setup(large_counts_are_close, harness_setup),
        cmocka_unit_test_setup(states_are_skipped, harness_setup),
        cmocka_unit_test_setup(lateness_counts_from_when_a_task_could_have_started, harness_setup),
        cmocka_unit_test_setup(lateness_of_many_tags_is_that_of_each, harness_setup),
        cmocka_unit_test_setup(lateness_of_many_tags_is_marked_if_it_is_a_part, harness_setup),
        cmocka_unit_test_setup(lateness_is_read_while_there_is_time, harness_setup),
        cmocka_unit_test_setup(a_pause_is_seen_until_it_ends, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
