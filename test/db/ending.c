/* What a dqd that is ending tells others, and for how long others count what it still runs. */
#include "harness.h"
#include "poller/registry.h"
#include "runner/message.h"
#include "runner/proto.h"
#include "store/fleet/poller_store.h"

#include "../unit/capture.h"

#include <sys/socket.h>
#include <unistd.h>

#define BEAT_US INT64_C(3600000000)

static const struct conf conf = {.dqd = {.heartbeat_ms = WHEN_HOUR, .lease_ms = WHEN_MINUTE}};
static struct context ctx;
static struct look look;
static struct tag_set tags;
static struct registry registry;
static struct tag_state *t;

static struct handlers *handlers(int keep)
{
    struct handlers *h = mem_zero(1, sizeof *h);

    h->count = 1;
    h->path = mem_strdup("handlers.yaml");
    h->items = mem_zero(h->count, sizeof *h->items);
    h->items[0] =
        (struct handler){.name = mem_strdup("t*"), .is_glob = true, .keep = keep, .max_running = 8};
    return h;
}

static int setup(void **state)
{
    struct handlers *h = handlers(8);
    const int rc = harness_setup(state);

    ctx = (struct context){.conf = &conf, .db = db, .owner = owner('a'), .slots = 8};
    tags_init(&tags, &look, NULL, h);
    registry_init(&registry, &ctx, &look, &tags, "resident", false);
    t = tags_named(&tags, "t");
    ok(link_start(&(struct runner_options){.handlers_path = h->path, .handlers = h, .slots = 8},
                  &ctx.link, &err));
    return rc;
}

static int end(void **state)
{
    (void)state;
    link_stop(ctx.link, 60000);
    tags_free(&tags);
    look_free(&look);
    look = (struct look){0};
    return 0;
}

static void beat(void)
{
    ok(registry_beat(&registry, &err));
}

/* Until its row says that it takes no more, the next run must not begin. */
static void end_is_said_when_no_job_waits_to_be_started(void **state)
{
    (void)state;
    beat();
    assert_int_equal(registry_next(&registry), registry.beat_us + BEAT_US);
    look_job_queued(&look, &t->look);
    ctx.ending = true;
    registry_end(&registry);
    assert_int_equal(registry_next(&registry), 0);
    beat();
    assert_false(registry_has_ended(&registry, registry.beat_us));
    assert_int_equal(registry_next(&registry), registry.beat_us + 1000000);
    look_job_started(&look, &t->look);
    assert_int_equal(registry_next(&registry), 0);
    beat();
    assert_true(registry_has_ended(&registry, registry.beat_us));
    assert_int_equal(registry_next(&registry), registry.beat_us + BEAT_US);
    assert_one("dq_poller WHERE slots = 0 AND running = 1");
}

/* Nobody waits for a dqd that is silent for so long that it is not alive. */
static void end_need_not_be_said_for_longer_than_silence_is_alive(void **state)
{
    (void)state;
    beat();
    assert_false(registry_has_ended(&registry, when_steady_us() + 100 * BEAT_US));
    ctx.ending = true;
    registry_end(&registry);
    assert_false(registry_has_ended(&registry, registry.ending_us + 3 * BEAT_US - 1));
    assert_true(registry_has_ended(&registry, registry.ending_us + 3 * BEAT_US));
}

/* A dqd of this host that is ending, with two tasks. */
static struct task_array another(void)
{
    const struct claim_owner b = owner('b');
    const struct poller_say say = {.mode = "resident",
                                   .running = 2,
                                   .stale_after_ms = WHEN_HOUR,
                                   .handlers_file = "handlers.yaml"};
    struct poller_share share;
    struct task_array won = claimed(&b, 2);

    ok(poller_store_beat(db, &b, &say, &share, &err));
    return won;
}

static void what_others_still_run_is_counted_seldom_if_that_takes_long(void **state)
{
    struct task_array won = another();
    (void)state;
    int64_t rest_us = 0;
    for (int tries = 0; rest_us <= 0 && tries < 100; tries++) { /* one may be put aside */
        registry.count_us = 0;
        beat();
        rest_us = registry.count_us - when_steady_us();
    }
    assert_int_equal(look.turn.elsewhere, 2);
    assert_int_equal(tags_named(&tags, "t2")->look.running, 2); /* they share the processes */
    assert_true(rest_us > 0);
    registry.count_us = when_steady_us() + BEAT_US;
    run(db, "UPDATE dq_task SET status = 1 LIMIT 1");
    run(db, "UPDATE dq_poller SET running = 1 WHERE slots = 0");
    beat();
    assert_int_equal(look.turn.elsewhere, 2);
    registry.count_us = 0;
    beat();
    assert_int_equal(look.turn.elsewhere, 1);
    assert_int_equal(tags_named(&tags, "t2")->look.running, 1);
    registry.count_us = when_steady_us() + BEAT_US;
    run(db, "UPDATE dq_poller SET running = 0 WHERE slots = 0");
    beat();
    assert_int_equal(look.turn.elsewhere, 0);
    assert_int_equal(tags_named(&tags, "t2")->look.running, 0);
    task_array_done(&won);
}

/* How much of the tag the runner is told to run elsewhere; -1: nothing. sock: its end of the link.
 */
static int told(int sock, const char *tag)
{
    struct proto_in in;
    struct message m;
    int running = -1;

    link_push(ctx.link);
    proto_in_init(&in);
    while (proto_recv(&in, sock) > 0)
        while (message_get_order(&in, &m) > 0)
            if (m.type == MESSAGE_ELSEWHERE && !strcmp(m.elsewhere.tag, tag))
                running = (int)m.elsewhere.running;
    proto_in_done(&in);
    return running;
}

static void what_others_still_run_outlives_a_reload(void **state)
{
    struct task_array won = another();
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    dup2(fds[0], link_fd(ctx.link)); /* the runner ends */
    close(fds[0]);
    run(db, "UPDATE dq_task SET tag = 't2' LIMIT 1");
    tags_set_handlers(&tags, handlers(0));
    beat();
    assert_int_equal(told(fds[1], "t"), 1);
    assert_int_equal(t->look.running, 1);
    tags_set_handlers(&tags, handlers(8));
    assert_int_equal(t->look.running, 2);
    run(db, "DELETE FROM dq_task WHERE tag = 't'");
    run(db, "UPDATE dq_poller SET running = 1 WHERE slots = 0");
    registry.count_us = 0;
    beat();
    assert_int_equal(told(fds[1], "t"), 1); /* what t2 has, which counts for the handler */
    assert_int_equal(t->look.running, 1);
    tags_set_handlers(&tags, handlers(8));
    run(db, "UPDATE dq_poller SET running = 0 WHERE slots = 0");
    beat();
    assert_int_equal(told(fds[1], "t2"), 0);
    assert_int_equal(t->look.running, 0);
    close(fds[1]);
    task_array_done(&won);
}

static void what_others_still_run_is_forgotten_when_they_may_be_dead(void **state)
{
    struct task_array won = another();
    (void)state;
    beat();
    assert_int_equal(look.turn.elsewhere, 2);
    as_root("CREATE TRIGGER refused BEFORE UPDATE ON dq_poller FOR EACH ROW"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'");
    assert_true(registry_beat(&registry, &err) < 0);
    assert_int_equal(look.turn.elsewhere, 2);
    registry.count_us = when_steady_us() - 3 * BEAT_US;
    assert_true(registry_beat(&registry, &err) < 0);
    as_root("DROP TRIGGER refused");
    assert_int_equal(look.turn.elsewhere, 0);
    assert_int_equal(t->look.running, 0);
    beat();
    assert_int_equal(look.turn.elsewhere, 2);
    task_array_done(&won);
}

static void the_log_says_once_that_what_others_still_run_cannot_be_counted(void **state)
{
    char *lines = NULL;
    size_t size = 0;
    struct task_array won = another();

    as_root("RENAME TABLE dq_task TO gone");
    assert_int_equal(capture_begin(state), 0);
    capture_clear();
    beat();
    beat();
    rewind(capture);
    const ssize_t n = getdelim(&lines, &size, 0, capture);
    capture_end(state);
    as_root("RENAME TABLE gone TO dq_task");
    assert_true(n > 0);
    const char *first = strstr(lines, "cannot count what ending dqds");
    assert_non_null(first);
    assert_null(strstr(first + 1, "cannot count"));
    free(lines);
    task_array_done(&won);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(end_is_said_when_no_job_waits_to_be_started, setup, end),
        cmocka_unit_test_setup_teardown(end_need_not_be_said_for_longer_than_silence_is_alive,
                                        setup, end),
        cmocka_unit_test_setup_teardown(what_others_still_run_is_counted_seldom_if_that_takes_long,
                                        setup, end),
        cmocka_unit_test_setup_teardown(what_others_still_run_is_forgotten_when_they_may_be_dead,
                                        setup, end),
        cmocka_unit_test_setup_teardown(what_others_still_run_outlives_a_reload, setup, end),
        cmocka_unit_test_setup_teardown(
            the_log_says_once_that_what_others_still_run_cannot_be_counted, setup, end),
    };

    return cmocka_run_group_tests_name("ending", tests, harness_group, harness_group_end);
}
