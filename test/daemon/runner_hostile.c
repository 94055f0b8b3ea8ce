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
    proto_begin(o, PROTO_STARTED, 16, -1);
    proto_put_u32(o, 1);
    proto_put_u32(o, 4711);
    proto_put_i64(o, 1);
    proto_end(o);
    proto_begin(o, PROTO_OUTPUT, 100, -1);
    proto_put_u32(o, 1);
    proto_put_bytes(o, "output", 6);
    proto_end(o);
    proto_begin(o, PROTO_RESULT, 100, -1);
    proto_put_u32(o, 1);
    proto_put_u64(o, 9);
    proto_put_u32(o, OUTCOME_EXIT);
    proto_put_u32(o, 1);
    proto_put_u32(o, 1);
    proto_put_i64(o, -1);
    proto_put_u32(o, 3);
    proto_put_u32(o, 0);
    proto_put_i64(o, 5);
    proto_put_text(o, "exit status 3");
    proto_end(o);
    proto_begin(o, PROTO_ENDED, 4, -1);
    proto_put_u32(o, 1);
    proto_end(o);
    proto_begin(o, PROTO_RETURNED, 100, -1);
    proto_put_u32(o, 2);
    proto_put_u32(o, 1);
    proto_put_text(o, "cwd");
    proto_end(o);
    proto_begin(o, PROTO_RELOADED, 100, -1);
    proto_put_u64(o, 77);
    proto_put_u32(o, 0);
    proto_put_text(o, "refused");
    proto_end(o);
    proto_begin(o, PROTO_PONG, 8, -1);
    proto_put_u64(o, 8);
    proto_end(o);
}

static volatile pid_t notes[PROCESS_NOTES_MAX];

/* A link whose other end is ret_other. */
static struct runner_link *link_to(int *ret_other)
{
    struct runner_link *l = mem_zero(1, sizeof *l);
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    proto_in_init(&l->in);
    l->fd = fds[0];
    l->pid = l->text = -1;
    l->notes = mmap(NULL, NOTES_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *ret_other = fds[1];
    return l;
}

static void link_reads_what_is_well_formed(void **state)
{
    (void)state;
    static const enum runner_event_type want[] = {RUNNER_STARTED,  RUNNER_RESULT,   RUNNER_ENDED,
                                                  RUNNER_RETURNED, RUNNER_RELOADED, RUNNER_PONG};
    struct proto_out o = {0};
    struct runner_event e;
    int other;
    struct runner_link *l = link_to(&other);

    put_reports(&o);
    assert_int_equal(proto_flush(&o, other), 0);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(runner_next(l, &e), 1);
        assert_int_equal(e.type, want[i]);
        if (e.type == RUNNER_RESULT) {
            assert_int_equal(e.output_size, 6);
            assert_memory_equal(e.output, "output", 6);
            assert_string_equal(e.error, "exit status 3");
        }
    }
    assert_int_equal(runner_next(l, &e), 0);
    close(other);
    assert_int_equal(runner_next(l, &e), 1);
    assert_int_equal(e.type, RUNNER_GONE);
    assert_int_equal(runner_next(l, &e), 0);
    proto_out_done(&o);
    runner_stop(l, 0);
}

static void link_survives_spoilt_reports(void **state)
{
    (void)state;
    char clean[BYTES_MAX], data[BYTES_MAX];
    struct proto_out o = {0};
    struct runner_event e;
    int other, gone = 0;

    seed = 1;
    put_reports(&o);
    size_t len = packet_bytes(&o, clean);
    struct runner_link *l = link_to(&other);
    for (int i = 0; i < 20000; i++) {
        memcpy(data, clean, len);
        size_t n = spoil(data, len);
        assert_int_equal(send(other, data, n, MSG_NOSIGNAL), n);
        while (!l->gone && runner_next(l, &e))
            gone += e.type == RUNNER_GONE;
        if (l->gone) {
            close(other);
            runner_stop(l, 0);
            l = link_to(&other);
        }
    }
    assert_in_range(gone, 1000, 19000);
    close(other);
    runner_stop(l, 0);
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
                                 .cwd = (char *)"/",
                                 .output_limit = 100};
static const struct handlers table = {
    .path = (char *)"/nonexistent", .digest = 5, .items = &handler, .count = 1};
static const struct runner_options options = {
    .handlers_path = "/nonexistent", .handlers = &table, .slots = 2, .log_level = 1};

static const uint64_t task = 7;

static void put_orders(struct proto_out *o)
{
    struct runner_link l = {.fd = -1, .out = *o, .notes = notes};
    const struct runner_job j = {.job = 1,
                                 .digest = 5,
                                 .tag = "t",
                                 .key = "key",
                                 .vouched_us = INT64_MAX,
                                 .deadline_at = when_steady() + 5000,
                                 .stdin_fd = -1,
                                 .ids = &task,
                                 .count = 1};
    struct runner_job other = j;
    const uint32_t numbers[] = {1, 2};

    runner_send_job(&l, &j);
    other.job = 2;
    other.digest = 6;
    runner_send_job(&l, &other);
    runner_send_deadline(&l, numbers, 2, when_steady() + 6000);
    runner_send_kill(&l, 1, RUNNER_KILL_LOST);
    runner_send_ping(&l, 3);
    runner_send_reload(&l, 5);
    runner_send_return(&l);
    *o = l.out;
}

static void runner_survives_spoilt_orders(void **state)
{
    (void)state;
    char clean[BYTES_MAX], data[BYTES_MAX];
    struct proto_out o = {0};

    seed = 2;
    alarm(120);
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
    struct runner_event e;
    struct runner_link *l;

    assert_int_equal(runner_start(&options, &l, &err), 0);
    l->out = *o;
    *o = (struct proto_out){0};
    runner_send_ping(l, 99);
    assert_true(runner_flush(l, &err) >= 0);
    do {
        struct pollfd p = {.fd = runner_fd(l), .events = POLLIN};
        poll(&p, 1, -1);
        while (runner_next(l, &e) && e.type != RUNNER_GONE && e.type != RUNNER_PONG)
            ;
    } while (e.type != RUNNER_GONE && e.type != RUNNER_PONG);
    bool gone = e.type == RUNNER_GONE;
    runner_stop(l, 10000);
    return gone;
}

static void job_that_makes_no_sense_drops_the_link(void **state)
{
    (void)state;
    static const uint64_t two[] = {7, 8};
    const struct runner_job fine = {.job = 1,
                                    .digest = 5,
                                    .tag = "t",
                                    .vouched_us = INT64_MAX,
                                    .deadline_at = when_steady() + 60000,
                                    .stdin_fd = -1,
                                    .ids = two,
                                    .count = 1};
    struct runner_link l = {.fd = -1, .notes = notes};
    struct runner_job j = fine;

    runner_send_job(&l, &j);
    assert_false(dropped(&l.out));
    j.handler = 1; /* beyond the table */
    runner_send_job(&l, &j);
    assert_true(dropped(&l.out));
    j = fine;
    j.count = 2; /* not a batch handler */
    runner_send_job(&l, &j);
    assert_true(dropped(&l.out));
    j = fine;
    runner_send_job(&l, &j);
    runner_send_job(&l, &j); /* the number is taken */
    assert_true(dropped(&l.out));
    runner_send_kill(&l, 1, (enum runner_kill)9);
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
