/*
 * breaker.c - when the duty of breakers is due, and whose result says that a limit is to open
 * again. What it asks of the database is shown by test/daemon/limits.bats.
 */
#include "poller/breaker.h"

#include "base/mem.h"
#include "base/when.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static struct conf conf = {.dqd = {.heartbeat_ms = 3600000}};
static struct context ctx = {.conf = &conf};
static struct minute minute;
static struct look looks;
static struct tag_set tags;
static struct breakers breakers;

/* pay and refund are under the limit shop, which has a breaker. */
static int begin(void **state)
{
    struct handlers *h = mem_zero(1, sizeof *h);

    (void)state;
    h->count = 2;
    h->items = mem_zero(h->count, sizeof *h->items);
    h->items[0] = (struct handler){.name = mem_strdup("pay"),
                                   .limit = mem_strdup("shop"),
                                   .breaker = {3, WHEN_MINUTE, WHEN_MINUTE}};
    h->items[1] = (struct handler){.name = mem_strdup("refund"), .limit = mem_strdup("shop")};
    tags_init(&tags, &looks, NULL, h);
    minute_init(&minute, &ctx);
    breaker_init(&breakers, &ctx, &minute, &tags);
    return 0;
}

static int end(void **state)
{
    (void)state;
    breaker_free(&breakers);
    minute_free(&minute);
    tags_free(&tags);
    look_free(&looks);
    looks = (struct look){0};
    return 0;
}

/* An attempt of the tag that began then has ended. */
static void ended(const char *tag, int64_t start_at, enum task_event event, bool probing)
{
    struct tag_state *t = tags_named(&tags, tag);

    t->probing = probing;
    breaker_ended(
        &breakers, t,
        &(struct settlement){.event = event, .start_at = start_at, .error = "away\nfor long"});
}

static void failures_are_judged_when_they_are_counted(void **state)
{
    (void)state;
    assert_int_equal(breaker_next(&breakers), NEVER_US);
    ended("pay", 1, TASK_TRY_LATER, false);
    assert_string_equal(breakers.items[0].error, "away");
    minute_ended(&minute, "pay", TASK_TRY_LATER, FAULT_COUNTS, 1);
    minute.flush_us -= 2 * conf.dqd.heartbeat_ms * 1000; /* they are due, but the table is locked */
    assert_true(minute_next(&minute) < when_steady_us());
    assert_int_equal(breaker_next(&breakers), NEVER_US);
    /* they are written, and tasks of other tags begin at once */
    minute.unsaved = 0;
    minute.tags[0].unsaved = false;
    minute.flush_us = breakers.items[0].judge_us + 1;
    minute_started(&minute, "other", 0);
    assert_int_equal(breaker_next(&breakers), 0);
}

static void what_says_nothing_of_the_provider_is_not_watched(void **state)
{
    (void)state;
    ended("pay", 1, TASK_SUCCEED, false);
    ended("pay", 1, TASK_SNOOZE, false);
    ended("pay", 1, TASK_GIVE_BACK, false);
    tags_named(&tags, "pay")->probing = true;
    breaker_ended(
        &breakers, tags_named(&tags, "pay"),
        &(struct settlement){.event = TASK_TAKE_BACK, .start_at = 1, .fault = FAULT_EXCUSED});
    assert_int_equal(breakers.count, 0);
}

/* Of two results in a tick, that of the task which tried was the one that began last. */
static void an_attempt_from_before_the_rest_does_not_hide_the_one_that_tried(void **state)
{
    (void)state;
    ended("refund", 5000, TASK_SUCCEED, true);
    ended("pay", 1000, TASK_TRY_LATER, true);
    ended("pay", 2000, TASK_TRY_LATER, false);
    assert_int_equal(breakers.count, 1);
    assert_int_equal(breakers.items[0].start_at, 5000);
    assert_null(breakers.items[0].error);
    ended("pay", 6000, TASK_TRY_LATER, true);
    assert_int_equal(breakers.items[0].start_at, 6000);
    assert_non_null(breakers.items[0].error);
    assert_int_equal(breaker_next(&breakers), 0);
}

static void a_process_that_fails_is_one_failure_but_all_its_tasks_failed(void **state)
{
    static const struct {
        const char *what;
        uint64_t done, failed, retried, excused, failures;
        bool opens;
    } rows[] = {
        {"singly, half", 4, 0, 4, 0, 4, true},
        {"singly, less than half", 5, 0, 4, 0, 4, false},
        {"singly, with dqds that died", 5, 0, 24, 20, 4, false},
        {"singly, with permanent ones", 5, 20, 4, 20, 4, false},
        {"an outage after a good batch", 20, 0, 180, 0, 9, true},
        {"too few processes", 0, 0, 40, 0, 2, false},
        {"mostly good batches", 300, 100, 100, 0, 4, false},
        {"batches, with permanent ones", 30, 100, 4, 100, 4, false},
        {"batches on their last attempt", 20, 60, 0, 0, 3, true},
        {"half of the batches on their last attempt", 60, 30, 30, 0, 3, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct counts c = {.done = rows[i].done,
                                 .failed = rows[i].failed,
                                 .retried = rows[i].retried,
                                 .excused = rows[i].excused,
                                 .failures = rows[i].failures};
        struct breaker_sum sum = {0};

        breaker_add(&sum, &c);
        if (breaker_too_many(&sum, &(struct handler_breaker){.failures = 3}) != rows[i].opens)
            fail_msg("%s", rows[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(failures_are_judged_when_they_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(what_says_nothing_of_the_provider_is_not_watched, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            an_attempt_from_before_the_rest_does_not_hide_the_one_that_tried, begin, end),
        cmocka_unit_test(a_process_that_fails_is_one_failure_but_all_its_tasks_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
