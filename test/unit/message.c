/*
 * message.c - what poller and runner say to each other arrives as it was said, at any size; what
 * nobody says is refused.
 */
#include "runner/message.h"

#include "base/mem.h"
#include "runner/input.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct pair {
    struct proto_out out;
    struct proto_in in;
    int from, to;
};

static void pair_open(struct pair *p)
{
    int fds[2];

    memset(p, 0, sizeof *p);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    p->from = fds[0];
    p->to = fds[1];
    proto_in_init(&p->in);
}

static void pair_close(struct pair *p)
{
    proto_out_done(&p->out);
    proto_in_done(&p->in);
    close(p->from);
    close(p->to);
}

static int get(struct proto_in *in, struct message *m)
{
    struct proto_in as_order = *in;
    int rc = message_get_report(in, m);

    if (rc >= 0)
        return rc;
    *in = as_order;
    in->bad = false;
    return message_get_order(in, m);
}

/* The next one that was put. */
static void receive(struct pair *p, struct message *ret)
{
    int rc;

    while ((rc = get(&p->in, ret)) == 0) {
        assert_true(proto_flush(&p->out, p->from) >= 0);
        assert_int_equal(proto_recv(&p->in, p->to), 1);
    }
    assert_int_equal(rc, 1);
}

static size_t open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void same_text(const char *a, const char *b)
{
    if (b)
        assert_string_equal(a, b);
    else
        assert_null(a);
}

static void job_arrives(void **state)
{
    (void)state;
    static const uint64_t ids[] = {1, UINT64_MAX, 3};
    static const struct message_job jobs[] = {
        {.digest = UINT64_MAX,
         .handler = UINT32_MAX,
         .tag = "t",
         .start_us = INT64_MIN,
         .vouched_us = INT64_MAX,
         .late_us = -2,
         .expires_us = -3,
         .deadline_at = -1,
         .input = "{}\n",
         .input_size = 3,
         .stdin_fd = -1,
         .ids = ids,
         .count = 3,
         .attempt = 4,
         .max_attempts = 5,
         .run = 6,
         .expected_at = -6,
         .slots = 8,
         .token = 7},
        {.tag = "", .key = "", .stdin_fd = -1, .ids = ids, .count = 1},
    };
    struct pair p;
    struct message m;

    pair_open(&p);
    for (size_t i = 0; i < 2; i++) {
        const struct message_job *want = &jobs[i], *got = &m.job;
        message_put(&p.out,
                    &(struct message){.type = MESSAGE_JOB, .number = UINT32_MAX, .job = *want});
        receive(&p, &m);
        assert_int_equal(m.type, MESSAGE_JOB);
        assert_int_equal(m.number, UINT32_MAX);
        assert_int_equal(got->digest, want->digest);
        assert_int_equal(got->handler, want->handler);
        assert_string_equal(got->tag, want->tag);
        same_text(got->key, want->key);
        assert_int_equal(got->start_us, want->start_us);
        assert_int_equal(got->vouched_us, want->vouched_us);
        assert_int_equal(got->late_us, want->late_us);
        assert_int_equal(got->expires_us, want->expires_us);
        assert_int_equal(got->deadline_at, want->deadline_at);
        assert_int_equal(got->input_size, want->input_size);
        assert_memory_equal(got->input, "{}\n", want->input_size);
        assert_int_equal(got->stdin_fd, -1);
        assert_int_equal(got->count, want->count);
        assert_memory_equal(got->ids, ids, want->count * sizeof ids[0]);
        assert_int_equal(got->attempt, want->attempt);
        assert_int_equal(got->max_attempts, want->max_attempts);
        assert_int_equal(got->run, want->run);
        assert_int_equal(got->expected_at, want->expected_at);
        assert_int_equal(got->slots, want->slots);
        assert_int_equal(got->token, want->token);
    }
    pair_close(&p);
}

static void result_arrives(void **state)
{
    (void)state;
    static const struct message_result results[] = {
        {.id = UINT64_MAX,
         .outcome = OUTCOME_KILLED,
         .permanent = true,
         .retry_after_ms = -1,
         .exit_code = -1,
         .signal = 127,
         .finish_us = INT64_MAX,
         .error = "why"},
        {.with_output = true, .retry_after_ms = INT64_MAX, .exit_code = 255},
    };
    struct pair p;
    struct message m;

    pair_open(&p);
    for (size_t i = 0; i < 2; i++) {
        const struct message_result *want = &results[i], *got = &m.result;
        message_put(&p.out, &(struct message){.type = MESSAGE_RESULT, .result = *want});
        receive(&p, &m);
        assert_int_equal(m.type, MESSAGE_RESULT);
        assert_int_equal(got->id, want->id);
        assert_int_equal(got->outcome, want->outcome);
        assert_int_equal(got->permanent, want->permanent);
        assert_int_equal(got->with_output, want->with_output);
        assert_int_equal(got->retry_after_ms, want->retry_after_ms);
        assert_int_equal(got->exit_code, want->exit_code);
        assert_int_equal(got->signal, want->signal);
        assert_int_equal(got->finish_us, want->finish_us);
        same_text(got->error, want->error);
        assert_null(got->output);
    }
    pair_close(&p);
}

static void small_messages_arrive_in_order(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {7, UINT32_MAX};
    static const struct message all[] = {
        {.type = MESSAGE_DEADLINE, .deadline = {INT64_MIN, numbers, 2}},
        {.type = MESSAGE_VOUCH, .vouch = {INT64_MAX}},
        {.type = MESSAGE_KILL, .number = 1, .kill = {MESSAGE_KILL_UNSTARTED}},
        {.type = MESSAGE_RETURN},
        {.type = MESSAGE_RELOAD, .reload = {UINT64_MAX}},
        {.type = MESSAGE_PING, .ping = {1}},
        {.type = MESSAGE_STARTED, .number = 2, .started = {INT_MAX, -1}},
        {.type = MESSAGE_OUTPUT, .number = 3, .output = {"", 0}},
        {.type = MESSAGE_ENDED, .number = 4},
        {.type = MESSAGE_RETURNED, .number = 5, .returned = {ERR_TRANSIENT, NULL}},
        {.type = MESSAGE_RELOADED, .reloaded = {9, -1, ""}},
        {.type = MESSAGE_PONG, .pong = {UINT64_MAX}},
        {.type = MESSAGE_FOLLOW, .number = 6, .follow = {MESSAGE_FOLLOW_END}},
        {.type = MESSAGE_CHUNK, .number = 7, .chunk = {UINT64_MAX, "ab", 2, true}},
        {.type = MESSAGE_ELSEWHERE, .elsewhere = {"t", 3, UINT32_MAX}},
    };
    const size_t count = sizeof all / sizeof all[0];
    struct message got[sizeof all / sizeof all[0]];
    struct pair p;

    pair_open(&p);
    for (size_t i = 0; i < count; i++)
        message_put(&p.out, &all[i]);
    for (size_t i = 0; i < count; i++) {
        receive(&p, &got[i]);
        assert_int_equal(got[i].type, all[i].type);
        assert_int_equal(got[i].number, all[i].number);
    }
    assert_int_equal(got[0].deadline.deadline_at, INT64_MIN);
    assert_int_equal(got[0].deadline.count, 2);
    assert_memory_equal(got[0].deadline.numbers, numbers, sizeof numbers);
    assert_int_equal(got[1].vouch.until_us, INT64_MAX);
    assert_int_equal(got[2].kill.reason, MESSAGE_KILL_UNSTARTED);
    assert_int_equal(got[4].reload.digest, UINT64_MAX);
    assert_int_equal(got[5].ping.n, 1);
    assert_int_equal(got[6].started.pid, INT_MAX);
    assert_int_equal(got[6].started.at_us, -1);
    assert_int_equal(got[7].output.size, 0);
    assert_int_equal(got[9].returned.cannot_start, ERR_TRANSIENT);
    assert_null(got[9].returned.error);
    assert_int_equal(got[10].reloaded.digest, 9);
    assert_int_equal(got[10].reloaded.text_fd, -1);
    assert_string_equal(got[10].reloaded.error, "");
    assert_int_equal(got[11].pong.n, UINT64_MAX);
    assert_int_equal(got[12].follow.what, MESSAGE_FOLLOW_END);
    assert_int_equal(got[13].chunk.start, UINT64_MAX);
    assert_int_equal(got[13].chunk.size, 2);
    assert_memory_equal(got[13].chunk.data, "ab", 2);
    assert_true(got[13].chunk.more);
    assert_string_equal(got[14].elsewhere.tag, "t");
    assert_int_equal(got[14].elsewhere.running, 3);
    assert_int_equal(got[14].elsewhere.all, UINT32_MAX);
    pair_close(&p);
}

/* ---- sizes */

static char *text_of(size_t len)
{
    char *s = mem_alloc(len + 1);

    memset(s, 'x', len);
    s[len] = '\0';
    return s;
}

static void largest_messages_fit(void **state)
{
    (void)state;
    char *tag = text_of(TASK_TAG_MAX * 4), *key = text_of(TASK_KEY_MAX * 4);
    char *error = text_of(32 * 1024), *output = text_of(MESSAGE_PIECE_MAX);
    uint64_t *ids = mem_zero(MESSAGE_TASKS_MAX, sizeof *ids);
    uint32_t *numbers = mem_zero(MESSAGE_NUMBERS_MAX, sizeof *numbers);
    struct pair p;
    struct message m;

    ids[MESSAGE_TASKS_MAX - 1] = 4711;
    numbers[MESSAGE_NUMBERS_MAX - 1] = 4712;
    pair_open(&p);
    for (int i = 0; i < 2; i++) { /* the second of them begins in a packet that is not empty */
        message_put(&p.out, &(struct message){.type = MESSAGE_JOB,
                                              .job = {.tag = tag,
                                                      .key = key,
                                                      .input = output,
                                                      .input_size = MESSAGE_INPUT_MAX,
                                                      .stdin_fd = -1,
                                                      .ids = ids,
                                                      .count = MESSAGE_TASKS_MAX}});
        message_put(&p.out, &(struct message){.type = MESSAGE_DEADLINE,
                                              .deadline = {1, numbers, MESSAGE_NUMBERS_MAX}});
        message_put(&p.out, &(struct message){.type = MESSAGE_RESULT, .result = {.error = error}});
        message_put(&p.out, &(struct message){.type = MESSAGE_OUTPUT,
                                              .output = {output, MESSAGE_PIECE_MAX}});
    }
    for (int i = 0; i < 2; i++) {
        receive(&p, &m);
        assert_int_equal(m.job.count, MESSAGE_TASKS_MAX);
        assert_memory_equal(m.job.ids, ids, MESSAGE_TASKS_MAX * sizeof *ids);
        assert_memory_equal(m.job.input, output, MESSAGE_INPUT_MAX);
        assert_string_equal(m.job.key, key);
        receive(&p, &m);
        assert_memory_equal(m.deadline.numbers, numbers, MESSAGE_NUMBERS_MAX * sizeof *numbers);
        receive(&p, &m);
        assert_string_equal(m.result.error, error);
        receive(&p, &m);
        assert_int_equal(m.output.size, MESSAGE_PIECE_MAX);
    }
    pair_close(&p);
    free(tag);
    free(key);
    free(error);
    free(output);
    free(ids);
    free(numbers);
}

/* Each message's descriptor holds its number, whatever packets they are sent in. */
static void descriptors_go_with_their_messages(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    uint64_t *ids = mem_zero(COUNT, sizeof *ids);
    size_t files = open_files();
    struct pair p;
    struct message m;

    pair_open(&p);
    for (uint32_t i = 1; i <= COUNT; i++) { /* 128 descriptors fill a packet, or 100 KiB do */
        int fd = i % 3 ? open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
        if (fd >= 0)
            assert_int_equal(pwrite(fd, &i, sizeof i, 0), sizeof i);
        message_put(
            &p.out,
            &(struct message){
                .type = MESSAGE_JOB,
                .number = i,
                .job = {.tag = "t", .stdin_fd = fd, .ids = ids, .count = i > COUNT / 2 ? i : 1}});
    }
    for (uint32_t i = 1; i <= COUNT; i++) {
        uint32_t number = 0;
        receive(&p, &m);
        assert_int_equal(m.number, i);
        assert_true((m.job.stdin_fd >= 0) == (i % 3 != 0));
        if (m.job.stdin_fd < 0)
            continue;
        assert_int_equal(pread(m.job.stdin_fd, &number, sizeof number, 0), sizeof number);
        assert_int_equal(number, i);
        close(m.job.stdin_fd);
    }
    pair_close(&p);
    free(ids);
    assert_int_equal(open_files(), files);
}

/* ---- what is refused */

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    static uint64_t ids[MESSAGE_TASKS_MAX + 1];
    char *error = text_of(32 * 1024 + 1), *output = text_of(MESSAGE_PIECE_MAX + 1);
    char *tag = text_of(TASK_TAG_MAX * 4 + 1), *key = text_of(TASK_KEY_MAX * 4 + 1);
    const struct message reports[] = {
        {.type = MESSAGE_STARTED, .started = {1, 0}},
        {.type = MESSAGE_STARTED, .started = {-2, 0}},
        {.type = MESSAGE_OUTPUT, .output = {output, MESSAGE_PIECE_MAX + 1}},
        {.type = MESSAGE_CHUNK, .chunk = {.data = output, .size = MESSAGE_PIECE_MAX + 1}},
        {.type = MESSAGE_RESULT, .result = {.outcome = OUTCOME_COUNT}},
        {.type = MESSAGE_RESULT, .result = {.exit_code = 256}},
        {.type = MESSAGE_RESULT, .result = {.exit_code = -2}},
        {.type = MESSAGE_RESULT, .result = {.signal = 128}},
        {.type = MESSAGE_RESULT, .result = {.signal = -1}},
        {.type = MESSAGE_RESULT, .result = {.retry_after_ms = -2}},
        {.type = MESSAGE_RESULT, .result = {.error = error}},
        {.type = MESSAGE_RETURNED, .returned = {false, error}},
        {.type = MESSAGE_GONE},
        {.type = MESSAGE_PING},
        {.type = MESSAGE_JOB, .job = {.tag = "t", .stdin_fd = -1, .ids = ids, .count = 1}},
        {.type = (enum message_type)99},
    };
    const struct message orders[] = {
        {.type = MESSAGE_JOB, .job = {.tag = "t", .stdin_fd = -1, .ids = ids}},
        {.type = MESSAGE_JOB,
         .job = {.tag = "t", .stdin_fd = -1, .ids = ids, .count = MESSAGE_TASKS_MAX + 1}},
        {.type = MESSAGE_JOB,
         .job = {.tag = "t",
                 .input = output,
                 .input_size = MESSAGE_INPUT_MAX + 1,
                 .stdin_fd = -1,
                 .ids = ids,
                 .count = 1}},
        {.type = MESSAGE_JOB, .job = {.stdin_fd = -1, .ids = ids, .count = 1}},
        {.type = MESSAGE_JOB, .job = {.tag = tag, .stdin_fd = -1, .ids = ids, .count = 1}},
        {.type = MESSAGE_JOB,
         .job = {.tag = "t", .key = key, .stdin_fd = -1, .ids = ids, .count = 1}},
        {.type = MESSAGE_DEADLINE, .deadline = {1, ids, 0}},
        {.type = MESSAGE_KILL, .kill = {MESSAGE_KILL_COUNT}},
        {.type = MESSAGE_FOLLOW, .follow = {MESSAGE_FOLLOW_COUNT}},
        {.type = MESSAGE_PONG},
    };
    const size_t report_count = sizeof reports / sizeof reports[0];
    const size_t order_count = sizeof orders / sizeof orders[0];

    for (size_t i = 0; i < report_count + order_count; i++) {
        bool report = i < report_count;
        struct pair p;
        struct message m;
        pair_open(&p);
        message_put(&p.out, report ? &reports[i] : &orders[i - report_count]);
        assert_int_equal(proto_flush(&p.out, p.from), 0);
        assert_int_equal(proto_recv(&p.in, p.to), 1);
        int rc = report ? message_get_report(&p.in, &m) : message_get_order(&p.in, &m);
        if (rc != -1)
            fail_msg("%s %zu is taken", report ? "report" : "order", report ? i : i - report_count);
        assert_true(p.in.bad);
        pair_close(&p);
    }
    free(error);
    free(output);
    free(tag);
    free(key);
}

static void message_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct pair p;
    struct message m;

    pair_open(&p);
    proto_begin(&p.out, MESSAGE_PONG);
    proto_put_u32(&p.out, 0);
    proto_put_u64(&p.out, 1);
    proto_put_u32(&p.out, 0); /* what is that? */
    proto_end(&p.out);
    assert_int_equal(proto_flush(&p.out, p.from), 0);
    assert_int_equal(proto_recv(&p.in, p.to), 1);
    assert_int_equal(message_get_report(&p.in, &m), -1);
    pair_close(&p);
}

static void descriptor_of_a_refused_message_is_closed(void **state)
{
    (void)state;
    size_t files = open_files();
    struct pair p;
    struct message m;

    pair_open(&p);
    message_put(&p.out, &(struct message){.type = MESSAGE_JOB,
                                          .job = {.tag = "t", .stdin_fd = open("/", O_RDONLY)}});
    message_put(&p.out, &(struct message){.type = MESSAGE_RELOADED,
                                          .reloaded = {.text_fd = open("/", O_RDONLY)}});
    assert_int_equal(proto_flush(&p.out, p.from), 0);
    assert_int_equal(proto_recv(&p.in, p.to), 1);
    assert_int_equal(message_get_order(&p.in, &m), -1); /* a job of no tasks */
    pair_close(&p);
    assert_int_equal(open_files(), files);
}

/* Stands before the C library's: a kernel that writes a piece at a time. */
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return syscall(SYS_pwrite64, fd, p, MIN(n, 1000), at);
}

static void a_long_input_is_written_in_pieces(void **state)
{
    static char text[9000], back[sizeof text];
    const size_t size = 3500;

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i % 251);
    int fd = input_memory("test", text, size);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, back, sizeof back), size);
    assert_memory_equal(text, back, size);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_arrives),
        cmocka_unit_test(result_arrives),
        cmocka_unit_test(a_long_input_is_written_in_pieces),
        cmocka_unit_test(small_messages_arrive_in_order),
        cmocka_unit_test(largest_messages_fit),
        cmocka_unit_test(descriptors_go_with_their_messages),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(message_that_is_too_long_is_refused),
        cmocka_unit_test(descriptor_of_a_refused_message_is_closed),
    };

    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
