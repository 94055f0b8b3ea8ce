/*
 * runner_queue.c - which job starts when: slots, max_running, turns of tags, the kept quarter, what
 * is given back; and reloading.
 */
#include "conf/handlers_load.h"
#include "runner_rig.h"

#include "base/when.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t send_id(struct rig *r, const char *tag, uint64_t id)
{
    struct message_job j;

    rig_fill(r, &j, tag);
    j.ids = &id;
    return rig_put(r, &j);
}

static void tags_take_turns(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n"
             "  first: {run: 'while ! test -e @DIR@/go; do sleep 0.01; done'}\n"
             "  '*': {run: 'echo $DQ_TAG$DQ_ID >>@DIR@/order'}\n",
             1);
    uint32_t first = send_id(&r, "first", 1), last = 0;
    for (uint64_t i = 1; i <= 4; i++)
        last = send_id(&r, "a", i);
    for (uint64_t i = 1; i <= 2; i++)
        send_id(&r, "b", i);
    uint32_t c = send_id(&r, "c", 1);
    rig_wait(&r, MESSAGE_STARTED, first);
    rig_ping(&r); /* the others are there now */
    fclose(fopen(rig_path(&r, "go"), "w"));
    rig_end(&r, last);
    rig_end(&r, c);
    char *order = rig_read_file(&r, "order");
    assert_string_equal(order, "a1\nb1\nc1\na2\nb2\na3\na4\n");
    free(order);
    rig_close(&r);
}

/* Three starts with each turn, one with every other. */
static void turns_follow_weights(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n"
             "  first: {run: 'while ! test -e @DIR@/go; do sleep 0.01; done'}\n"
             "  a: {run: 'echo $DQ_TAG$DQ_ID >>@DIR@/order', weight: 30}\n"
             "  b: {run: 'echo $DQ_TAG$DQ_ID >>@DIR@/order'}\n"
             "  c: {run: 'echo $DQ_TAG$DQ_ID >>@DIR@/order', weight: 5}\n",
             1);
    uint32_t first = send_id(&r, "first", 1), last = 0;
    for (uint64_t i = 1; i <= 6; i++)
        send_id(&r, "a", i);
    for (uint64_t i = 1; i <= 2; i++)
        send_id(&r, "b", i);
    for (uint64_t i = 1; i <= 2; i++)
        last = send_id(&r, "c", i);
    rig_wait(&r, MESSAGE_STARTED, first);
    rig_ping(&r);
    fclose(fopen(rig_path(&r, "go"), "w"));
    rig_end(&r, last);
    char *order = rig_read_file(&r, "order");
    assert_string_equal(order, "a1\na2\na3\nb1\na4\na5\na6\nb2\nc1\nc2\n");
    free(order);
    rig_close(&r);
}

static size_t running(const struct rig *r)
{
    return rig_count(r, MESSAGE_STARTED) - rig_count(r, MESSAGE_ENDED);
}

static void last_quarter_is_kept_for_tags_with_nothing_running(void **state)
{
    (void)state;
    struct rig r;
    uint32_t hot[20], cold[3];

    rig_open(&r, "defaults: {max_running: 100}\nhandlers:\n  '*': {run: sleep 1000}\n", 8);
    for (size_t i = 0; i < 20; i++)
        hot[i] = rig_send(&r, "hot");
    rig_wait(&r, MESSAGE_STARTED, hot[5]);
    rig_ping(&r);
    assert_int_equal(running(&r), 6);
    cold[0] = rig_send(&r, "cold");
    cold[1] = rig_send(&r, "cold");
    rig_wait(&r, MESSAGE_STARTED, cold[0]);
    rig_ping(&r);
    assert_null(rig_find(&r, MESSAGE_STARTED, cold[1]));
    cold[2] = rig_send(&r, "other");
    rig_wait(&r, MESSAGE_STARTED, cold[2]);
    rig_ping(&r);
    assert_int_equal(running(&r), 8);
    link_send_kill(r.link, hot[0], MESSAGE_KILL_CANCELLED); /* a kept slot stays kept */
    rig_end(&r, hot[0]);
    rig_ping(&r);
    assert_int_equal(running(&r), 7);
    rig_close(&r);
}

/* By weights: the slots beside it are divided, however many of the kept ones are in use. */
static void a_kept_slot_that_is_in_use_is_one_of_the_quarter(void **state)
{
    (void)state;
    struct rig r;
    uint32_t hot[20], cold[3];

    rig_open(&r,
             "defaults: {max_running: 100}\nhandlers:\n"
             "  hot: {run: sleep 1000, weight: 30}\n  '*': {run: sleep 1000}\n",
             8);
    for (size_t i = 0; i < 20; i++)
        hot[i] = rig_send(&r, "hot");
    rig_wait(&r, MESSAGE_STARTED, hot[5]);
    rig_ping(&r);
    assert_int_equal(running(&r), 6);
    cold[0] = rig_send(&r, "cold");
    rig_wait(&r, MESSAGE_STARTED, cold[0]);
    cold[1] = rig_send(&r, "cold");
    link_send_kill(r.link, hot[0], MESSAGE_KILL_CANCELLED);
    rig_wait(&r, MESSAGE_STARTED, hot[6]); /* it had its turn before */
    rig_ping(&r);
    assert_int_equal(running(&r), 7);
    cold[2] = rig_send(&r, "other");
    rig_wait(&r, MESSAGE_STARTED, cold[2]);
    link_send_kill(r.link, cold[0], MESSAGE_KILL_CANCELLED); /* what was kept stays kept */
    rig_wait(&r, MESSAGE_STARTED, cold[1]);
    rig_ping(&r);
    assert_int_equal(running(&r), 8);
    link_send_kill(r.link, cold[2], MESSAGE_KILL_CANCELLED);
    rig_end(&r, cold[2]);
    rig_ping(&r);
    assert_int_equal(running(&r), 7);
    rig_close(&r);
}

static void max_running_holds_per_tag(void **state)
{
    (void)state;
    struct rig r;
    uint32_t a[5], b[5];

    rig_open(&r, "handlers:\n  'x*': {run: sleep 1000, max_running: 2}\n", 16);
    for (size_t i = 0; i < 5; i++) {
        a[i] = rig_send(&r, "xa");
        b[i] = rig_send(&r, "xb");
    }
    rig_wait(&r, MESSAGE_STARTED, a[1]);
    rig_wait(&r, MESSAGE_STARTED, b[1]);
    rig_ping(&r);
    assert_int_equal(running(&r), 4);
    link_send_kill(r.link, a[0], MESSAGE_KILL_LOST);
    assert_int_equal(rig_end(&r, a[0])->m.result.outcome, OUTCOME_KILLED);
    rig_wait(&r, MESSAGE_STARTED, a[2]);
    rig_ping(&r);
    assert_int_equal(running(&r), 4);
    rig_close(&r);
}

static void what_runs_elsewhere_counts(void **state)
{
    (void)state;
    struct rig r;
    uint32_t a[3], b[3];

    rig_open(&r, "defaults: {max_running: 2}\nhandlers:\n  '*': {run: sleep 1000}\n", 4);
    link_send_elsewhere(r.link, "a", 1, 3);
    for (size_t i = 0; i < 3; i++) {
        a[i] = rig_send(&r, "a");
        b[i] = rig_send(&r, "b");
    }
    rig_wait(&r, MESSAGE_STARTED, b[0]); /* the last slot is kept for a tag that runs nothing */
    rig_ping(&r);
    assert_int_equal(running(&r), 1);
    link_send_elsewhere(r.link, "a", 1, 1);
    rig_wait(&r, MESSAGE_STARTED, a[0]);
    rig_ping(&r);
    assert_int_equal(running(&r), 2);
    link_send_elsewhere(r.link, "c", 0, 0); /* the tag's own places still count */
    rig_wait(&r, MESSAGE_STARTED, b[1]);
    rig_ping(&r);
    assert_int_equal(running(&r), 3);
    link_send_kill(r.link, b[0], MESSAGE_KILL_CANCELLED);
    link_send_elsewhere(r.link, "a", 0, 0);
    rig_wait(&r, MESSAGE_STARTED, a[1]);
    rig_close(&r);
}

static void unstarted_jobs_are_given_back(void **state)
{
    (void)state;
    struct rig r;
    uint32_t jobs[5];

    rig_open(&r, "handlers:\n  t: {run: sleep 1000, max_running: 1}\n", 4);
    for (size_t i = 0; i < 5; i++)
        jobs[i] = rig_send_body(&r, "t", "x", 1);
    rig_wait(&r, MESSAGE_STARTED, jobs[0]);
    link_send_kill(r.link, jobs[2], MESSAGE_KILL_CANCELLED);
    rig_wait(&r, MESSAGE_RETURNED, jobs[2]);
    rig_ping(&r);
    assert_int_equal(rig_count(&r, MESSAGE_RETURNED), 1);
    link_send_return(r.link);
    for (size_t i = 1; i < 5; i++) {
        const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, jobs[i]);
        assert_false(back->m.returned.cannot_start);
        assert_null(back->error);
    }
    rig_ping(&r);
    assert_int_equal(rig_count(&r, MESSAGE_RETURNED), 4);
    assert_int_equal(running(&r), 1);
    link_send_kill(r.link, jobs[0], MESSAGE_KILL_SHUTDOWN);
    assert_string_equal(rig_end(&r, jobs[0])->error, "dqd was shut down");
    rig_close(&r);
}

/* A rate has reserved starts, which pass while there is no slot: not all come at once then. */
static void of_late_starts_one_is_made_up_for(void **state)
{
    (void)state;
    struct rig r;
    struct message_job j;
    uint32_t late[3];

    rig_open(&r,
             "handlers:\n"
             "  first: {run: 'while ! test -e @DIR@/go; do sleep 0.01; done'}\n"
             "  't*': {limit: l, run: ':'}\n",
             1);
    uint32_t first = rig_send(&r, "first");
    rig_wait(&r, MESSAGE_STARTED, first);
    for (size_t i = 0; i < 3; i++) { /* the last one is of another tag under the limit */
        rig_fill(&r, &j, i < 2 ? "t" : "t2");
        j.late_us = when_steady_us() + 1;
        late[i] = rig_put(&r, &j);
    }
    rig_ping(&r);
    fclose(fopen(rig_path(&r, "go"), "w"));
    rig_end(&r, first);
    rig_wait(&r, MESSAGE_STARTED, late[0]);
    for (size_t i = 1; i < 3; i++)
        assert_null(rig_wait(&r, MESSAGE_RETURNED, late[i])->error);
    assert_null(rig_find(&r, MESSAGE_STARTED, late[1]));
    rig_fill(&r, &j, "t"); /* the next one is in time */
    j.late_us = INT64_MAX;
    rig_end(&r, rig_put(&r, &j));
    rig_close(&r);
}

static void thousands_of_waiting_jobs_arrive_in_order(void **state)
{
    (void)state;
    const uint32_t many = 2000;
    struct rig r;
    uint32_t next = 1;

    rig_open(&r, "handlers:\n  t: {run: [/nonexistent]}\n", 2);
    for (uint32_t i = 0; i < many; i++)
        send_id(&r, "t", i + 1);
    while (rig_count(&r, MESSAGE_RETURNED) < many)
        rig_ping(&r);
    for (size_t i = 0; i < r.count; i++)
        if (r.reports[i].m.type == MESSAGE_RETURNED)
            assert_int_equal(r.reports[i].m.number, next++);
    rig_close(&r);
}

static uint32_t send_early(struct rig *r, const char *tag, int64_t start_us)
{
    struct message_job j;

    rig_fill(r, &j, tag);
    j.start_us = start_us;
    uint32_t number = rig_put(r, &j);
    rig_flush(r);
    return number;
}

static void early_jobs_start_in_their_time(void **state)
{
    (void)state;
    struct rig r;
    const int64_t now_us = when_steady_us();
    static const int64_t after_us[] = {60000, 20000, 90000, 40000, 20500, 0};
    uint32_t jobs[6];

    rig_open(&r, "handlers:\n  t: {run: [/bin/true]}\n", 4);
    for (size_t i = 0; i < 6; i++)
        jobs[i] = send_early(&r, "t", now_us + after_us[i]);
    for (size_t i = 0; i < 6; i++)
        assert_true(rig_wait(&r, MESSAGE_STARTED, jobs[i])->m.started.at_us >=
                    now_us + after_us[i]);
    for (size_t i = 0; i < 6; i++)
        rig_end(&r, jobs[i]);
    rig_close(&r);
}

static void early_jobs_are_given_back_and_take_nobodys_turn(void **state)
{
    (void)state;
    struct rig r;
    const int64_t never_us = when_steady_us() + INT64_C(3600000000);
    uint32_t jobs[4];

    rig_open(&r, "handlers:\n  t: {run: echo ran, max_running: 1}\n", 1);
    for (size_t i = 0; i < 4; i++)
        jobs[i] = send_early(&r, "t", never_us + 1000 * (int64_t)(i % 3));
    rig_end(&r, rig_send(&r, "t"));
    link_send_kill(r.link, jobs[1], MESSAGE_KILL_CANCELLED);
    rig_wait(&r, MESSAGE_RETURNED, jobs[1]);
    link_send_return(r.link);
    rig_wait(&r, MESSAGE_RETURNED, jobs[0]);
    rig_wait(&r, MESSAGE_RETURNED, jobs[2]);
    rig_wait(&r, MESSAGE_RETURNED, jobs[3]);
    rig_end(&r, rig_send(&r, "t"));
    assert_int_equal(rig_count(&r, MESSAGE_STARTED), 2);
    rig_close(&r);
}

/* ---- reload */

static const struct rig_report *reload(struct rig *r)
{
    size_t before = rig_count(r, MESSAGE_RELOADED);
    const struct rig_report *last = NULL;

    link_send_reload(r->link, r->handlers->digest);
    while (rig_count(r, MESSAGE_RELOADED) == before)
        rig_ping(r);
    for (size_t i = 0; i < r->count; i++)
        if (r->reports[i].m.type == MESSAGE_RELOADED)
            last = &r->reports[i];
    return last;
}

static void take_table(struct rig *r)
{
    struct err err;

    handlers_free(r->handlers);
    assert_int_equal(handlers_load(rig_path(r, "handlers.yaml"), &r->handlers, &err), 0);
}

static void reloaded_handlers_serve_new_jobs(void **state)
{
    (void)state;
    struct rig r;
    struct message_job old;

    rig_open(&r,
             "handlers:\n  t: {run: 'while ! test -e @DIR@/go; do sleep 0.01; done; echo old'}\n",
             4);
    uint64_t digest = r.handlers->digest;
    uint32_t runs = rig_send(&r, "t");
    rig_wait(&r, MESSAGE_STARTED, runs);
    assert_int_equal(reload(&r)->m.reloaded.digest, digest); /* unchanged */
    rig_fill(&r, &old, "t");

    rig_write_handlers(&r, "handlers:\n  t: {run: echo new}\n");
    take_table(&r);
    const struct rig_report *told = reload(&r);
    assert_null(told->error);
    assert_int_equal(told->m.reloaded.digest, r.handlers->digest);
    assert_true(told->m.reloaded.digest != digest);
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "new\n");

    uint32_t late = rig_put(&r, &old); /* sent before the poller knew */
    fclose(fopen(rig_path(&r, "go"), "w"));
    assert_string_equal(rig_end(&r, late)->output, "old\n");
    assert_string_equal(rig_end(&r, runs)->output, "old\n");
    rig_close(&r);
}

static void refused_handlers_file_leaves_the_old_table(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: echo old}\n", 4);
    rig_write_handlers(&r, "handlers:\n  t: {runs: echo new}\n");
    const struct rig_report *told = reload(&r);
    assert_int_equal(told->m.reloaded.digest, r.handlers->digest);
    assert_non_null(strstr(told->error, "handlers.yaml:2:"));
    unlink(rig_path(&r, "handlers.yaml"));
    assert_non_null(reload(&r)->error);
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "old\n");
    rig_close(&r);
}

static void job_of_an_unknown_table_is_returned(void **state)
{
    (void)state;
    struct rig r;
    struct message_job j;
    char yaml[64];

    rig_open(&r, "handlers:\n  t: {run: ':'}\n", 4);
    rig_fill(&r, &j, "t");
    for (int i = 0; i < 3; i++) { /* the first table is dropped meanwhile */
        snprintf(yaml, sizeof yaml, "handlers:\n  t: {run: 'exit %d'}\n", i);
        rig_write_handlers(&r, yaml);
        assert_null(reload(&r)->error);
        take_table(&r);
    }
    const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, rig_put(&r, &j));
    assert_false(back->m.returned.cannot_start);
    assert_string_equal(back->error, "the handlers file has changed");
    assert_int_equal(rig_end(&r, rig_send(&r, "t"))->m.result.exit_code, 2);
    rig_close(&r);
}

static void table_that_the_poller_stays_with_is_kept(void **state)
{
    (void)state;
    struct rig r;
    char yaml[64];

    rig_open(&r, "handlers:\n  t: {run: 'echo first'}\n", 4);
    for (int i = 0; i < 3; i++) {
        snprintf(yaml, sizeof yaml, "handlers:\n  t: {run: 'exit %d'}\n", i);
        rig_write_handlers(&r, yaml);
        assert_null(reload(&r)->error);
    }
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "first\n");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_take_turns),
        cmocka_unit_test(turns_follow_weights),
        cmocka_unit_test(last_quarter_is_kept_for_tags_with_nothing_running),
        cmocka_unit_test(a_kept_slot_that_is_in_use_is_one_of_the_quarter),
        cmocka_unit_test(max_running_holds_per_tag),
        cmocka_unit_test(what_runs_elsewhere_counts),
        cmocka_unit_test(unstarted_jobs_are_given_back),
        cmocka_unit_test(of_late_starts_one_is_made_up_for),
        cmocka_unit_test(thousands_of_waiting_jobs_arrive_in_order),
        cmocka_unit_test(early_jobs_start_in_their_time),
        cmocka_unit_test(early_jobs_are_given_back_and_take_nobodys_turn),
        cmocka_unit_test(reloaded_handlers_serve_new_jobs),
        cmocka_unit_test(table_that_the_poller_stays_with_is_kept),
        cmocka_unit_test(refused_handlers_file_leaves_the_old_table),
        cmocka_unit_test(job_of_an_unknown_table_is_returned),
    };

    return cmocka_run_group_tests_name("runner: queue", tests, NULL, NULL);
}
