/*
 * handover.c - what of a job is not given to the runner, or comes back from it, and what others are
 * told of a tag whose tasks wait here.
 */
#include "poller/body.c"
#include "poller/handover.c"
#include "poller/served.c"

#include "poller/care.h"
#include "poller/report.h"
#include "runner/message.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static struct conf conf = {
    .dqd = {.lease_ms = 60000, .poll_interval_ms = 1000, .poll_least_ms = 1000}};
static struct context ctx = {.conf = &conf};
static struct minute minute;
static struct settle_results results;
static struct holds holds;
static struct look looks;
static struct flight flight;
static char name[] = "t";
static struct tag_set tags;
static struct tag_state tag;
static struct handlers_table *table;

static int begin(void **state)
{
    struct handlers *handlers = mem_zero(1, sizeof *handlers);

    (void)state;
    handlers->items = mem_zero(1, sizeof *handlers->items);
    handlers->items->name = mem_strdup("t");
    handlers->count = 1;
    minute_init(&minute, &ctx);
    settle_init(&results, &ctx, &minute, NULL, &holds);
    flight_init(&flight, &ctx, &looks, &results, &minute);
    flight.most = 10;
    tags = (struct tag_set){.look = &looks};
    tag = (struct tag_state){.name = name, .set = &tags};
    table = handlers_table_new(handlers);
    return 0;
}

static int end(void **state)
{
    (void)state;
    flight_free(&flight);
    settle_free(&results);
    minute_free(&minute);
    handlers_table_release(table);
    free(tag.rest_error);
    aside_done(&tag.aside);
    return 0;
}

static struct flight_job *job(uint32_t count)
{
    struct flight_job *j = flight_job_new(&flight, &tag, table, 0, count);

    for (uint32_t i = 0; i < count; i++)
        j->flight[i] = (struct flight_task){.id = i + 1, .version = 2};
    return j;
}

/* A task that was cancelled while its batch waited is not started with it. */
static void a_held_batch_that_lost_a_task_is_given_back(void **state)
{
    struct handover h = {&ctx, &flight};
    struct err err;

    (void)state;
    for (enum job_kind kind = JOB_SHORT; kind <= JOB_LONG; kind++) {
        struct flight_job *j = job(2);

        j->kind = kind;
        j->measured = true;
        j->flight[1].lost = true;
        flight_hold(&flight, j, 0);
        assert_int_equal(handover_load(&h, &err), 0);
        assert_int_equal(flight_count(&flight), 0);
        assert_int_equal(results.count, kind + 1);
        assert_int_equal(results.items[kind].s.id, 1);
        assert_int_equal(results.items[kind].s.event, TASK_GIVE_BACK);
    }
}

/* The server refuses to return it. The others of the job go on. */
static void a_task_whose_body_cannot_be_read_fails_now(void **state)
{
    struct flight_job *j = job(2);
    int64_t now_us = when_steady_us(), at = INT64_C(1800000000000);

    (void)state;
    tag.handler = -1; /* of no breaker */
    for (uint32_t i = 0; i < 2; i++)
        task_init(&j->tasks[i]);
    dbclock_sample(&ctx.clock, now_us, now_us, at * 1000);
    give_up(&ctx, &flight, j, 0, "too long");
    assert_int_equal(results.count, 1);
    assert_int_equal(results.items[0].s.event, TASK_GIVE_UP);
    assert_string_equal(results.items[0].s.error, "too long");
    assert_true(results.items[0].s.finish_at >= at &&
                results.items[0].s.finish_at < at + WHEN_HOUR);
    assert_int_equal(j->count, 1);
    assert_int_equal(j->flight[0].id, 2);
    ctx.clock = (struct dbclock){0};
}

/* Its bodies together would exceed what the runner is given: the second one starts a job of its
 * own, and the first one has a job however long it is. */
static void a_body_above_the_bound_has_a_job_of_its_own(void **state)
{
    struct handover h = {&ctx, &flight};
    struct task_array won = {.items = mem_zero(2, sizeof(struct task)), .count = 2, .cap = 2};

    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        task_init(&won.items[i]);
        won.items[i].id = i + 1;
        won.items[i].company = 2;
        won.items[i].body_size = FLIGHT_BODIES_MOST + 1;
        won.items[i].create_at = WHEN_HOUR;
        won.items[i].delay_ms = INT64_MAX; /* as others may have written it */
    }
    handover_take(&h, table, &tag, &won, when_steady_us());
    assert_int_equal(flight_count(&flight), 2);
    assert_int_equal(flight_first(&flight, JOB_LONG)->count, 1);
    assert_int_equal(flight_first(&flight, JOB_LONG)->tasks[0].id, 1);
    assert_int_equal(flight_first(&flight, JOB_LONG)->flight[0].first_at, WHEN_HOUR + WHEN_AT_MAX);
}

/* Those of a claim that took too long do not come all together when it is over. */
static void a_reserved_start_has_its_own_end(void **state)
{
    struct flight_job *j = job(1);
    int64_t now_us = when_steady_us(), at = INT64_C(1800000000000);
    struct message_job m = {0};

    (void)state;
    dbclock_sample(&ctx.clock, now_us, now_us, at * 1000);
    j->flight[0].expires_at = TASK_TIME_NONE;
    set_start(&ctx, j, &m);
    assert_int_equal(m.late_us, 0);
    for (int k = -1; k <= 1; k++) {
        j->flight[0].start_at = at + k * 2000;
        set_start(&ctx, j, &m);
        assert_int_equal(m.start_us, k > 0 ? now_us + 2000000 : 0);
        assert_int_equal(m.late_us, now_us + k * 2000000 + LATE_US);
    }
    ctx.clock = (struct dbclock){0};
}

/* One slow claim does not make a later one vouch for longer, and only those under a limit take
 * several round trips. */
static void a_slow_claim_under_a_limit_vouches_for_longer(void **state)
{
    struct handover h = {&ctx, &flight};
    struct flight_job *j = job(1);
    const int64_t poll_us = 1000000, slow_us = 3000000;

    (void)state;
    looks.pace = (struct look_pace){.limited_us = {slow_us, poll_us}};
    j->leased_us = 5;
    j->flight[0].start_at = 1;
    assert_int_equal(vouched_until(&h, j), 5 + 2 * poll_us);
    looks.pace.limited_us[1] = slow_us;
    assert_int_equal(vouched_until(&h, j), 5 + 2 * slow_us);
    j->flight[0].start_at = 0;
    assert_int_equal(vouched_until(&h, j), 5 + poll_us);
    tag.guarded = true;
    assert_int_equal(vouched_until(&h, j), 5 + 2 * slow_us);
    looks.pace = (struct look_pace){0};
}

static void nothing_starts_when_the_hours_are_over_or_a_task_expires(void **state)
{
    struct flight_job *j = job(2);
    int64_t now_us = when_steady_us(), at = INT64_C(1800000000000);
    struct message_job m = {0};

    (void)state;
    dbclock_sample(&ctx.clock, now_us, now_us, at * 1000);
    j->flight[0].expires_at = j->flight[1].expires_at = TASK_TIME_NONE;
    set_start(&ctx, j, &m);
    assert_int_equal(m.expires_us, 0);
    j->flight[0].close_at = j->flight[1].close_at = at + 3000;
    set_start(&ctx, j, &m);
    assert_int_equal(m.expires_us, now_us + 3000000);
    j->flight[1].expires_at = at + 2000;
    set_start(&ctx, j, &m);
    assert_int_equal(m.expires_us, now_us + 2000000);
    ctx.clock = (struct dbclock){0};
}

static void a_job_that_ended_counts_with_the_time_it_took(void **state)
{
    struct flight_job *j = job(1);
    struct message m = {.type = MESSAGE_ENDED, .number = j->number};

    (void)state;
    j->start_us = when_steady_us() - 250000;
    m.ended.at_us = j->start_us + 1000; /* reports are taken in heaps, later */
    report_job(&ctx, &flight, &m);
    assert_int_equal(tag.look.mean_us, 1000);
    m.number = (j = job(1))->number;
    j->start_us = when_steady_us();
    m.ended.at_us = INT64_MAX; /* what the runner says is not trusted */
    report_job(&ctx, &flight, &m);
    assert_in_range(tag.look.mean_us, 7 * 1000 / 8, 60000000); /* at most a slow minute */
}

static void returned(int code)
{
    struct message m = {.type = MESSAGE_RETURNED, .number = job(1)->number};

    m.returned.cannot_start = code;
    m.returned.error = "why";
    report_job(&ctx, &flight, &m);
}

/* It may last, and would be recorded with each task at each try. */
static void a_shortage_of_the_host_is_not_recorded_with_tasks(void **state)
{
    (void)state;
    returned(ERR_TRANSIENT);
    assert_int_equal(results.count, 1);
    assert_null(results.items[0].s.error);
    returned(ERR_CONFIG);
    assert_string_equal(results.items[1].s.error, "why");
}

/* The lease of another task, or of another attempt, is not kept for a result that waits. */
static void a_result_that_waits_is_known_by_task_and_version(void **state)
{
    static const struct claim_ref refs[] = {{1, 2}, {2, 2}, {1, 3}, {2, 3}};

    (void)state;
    returned(ERR_TRANSIENT);
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++)
        assert_int_equal(settle_has(&results, &refs[i]), i == 0);
}

/* Its tag has another handler, or none, since it was started. */
static void a_hold_is_of_the_limit_of_the_job(void **state)
{
    static char limit[] = "stripe";
    struct flight_job *asks = job(1), *waits[2] = {job(1), job(1)};
    struct message m = {.type = MESSAGE_RESULT, .number = asks->number};

    (void)state;
    tag.handler = -1;
    table->handlers->items[0].limit = limit;
    asks->state = JOB_STARTED;
    for (enum job_kind kind = JOB_SHORT; kind <= JOB_LONG; kind++) {
        waits[kind]->kind = kind;
        flight_hold(&flight, waits[kind], 0);
    }
    m.result = (struct message_result){.id = 1,
                                       .outcome = OUTCOME_VERDICT,
                                       .hold_ms = 1000,
                                       .exit_code = -1,
                                       .finish_us = when_steady_us()};
    report_job(&ctx, &flight, &m);
    assert_int_equal(holds.count, 1);
    assert_string_equal(holds.items[0].limit, "stripe");
    assert_int_equal(flight_count(&flight), 1);
    assert_int_equal(flight_held(&flight, JOB_SHORT) + flight_held(&flight, JOB_LONG), 0);
    table->handlers->items[0].limit = NULL;
    hold_free(&holds);
}

static void assert_told(const char *what)
{
    struct handler_rest rest;

    assert_int_equal(rest_of(&tag, when_steady_us(), &rest), !!what);
    if (what)
        assert_string_equal(rest.error, what);
    free(rest.error);
}

static void a_shortage_is_not_told_as_the_rest_before_it(void **state)
{
    (void)state;
    tags_rest(&tag, ERR_CONFIG, "no such file");
    assert_told("no such file");
    tags_rest(&tag, ERR_TRANSIENT, "no processes");
    assert_told("no such file");
    tag.look.rest_until_us = when_steady_us(); /* it is over */
    tags_rest(&tag, ERR_TRANSIENT, "no processes");
    assert_true(tag.look.rest_until_us > when_steady_us());
    assert_told(NULL);
}

static void a_refused_claim_is_not_told_as_the_rows_put_aside(void **state)
{
    struct rows_faults faults = {0};
    struct err row = {0}, whole = {0};

    (void)state;
    err_set(&row, ERR_FATAL, "row");
    err_set(&whole, ERR_FATAL, "whole");
    rows_faults_add(&faults, 7, 0, &row);
    care_put_aside(NULL, &tag, &faults, when_steady_us());
    assert_told("task 7: row");
    care_refused(&tag, &whole);
    assert_told("whole");
    care_refused(&tag, NULL);
    assert_told("task 7: row");
    rows_faults_done(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_held_batch_that_lost_a_task_is_given_back, begin, end),
        cmocka_unit_test_setup_teardown(a_task_whose_body_cannot_be_read_fails_now, begin, end),
        cmocka_unit_test_setup_teardown(a_body_above_the_bound_has_a_job_of_its_own, begin, end),
        cmocka_unit_test_setup_teardown(a_reserved_start_has_its_own_end, begin, end),
        cmocka_unit_test_setup_teardown(a_slow_claim_under_a_limit_vouches_for_longer, begin, end),
        cmocka_unit_test_setup_teardown(nothing_starts_when_the_hours_are_over_or_a_task_expires,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_job_that_ended_counts_with_the_time_it_took, begin, end),
        cmocka_unit_test_setup_teardown(a_shortage_of_the_host_is_not_recorded_with_tasks, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_result_that_waits_is_known_by_task_and_version, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_hold_is_of_the_limit_of_the_job, begin, end),
        cmocka_unit_test_setup_teardown(a_shortage_is_not_told_as_the_rest_before_it, begin, end),
        cmocka_unit_test_setup_teardown(a_refused_claim_is_not_told_as_the_rows_put_aside, begin,
                                        end),
    };

    return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
