/*
 * runner_hostile.c - either side of the link survives whatever the other sends: it reads on, or
 * drops the link; it never crashes. The random numbers are the same in every run.
 */
#include "runner/link.c" /* to make a link without a runner */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

#define BYTES_MAX 4096

/* The bytes of the packet that was put together in o. */
static size_t packet_bytes(struct proto_out *o, char data[BYTES_MAX])
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(proto_flush(o, fds[0]), 0);
    ssize_t n = recv(fds[1], data, BYTES_MAX, 0);
    assert_true(n > 0);
    close(fds[0]);
    close(fds[1]);
    return (size_t)n;
}

/* Some bytes changed, sometimes to values that are likely to hurt; sometimes cut. */
static size_t spoil(char *data, size_t len)
{
    static const uint32_t nasty[] = {0, 1, 7, 8, 9, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff8};
    uint32_t changes = random_below(4);

    for (uint32_t i = 0; i < changes; i++) {
        uint32_t at = random_below((uint32_t)len);
        if (random_below(2) && at + 4 <= len)
            memcpy(data + at, &nasty[random_below(9)], 4);
        else
            data[at] = (char)random_below(256);
    }
    return random_below(8) ? len : 1 + random_below((uint32_t)len);
}

static void put_reports(struct proto_out *o)
{
    static const struct message reports[] = {
        {.type = MESSAGE_STARTED, .number = 1, .started = {4711, 1}},
        {.type = MESSAGE_OUTPUT, .number = 1, .output = {"output", 6}},
        {.type = MESSAGE_RESULT,
         .number = 1,
         .result = {.id = 9,
                    .outcome = OUTCOME_EXIT,
                    .permanent = true,
                    .with_output = true,
                    .retry_after_ms = -1,
                    .exit_code = 3,
                    .finish_us = 5,
                    .error = "exit status 3"}},
        {.type = MESSAGE_ENDED, .number = 1},
        {.type = MESSAGE_RETURNED, .number = 2, .returned = {ERR_FATAL, "cwd"}},
        {.type = MESSAGE_RELOADED, .reloaded = {77, -1, "refused"}},
        {.type = MESSAGE_PONG, .pong = {8}},
    };

    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
        message_put(o, &reports[i]);
}

static volatile pid_t notes[NOTES_MAX];

/* A link whose other end is ret_other. */
static struct link *link_to(int *ret_other)
{
    struct link *l = mem_zero(1, sizeof *l);
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    proto_in_init(&l->in);
    l->fd = fds[0];
    l->pid = l->text = -1;
    l->notes = notes_new();
    *ret_other = fds[1];
    return l;
}

static void link_reads_what_is_well_formed(void **state)
{
    (void)state;
    static const enum message_type want[] = {MESSAGE_STARTED,  MESSAGE_RESULT,   MESSAGE_ENDED,
                                             MESSAGE_RETURNED, MESSAGE_RELOADED, MESSAGE_PONG};
    struct proto_out o = {0};
    struct message e;
    int other;
    struct link *l = link_to(&other);

    put_reports(&o);
    assert_int_equal(proto_flush(&o, other), 0);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(link_next(l, &e), 1);
        assert_int_equal(e.type, want[i]);
        if (e.type == MESSAGE_RESULT) {
            assert_int_equal(e.result.output_size, 6);
            assert_memory_equal(e.result.output, "output", 6);
            assert_string_equal(e.result.error, "exit status 3");
        }
    }
    assert_int_equal(link_next(l, &e), 0);
    close(other);
    assert_int_equal(link_next(l, &e), 1);
    assert_int_equal(e.type, MESSAGE_GONE);
    assert_int_equal(link_next(l, &e), 0);
    proto_out_done(&o);
    link_stop(l, 0);
}

static void link_survives_spoilt_reports(void **state)
{
    (void)state;
    char clean[BYTES_MAX], data[BYTES_MAX];
    struct proto_out o = {0};
    struct message e;
    int other, gone = 0;

    seed = 1;
    put_reports(&o);
    size_t len = packet_bytes(&o, clean);
    struct link *l = link_to(&other);
    for (int i = 0; i < 20000; i++) {
        memcpy(data, clean, len);
        size_t n = spoil(data, len);
        assert_int_equal(send(other, data, n, MSG_NOSIGNAL), n);
        while (!l->gone && link_next(l, &e))
            gone += e.type == MESSAGE_GONE;
        if (l->gone) {
            close(other);
            link_stop(l, 0);
            l = link_to(&other);
        }
    }
    assert_in_range(gone, 1000, 19000);
    close(other);
    link_stop(l, 0);
    proto_out_done(&o);
}

/* ---- the runner */

static struct handler handler = {.name = (char *)"t",
                                 .run = (char *)":",
                                 .shell = (char *)"/bin/sh",
                                 .batch = 1,
                                 .timeout_ms = 1000,
                                 .kill_grace_ms = 0,
                                 .max_running = 2,
                                 .weight = HANDLERS_WEIGHT,
                                 .cwd = (char *)"/",
                                 .output_limit = 100};
static const struct handlers table = {
    .path = (char *)"/nonexistent", .digest = 5, .items = &handler, .count = 1};
static const struct runner_options options = {
    .handlers_path = "/nonexistent", .handlers = &table, .slots = 2, .log_level = 1};

static const uint64_t task = 7;

static void put_orders(struct proto_out *o)
{
    struct link l = {.fd = -1, .out = *o, .notes = notes};
    const struct message_job j = {.digest = 5,
                                  .tag = "t",
                                  .key = "key",
                                  .vouched_us = INT64_MAX,
                                  .deadline_at = when_steady() + 5000,
                                  .stdin_fd = -1,
                                  .ids = &task,
                                  .count = 1};
    struct message_job other = j;
    const uint32_t numbers[] = {1, 2};

    link_send_job(&l, 1, &j);
    other.digest = 6;
    link_send_job(&l, 2, &other);
    link_send_deadline(&l, numbers, 2, when_steady() + 6000);
    link_send_kill(&l, 1, MESSAGE_KILL_LOST);
    link_send_ping(&l, 3);
    link_send_reload(&l, 5);
    link_send_return(&l);
    *o = l.out;
}

static void runner_survives_spoilt_orders(void **state)
{
    (void)state;
    char clean[BYTES_MAX], data[BYTES_MAX];
    struct proto_out o = {0};

    seed = 2;
    alarm(600);
    put_orders(&o);
    size_t len = packet_bytes(&o, clean);
    for (int i = 0; i < 150; i++) {
        int fds[2], status;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        pid_t pid = fork();
        if (pid == 0)
            runner_main(fds[1], &options, notes);
        close(fds[1]);
        for (int packets = 0; packets < 10; packets++) {
            memcpy(data, clean, len);
            /* it may have gone by now */
            send(fds[0], data, spoil(data, len), MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    proto_out_done(&o);
    alarm(0);
}

/* Sends one packet of orders and tells whether the runner drops the link for it. */
static bool dropped(struct proto_out *o)
{
    struct err err;
    struct message e;
    struct link *l;

    assert_int_equal(link_start(&options, &l, &err), 0);
    l->out = *o;
    *o = (struct proto_out){0};
    link_send_ping(l, 99);
    assert_true(link_flush(l, &err) >= 0);
    do {
        struct pollfd p = {.fd = link_fd(l), .events = POLLIN};
        poll(&p, 1, -1);
        while (link_next(l, &e) && e.type != MESSAGE_GONE && e.type != MESSAGE_PONG)
            ;
    } while (e.type != MESSAGE_GONE && e.type != MESSAGE_PONG);
    bool gone = e.type == MESSAGE_GONE;
    link_stop(l, 10000);
    return gone;
}

static void job_that_makes_no_sense_drops_the_link(void **state)
{
    (void)state;
    static const uint64_t two[] = {7, 8};
    const struct message_job fine = {.digest = 5,
                                     .tag = "t",
                                     .vouched_us = INT64_MAX,
                                     .deadline_at = when_steady() + 60000,
                                     .stdin_fd = -1,
                                     .ids = two,
                                     .count = 1};
    struct link l = {.fd = -1, .notes = notes};
    struct message_job j = fine;

    link_send_job(&l, 1, &j);
    assert_false(dropped(&l.out));
    j.handler = 1; /* beyond the table */
    link_send_job(&l, 1, &j);
    assert_true(dropped(&l.out));
    j = fine;
    j.count = 2; /* not a batch handler */
    link_send_job(&l, 1, &j);
    assert_true(dropped(&l.out));
    j = fine;
    link_send_job(&l, 1, &j);
    link_send_job(&l, 1, &j); /* the number is taken */
    assert_true(dropped(&l.out));
    link_send_kill(&l, 1, (enum message_kill_reason)9);
    assert_true(dropped(&l.out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_reads_what_is_well_formed),
        cmocka_unit_test(link_survives_spoilt_reports),
        cmocka_unit_test(runner_survives_spoilt_orders),
        cmocka_unit_test(job_that_makes_no_sense_drops_the_link),
    };

    return cmocka_run_group_tests_name("runner: hostile", tests, NULL, NULL);
}
