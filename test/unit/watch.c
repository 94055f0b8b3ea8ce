/*
 * watch.c - a runner that does not answer is killed, unless this process did not run itself.
 */
#include "runner/link.c" /* to make a link without a runner */

#include "poller/watch.c"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define TICK_US (STALL_US / 2)
#define BEGAN_US (7 * PING_LIMIT_US)

static struct conf conf = {.dqd = {.lease_ms = 60000}};
static struct link runner = {.fd = -1};
static const struct context ctx = {.conf = &conf, .link = &runner};
static struct watch watch;
static int kills;

/* Stands before the C library's. */
int kill(pid_t pid, int sig)
{
    assert_int_equal(pid, runner.pid);
    assert_int_equal(sig, SIGKILL);
    kills++;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    kills = 0;
    watch_init(&watch, BEGAN_US);
    return 0;
}

static int end(void **state)
{
    (void)state;
    proto_out_done(&runner.out);
    return 0;
}

static void run(int64_t from_us, int64_t to_us)
{
    for (int64_t us = from_us; us <= to_us; us += TICK_US)
        watch_run(&watch, &ctx, true, us);
}

static void one_that_is_silent_is_killed(void **state)
{
    (void)state;
    run(BEGAN_US, BEGAN_US + PING_LIMIT_US);
    assert_int_equal(watch.ping_sent, 1);
    assert_int_equal(kills, 0);
    run(BEGAN_US + PING_LIMIT_US, BEGAN_US + PING_LIMIT_US * 3 / 2);
    assert_int_equal(kills, 1);
}

static void one_that_answers_lives(void **state)
{
    (void)state;
    for (int64_t us = BEGAN_US; us < BEGAN_US + 9 * PING_LIMIT_US; us += TICK_US) {
        watch_run(&watch, &ctx, true, us);
        watch_answered(&watch, watch.ping_sent);
    }
    assert_in_range(watch.ping_sent, 24, 27);
    assert_int_equal(kills, 0);
}

static void a_silence_during_which_nobody_listened_is_none(void **state)
{
    (void)state;
    run(BEGAN_US, BEGAN_US + PING_LIMIT_US / 2);
    assert_int_equal(watch.ping_sent, 1);
    run(BEGAN_US + 2 * PING_LIMIT_US, BEGAN_US + 3 * PING_LIMIT_US);
    assert_int_equal(kills, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_is_silent_is_killed, begin, end),
        cmocka_unit_test_setup_teardown(one_that_answers_lives, begin, end),
        cmocka_unit_test_setup_teardown(a_silence_during_which_nobody_listened_is_none, begin, end),
    };

    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
