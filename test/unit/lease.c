/*
 * lease.c - for how long a check vouches for tasks that wait in the runner, whose lease is renewed,
 * and which tasks are lost.
 */
#include "runner/link.c" /* to make a link without a runner */

#include "poller/lease.c"
#include "poller/settle.c"
#include "poller/upkeep.c"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define LEASE_MS 3000
#define LEASE_US (LEASE_MS * INT64_C(1000))

static struct conf conf = {
    .dqd = {.lease_ms = LEASE_MS, .poll_interval_ms = 1000, .poll_least_ms = 1000}};
static struct context ctx = {.conf = &conf};
static struct minute minute;
static struct settle_results results;
static struct holds holds;
static struct look look;
static struct flight flight;
static struct follow follow;
static struct leases leases;
static struct tag_state tag;

/* These stand before the library's. */
bool settle_store_needs_attempt(const struct settlement *s, bool history_all)
{
    return history_all || s->event == TASK_GIVE_UP;
}

int settle_store_settle(struct db *db, const struct claim_owner *owner, const struct settlement *s,
                        size_t count, bool history_all, bool careful, bool *applied,
                        struct rows_faults *faults, struct err *err)
{
    (void)db, (void)owner, (void)s, (void)history_all, (void)careful, (void)faults, (void)err;
    for (size_t i = 0; i < count; i++)
        applied[i] = true;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    static char name[] = "t";

    tag = (struct tag_state){.name = name, .handler = -1};
    minute_init(&minute, &ctx);
    settle_init(&results, &ctx, &minute, NULL, &holds);
    flight_init(&flight, &ctx, &look, &results, &minute);
    follow_init(&follow, &ctx, &flight);
    lease_init(&leases, &ctx, &flight, &results, &follow);
    return 0;
}

static int end(void **state)
{
    (void)state;
    follow_free(&follow);
    flight_free(&flight);
    settle_free(&results);
    minute_free(&minute);
    return 0;
}

/* The order that the link has for the runner. */
static struct message sent(struct link *l, int runner)
{
    static struct proto_in in;
    struct message m;
    struct err err;

    assert_int_equal(link_flush(l, &err), 0);
    proto_in_init(&in);
    assert_true(proto_recv(&in, runner) > 0);
    assert_int_equal(message_get_order(&in, &m), 1);
    return m;
}

/* If the poller is frozen, what waits in the runner is not started for ever. */
static void a_check_vouches_for_a_poll(void **state)
{
    int fds[2];
    struct err err;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    struct link l = {.fd = fds[0]};
    ctx.link = &l;
    int64_t before_us = when_steady_us();
    assert_int_equal(lease_check(&leases, &err), 0);
    int64_t after_us = when_steady_us();
    struct message m = sent(&l, fds[1]);
    assert_int_equal(m.type, MESSAGE_VOUCH);
    assert_in_range(m.vouch.until_us, before_us + 1000000,
                    after_us + 1000000 + after_us - before_us);
    proto_out_done(&l.out);
    ctx.link = NULL;
    close(fds[0]);
    close(fds[1]);
}

/* A check whose answer waited while we were frozen says nothing of now. */
static void a_check_that_took_long_vouches_if_the_one_before_did(void **state)
{
    const int64_t at_us = INT64_C(50000000), slow_us = 7000000;

    (void)state;
    assert_int_equal(lease_vouches_until(&leases, at_us, 5000), at_us + 1000000);
    assert_int_equal(lease_vouches_until(&leases, at_us, slow_us), at_us + 1000000);
    assert_int_equal(lease_vouches_until(&leases, at_us, slow_us + 1), at_us + 2 * slow_us);
    assert_int_equal(lease_vouches_until(&leases, at_us, 5000), at_us + 1000000);
}

/* Nobody else may run the task again, also when no other job is left to renew leases for. */
static void the_lease_of_a_result_that_waits_is_renewed(void **state)
{
    const struct settlement s = {.id = 1, .version = 2};
    int64_t now_us = when_steady_us(), leased_us = now_us - LEASE_US / 2;

    (void)state;
    assert_int_equal(lease_renew_next(&leases), NEVER_US);
    settle_queue(&results, &s, &tag, leased_us);
    assert_int_equal(lease_renew_next(&leases), leased_us + LEASE_US / 3);
    results.items[0].leased_us = results.items[0].queued_us + 11 * LEASE_US; /* long enough */
    assert_int_equal(lease_renew_next(&leases), NEVER_US);
}

static void nothing_but_results_that_wait_is_renewed_without_jobs(void **state)
{
    struct settle_turn turn = {
        .now_us = when_steady_us(), .old_us = INT64_MAX, .round_us = INT64_MAX};
    size_t n;

    (void)state;
    free(refs_of(&leases, 0, &turn, &n));
    assert_int_equal(n, 0);
    settle_queue(&results, &(struct settlement){.id = 2, .version = 5}, &tag, turn.now_us);
    struct claim_ref *refs = refs_of(&leases, 0, &turn, &n);
    assert_int_equal(n, 1);
    assert_int_equal(refs[0].id, 2);
    free(refs);
}

/* Its row was locked, or renewals were late, for longer than its lease: what has been done, or is
 * being done, is not done again. */
static void what_is_in_flight_or_waits_to_be_recorded_is_not_taken_back(void **state)
{
    struct tag_set tags = {.table = handlers_table_new(mem_zero(1, sizeof(struct handlers)))};
    struct upkeep upkeep;
    enum lease_end how;

    (void)state;
    ctx.clock.known = true;
    upkeep_init(&upkeep, &ctx, &look, &tags, &flight, &minute);
    settle_queue(&results, &(struct settlement){.id = 2, .version = 2}, &tag, when_steady_us());
    struct flight_job *j = flight_job_new(&flight, &tag, tags.table, 0, 3);
    j->flight[0] = (struct flight_task){.id = 3, .version = 2};
    j->flight[1] = (struct flight_task){.id = 4, .version = 2, .lost = true};
    j->flight[2] = (struct flight_task){.id = 5, .version = 2, .ended = true};
    for (uint64_t id = 1; id <= 5; id++)
        for (uint64_t version = 1; version <= 3; version++) {
            const struct task t = {
                .id = id, .version = version, .tag = tag.name, .lease_until_at = -WHEN_DAY};
            assert_int_equal(judge(&upkeep, &t, when_steady_us(), &how),
                             version != 2 || (id != 2 && id != 3));
        }
    upkeep_free(&upkeep);
    flight_job_free(&flight, j);
    tags_free(&tags);
}

static void ended_leases_are_looked_for_with_tasks(void **state)
{
    struct look tasks = {.clock = &ctx.clock};
    struct upkeep upkeep;
    const int64_t now_us = when_steady_us(), second_us = 1000000;

    (void)state;
    ctx.clock.known = true;
    upkeep_init(&upkeep, &ctx, &tasks, NULL, &flight, &minute);
    for (int i = 0; i < 100; i++) {
        plan_reap(&upkeep, now_us, 0);
        assert_in_range(upkeep_reap_next(&upkeep) - now_us, 2 * second_us, 3 * second_us);
        look_saw_all(&tasks, now_us, now_us + second_us - 1);
        assert_true(upkeep_reap_next(&upkeep) >= now_us + 2 * second_us);
        look_saw_all(&tasks, now_us, now_us + 2 * second_us);
        assert_int_equal(upkeep_reap_next(&upkeep), now_us + 2 * second_us);
    }
    upkeep_outage_over(&upkeep, now_us - LEASE_US); /* other dqds have time to come back */
    look_saw_all(&tasks, now_us, now_us + 2 * second_us);
    assert_true(upkeep_reap_next(&upkeep) > now_us + 2 * second_us);
    look_free(&tasks);
}

static void results_are_recorded_at_once_if_nothing_else_is_under_way(void **state)
{
    const struct settlement s = {.id = 1, .version = 2};
    const struct settle_load idle = {.next_us = NEVER_US}, busy = {2, 1, NEVER_US};

    (void)state;
    assert_int_equal(settle_next(&results, &idle), NEVER_US);
    settle_queue(&results, &s, &tag, 0);
    int64_t queued_us = results.items[0].queued_us;
    assert_int_equal(settle_next(&results, &idle), queued_us);
    assert_true(settle_next(&results, &busy) > queued_us);
    results.items[0].again_us = queued_us + 5; /* it was kept back */
    assert_int_equal(settle_next(&results, &idle), queued_us + 5);
}

static void a_task_is_lost_if_the_check_says_so_of_its_attempt(void **state)
{
    const struct claim_ref refs[] = {{1, 7}, {2, 7}, {3, 7}};
    const bool lost[] = {false, true, false};

    (void)state;
    for (uint64_t id = 0; id <= 4; id++)
        for (uint64_t version = 6; version <= 8; version++)
            assert_int_equal(
                is_marked(refs, lost, 3, &(struct flight_task){.id = id, .version = version}),
                id == 2 && version == 7);
}

/* While the table of attempts is locked, what needs it is tried together, and nothing else waits.
 */
static void results_that_need_a_locked_table_wait_together(void **state)
{
    const struct settlement failed = {.id = 1, .version = 2, .event = TASK_GIVE_UP},
                            done = {.id = 2, .version = 2, .event = TASK_SUCCEED};
    const struct settle_load idle = {.next_us = NEVER_US};
    int64_t now_us = when_steady_us();
    (void)state;

    settle_queue(&results, &failed, &tag, 0);
    hold(&results, now_us);
    settle_queue(&results, &failed, &tag, 0);
    assert_in_range(settle_next(&results, &idle), now_us + 375000, now_us + HELD_MIN_US);
    assert_true(results.items[0].again_us == results.items[1].again_us);
    settle_queue(&results, &done, &tag, 0);
    assert_true(settle_next(&results, &idle) < now_us + 375000);
}

/* The rows of tasks that are in flight went back in time, and were claimed again. */
static void what_is_in_flight_is_not_begun_again(void **state)
{
    struct handlers_table table = {.users = 9};
    struct flight_job *j = flight_job_new(&flight, &tag, &table, 0, 2);
    struct task_array won = {0}, back = {0};
    const uint64_t ids[] = {6, 5, 4 * 4096 + 5, 7};

    (void)state;
    j->flight[0] = (struct flight_task){.id = 5, .version = 3};
    j->flight[1] = (struct flight_task){.id = 7, .version = 3, .ended = true};
    for (size_t i = 0; i < 4; i++)
        task_array_add(&won)->id = ids[i];
    assert_true(lease_overtaken(&leases, &won, NULL)); /* before the claim */
    assert_int_equal(won.count, 4);
    assert_int_equal(j->flight[0].version, 0);
    j->flight[0] = (struct flight_task){.id = 5, .version = 3};
    won.items[1].version = 3; /* it was taken back: the output of version 3 is still its own */
    assert_true(lease_overtaken(&leases, &won, NULL));
    assert_int_equal(j->flight[0].version, 3);
    assert_true(lease_overtaken(&leases, &won, &back));
    assert_false(lease_overtaken(&leases, &won, NULL));
    assert_true(j->flight[0].lost && !j->flight[1].lost);
    assert_int_equal(back.count, 1);
    assert_int_equal(back.items[0].id, 5);
    assert_int_equal(won.count, 3);
    assert_int_equal(won.items[0].id, 6);
    assert_int_equal(won.items[1].id, 4 * 4096 + 5);
    assert_int_equal(won.items[2].id, 7);
    task_array_done(&won);
    task_array_done(&back);
    flight_job_free(&flight, j);
}

/* A result of the attempt before stays: it may have been recorded, and its answer lost. */
static void a_result_that_waits_does_not_count_for_a_later_claim(void **state)
{
    struct task_array won = {0};
    struct task *t = task_array_add(&won);

    (void)state;
    t->id = 2;
    t->version = 6; /* 7 when it has been claimed */
    for (uint64_t id = 1; id <= 3; id++)
        for (uint64_t version = 6; version <= 8; version++)
            settle_queue(&results, &(struct settlement){.id = id, .version = version}, &tag, 0);
    settle_overtaken(&results, &won);
    assert_int_equal(settle_count(&results), 7);
    for (size_t i = 0; i < results.count; i++)
        assert_true(results.items[i].s.id != 2 || results.items[i].s.version == 6);
    t->status = TASK_RUNNING;
    settle_overtaken(&results, &won);
    assert_int_equal(settle_count(&results), 6);
    task_array_done(&won);
}

/* Those that take long to record are of one tag at a time, and have every other turn. */
static void a_statement_has_few_results_that_take_long(void **state)
{
    static struct tag_state dear = {.handler = -1, .look.results.row_us = 100000},
                            other = {.handler = -1, .look.claims.row_us = 300000};
    struct tag_state *const tags[] = {&dear, &tag, &other, &dear, &dear, &tag};
    static const size_t wanted[][3] = {{0, 3}, {1, 5}, {0, 3}, {1, 5}};
    size_t at[SETTLE_MOST];
    bool kept;
    (void)state;

    for (size_t i = 0; i < 6; i++)
        settle_queue(&results, &(struct settlement){.id = i, .version = 2}, tags[i], 0);
    for (size_t turn = 0; turn < 4; turn++) {
        assert_int_equal(choose(&results, at, &kept), 2);
        assert_memory_equal(at, wanted[turn], 2 * sizeof *at);
        assert_false(kept);
    }
    results.count = 3; /* of which the first two wait for locks */
    results.items[0].again_us = results.items[1].again_us = 1;
    results.turns = 1;
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(choose(&results, at, &kept), 1);
        assert_int_equal(at[0], 2);
    }
    results.items[2].again_us = INT64_MAX;
    for (size_t turn = 0; turn < 4; turn++) {
        assert_int_equal(choose(&results, at, &kept), 1);
        assert_true(kept && at[0] == turn % 2);
    }
    results.items[2].again_us = 0;
    results.turns = KEPT_FIRST; /* there may always be others */
    assert_int_equal(choose(&results, at, &kept), 1);
    assert_true(kept && at[0] < 2);
    results.count = 6;
}

static void what_one_result_takes_is_learned(void **state)
{
    struct tag_set tags = {.table = handlers_table_new(mem_zero(1, sizeof(struct handlers))),
                           .look = &look};
    struct err err;
    bool back;

    (void)state;
    tag.set = &tags;
    tag.look.results.row_us = INT64_C(1) << 40;
    settle_queue(&results, &(struct settlement){.id = 1, .version = 2}, &tag, 0);
    assert_int_equal(settle_flush(&results, &back, &err), 0);
    assert_int_equal(settle_count(&results), 0);
    assert_int_equal(look_tag_row_us(&tag.look), INT64_C(1) << 39);
    tags_free(&tags);
}

/* However long it takes. */
static void a_row_that_takes_long_weighs_much(void **state)
{
    (void)state;
    assert_int_equal(rows_weight(100, 0), 100);
    assert_int_equal(rows_weight(100, 1000), 64000);
    for (int64_t us = 1 << 17; us > 0 && us <= INT64_MAX / 2; us *= 2) {
        size_t bytes = 0;

        assert_true(rows_take(&bytes, rows_weight(0, us)));
        assert_int_equal(rows_take(&bytes, rows_weight(0, us)), us == 1 << 17);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_but_results_that_wait_is_renewed_without_jobs,
                                        begin, end),
        cmocka_unit_test_setup_teardown(results_that_need_a_locked_table_wait_together, begin, end),
        cmocka_unit_test_setup_teardown(a_check_vouches_for_a_poll, begin, end),
        cmocka_unit_test_setup_teardown(a_check_that_took_long_vouches_if_the_one_before_did, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_lease_of_a_result_that_waits_is_renewed, begin, end),
        cmocka_unit_test_setup_teardown(what_is_in_flight_or_waits_to_be_recorded_is_not_taken_back,
                                        begin, end),
        cmocka_unit_test_setup_teardown(ended_leases_are_looked_for_with_tasks, begin, end),
        cmocka_unit_test_setup_teardown(results_are_recorded_at_once_if_nothing_else_is_under_way,
                                        begin, end),
        cmocka_unit_test_setup_teardown(what_is_in_flight_is_not_begun_again, begin, end),
        cmocka_unit_test_setup_teardown(a_result_that_waits_does_not_count_for_a_later_claim, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_statement_has_few_results_that_take_long, begin, end),
        cmocka_unit_test_setup_teardown(what_one_result_takes_is_learned, begin, end),
        cmocka_unit_test(a_row_that_takes_long_weighs_much),
        cmocka_unit_test(a_task_is_lost_if_the_check_says_so_of_its_attempt),
    };

    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
