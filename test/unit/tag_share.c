/*
 * tag_share.c - how much of a tag a poller claims: enough to keep its handlers busy, never so much that another tag has to wait.
 */
#include "poller/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct handler handler;
static struct handlers handlers = {.items = &handler, .count = 1};
static struct table table = {.handlers = &handlers, .users = 1};
static struct conf conf;
static struct poller p;
static struct tag_state t;

static int fresh(void **state)
{
    (void)state;
    handler = (struct handler){.batch = 1, .max_running = 8};
    conf.dqd.claim_batch = 500;
    p = (struct poller){.conf = &conf, .table = &table, .slots = 32};
    t = (struct tag_state){.handler = 0};
    return 0;
}

static void an_unknown_tag_gets_what_can_start_at_once(void **state)
{
    (void)state;
    assert_int_equal(tags_want(&p, &t), 8);
    t.running = p.started = 5;
    assert_int_equal(tags_want(&p, &t), 3);
    t.running = p.started = 8;
    assert_int_equal(tags_want(&p, &t), 0);
}

static void slow_handlers_are_not_claimed_ahead(void **state)
{
    (void)state;
    t.mean_us = 60000000;
    t.running = p.started = 7;
    assert_int_equal(tags_want(&p, &t), 1);
}

static void fast_handlers_are_claimed_ahead_in_large_pieces(void **state)
{
    (void)state;
    t.mean_us = 2000; /* 8 at a time, 2 ms each: 400 start within 100 ms */
    assert_int_equal(tags_want(&p, &t), 408);
    t.running = p.started = 8;
    t.queued = 300;
    assert_int_equal(tags_want(&p, &t), 0); /* not in small pieces */
    t.queued = 150;
    assert_int_equal(tags_want(&p, &t), 250);
}

static void a_claim_is_never_larger_than_claim_batch(void **state)
{
    (void)state;
    t.mean_us = 100;
    assert_int_equal(tags_want(&p, &t), 500);
}

static void tasks_that_crashed_before_are_not_claimed_ahead(void **state)
{
    (void)state;
    t.mean_us = 2000;
    t.wary = true;
    assert_int_equal(tags_want(&p, &t), 8);
}

static void the_last_quarter_of_the_slots_is_for_tags_that_have_nothing_running(void **state)
{
    (void)state;
    handler.max_running = 100;
    p.slots = 16;
    p.started = 10; /* of other tags */
    assert_int_equal(tags_want(&p, &t), 6);
    t.running = 2;
    p.started = 12;
    assert_int_equal(tags_want(&p, &t), 0); /* 10 + 2 = 12 = 16 - 4 */
    p.started = 16;
    t.running = 0;
    assert_int_equal(tags_want(&p, &t), 0);
}

static void a_batch_tag_gets_whole_batches(void **state)
{
    (void)state;
    handler.batch = 50;
    handler.max_running = 2;
    assert_int_equal(tags_want(&p, &t), 100);
    t.running = p.started = 1;
    assert_int_equal(tags_want(&p, &t), 50);
    handler.batch = 4000;
    t.running = p.started = 0;
    assert_int_equal(tags_want(&p, &t), 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_unknown_tag_gets_what_can_start_at_once, fresh),
        cmocka_unit_test_setup(slow_handlers_are_not_claimed_ahead, fresh),
        cmocka_unit_test_setup(fast_handlers_are_claimed_ahead_in_large_pieces, fresh),
        cmocka_unit_test_setup(a_claim_is_never_larger_than_claim_batch, fresh),
        cmocka_unit_test_setup(tasks_that_crashed_before_are_not_claimed_ahead, fresh),
        cmocka_unit_test_setup(the_last_quarter_of_the_slots_is_for_tags_that_have_nothing_running, fresh),
        cmocka_unit_test_setup(a_batch_tag_gets_whole_batches, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
