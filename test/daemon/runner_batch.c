/*
 * runner_batch.c - many tasks a process: verdict lines, and what follows from their absence.
 */
#include "runner_rig.h"

#include "base/task.h"
#include "runner/answer.h"
#include "runner/capture.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

static uint32_t send_batch(struct rig *r, const char *tag, const char *lines, const uint64_t *ids,
                           uint32_t count)
{
    struct message_job j;

    rig_fill(r, &j, tag);
    j.stdin_fd = rig_memfd(lines, strlen(lines));
    j.ids = ids;
    j.count = count;
    uint32_t number = rig_put(r, &j);
    rig_flush(r);
    return number;
}

/* The only result of a task in a job that has ended. */
static const struct rig_report *result_of(const struct rig *r, uint32_t job, uint64_t id)
{
    const struct rig_report *found = NULL;

    for (size_t i = 0; i < r->count; i++) {
        const struct rig_report *p = &r->reports[i];
        if (p->m.type == MESSAGE_RESULT && p->m.number == job && p->m.result.id == id) {
            assert_null(found);
            found = p;
        }
    }
    assert_non_null(found);
    return found;
}

static void check(const struct rig_report *p, enum task_outcome outcome, int exit_code,
                  bool permanent, int64_t after_ms, const char *error)
{
    assert_int_equal(p->m.result.outcome, outcome);
    assert_int_equal(p->m.result.exit_code, exit_code);
    assert_int_equal(p->m.result.permanent, permanent);
    assert_int_equal(p->m.result.retry_after_ms, after_ms);
    if (error)
        assert_string_equal(p->error, error);
    else
        assert_null(p->error);
}

static const uint64_t ids[] = {1, 2, 3, 4, 5, 6};

static void verdicts_decide_task_by_task(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: cat, batch: 10}\n", 2);
    uint32_t job = send_batch(
        &r, "t",
        "{\"id\":1,\"result\":\"done\"}\n"
        " {\"result\":\"retry\", \"id\":2, \"after\":\"10m\", \"error\":\"\\u00e9 busy\"} \n"
        "{\"id\":3,\"result\":\"retry\"}\n"
        "{\"id\":4,\"result\":\"fail\",\"error\":\"no such mailbox\"}\r\n"
        "{\"id\":5,\"result\":\"fail\"}\n"
        /* no newline at the end */
        "{\"id\":6,\"result\":\"done\",\"error\":null}",
        ids, 6);
    rig_wait(&r, MESSAGE_ENDED, job);
    assert_int_equal(rig_count(&r, MESSAGE_RESULT), 6);
    check(result_of(&r, job, 1), OUTCOME_DONE, -1, false, -1, NULL);
    check(result_of(&r, job, 2), OUTCOME_VERDICT, -1, false, 600000,
          "asked to wait 10m: \xc3\xa9 busy");
    check(result_of(&r, job, 3), OUTCOME_VERDICT, -1, false, -1, "the handler said retry");
    check(result_of(&r, job, 4), OUTCOME_VERDICT, -1, true, -1, "no such mailbox");
    check(result_of(&r, job, 5), OUTCOME_VERDICT, -1, true, -1, "the handler said fail");
    check(result_of(&r, job, 6), OUTCOME_DONE, -1, false, -1, NULL);
    rig_close(&r);
}

static void tasks_without_verdict_follow_the_process(void **state)
{
    (void)state;
    static const char one[] = "{\"id\":2,\"result\":\"done\"}\n";
    struct rig r;

    rig_open(&r,
             "defaults: {batch: 10}\n"
             "handlers:\n"
             "  ok: {run: cat}\n"
             "  bad: {run: 'cat; echo why >&2; exit 65'}\n"
             "  gone: {run: 'cat; exit 127'}\n"
             "  slow: {run: 'cat; sleep 1000', timeout: 2s}\n"
             "  killed: {run: 'cat; kill -9 $$'}\n",
             16);
    uint32_t ok = send_batch(&r, "ok", one, ids, 3), bad = send_batch(&r, "bad", one, ids, 3),
             gone = send_batch(&r, "gone", one, ids, 3), slow = send_batch(&r, "slow", one, ids, 3),
             killed = send_batch(&r, "killed", one, ids, 3);
    for (uint32_t job = ok; job <= killed; job++) {
        rig_wait(&r, MESSAGE_ENDED, job);
        check(result_of(&r, job, 2), OUTCOME_DONE, -1, false, -1, NULL);
    }
    check(result_of(&r, ok, 1), OUTCOME_DONE, 0, false, -1, NULL);
    check(result_of(&r, ok, 3), OUTCOME_DONE, 0, false, -1, NULL);
    check(result_of(&r, bad, 1), OUTCOME_EXIT, 65, false, -1, "exit status 65: why");
    assert_string_equal(result_of(&r, bad, 1)->output, "why\n");
    assert_string_equal(result_of(&r, bad, 3)->output, "why\n");
    check(result_of(&r, gone, 3), OUTCOME_EXIT, 127, false, -1, "exit status 127"); /* it did run */
    check(result_of(&r, slow, 1), OUTCOME_TIMEOUT, -1, false, -1, "timed out after 2s (TERM)");
    check(result_of(&r, killed, 1), OUTCOME_SIGNAL, -1, false, -1, "signal 9 (Killed)");
    rig_close(&r);
}

static void permanent_status_is_that_of_a_task_that_was_alone(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  bad: {run: 'cat; exit 65', batch: 10}\n", 2);
    uint32_t two = send_batch(&r, "bad", "{\"id\":2,\"result\":\"done\"}\n", ids, 2),
             one = send_batch(&r, "bad", "", ids, 1);
    rig_wait(&r, MESSAGE_ENDED, two);
    rig_wait(&r, MESSAGE_ENDED, one);
    check(result_of(&r, one, 1), OUTCOME_EXIT, 65, true, -1, "exit status 65");
    check(result_of(&r, two, 1), OUTCOME_EXIT, 65, false, -1, "exit status 65");
    rig_close(&r);
}

static void verdict_is_reported_while_the_process_runs(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: 'cat; sleep 1000', batch: 10}\n", 2);
    uint32_t job = send_batch(&r, "t", "{\"id\":1,\"result\":\"done\"}\n", ids, 2);
    rig_wait(&r, MESSAGE_RESULT, job);
    assert_null(rig_find(&r, MESSAGE_ENDED, job));
    link_send_kill(r.link, job, MESSAGE_KILL_SHUTDOWN);
    rig_wait(&r, MESSAGE_ENDED, job);
    check(result_of(&r, job, 1), OUTCOME_DONE, -1, false, -1, NULL);
    check(result_of(&r, job, 2), OUTCOME_KILLED, -1, false, -1, "dqd was shut down");
    rig_close(&r);
}

static void what_is_no_verdict_is_output(void **state)
{
    (void)state;
    static const char junk[] = "hello\n"
                               "\n"
                               "{\"id\":1}\n"
                               "{\"id\":1,\"result\":\"DONE\"}\n"
                               "{\"id\":\"1\",\"result\":\"done\"}\n"
                               "{\"id\":1,\"result\":\"done\",\"extra\":1}\n"
                               "{\"id\":1,\"result\":\"done\",\"after\":\"1s\"}\n"
                               "{\"id\":1,\"result\":\"retry\",\"after\":\"soon\"}\n"
                               "{\"id\":-1,\"result\":\"done\"}\n"
                               "{\"id\":0,\"result\":\"done\"}\n"
                               "{\"id\":99,\"result\":\"done\"}\n" /* not of this batch */
                               "[1]\n"
                               "{\"id\":1,\"result\":\"done\"} {\"id\":2,\"result\":\"done\"}\n"
                               "{\"id\":3,\"result\":\"fail\",\"error\":\"first\"}\n"
                               "{\"id\":3,\"result\":\"done\"}\n"; /* the first one counts */
    static const char kept[] = "{\"id\":3,\"result\":\"done\"}\n",
                      failed[] = "exit status 9: {\"id\":3,\"result\":\"done\"}";
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: 'cat; exit 9', batch: 10}\n", 2);
    uint32_t job = send_batch(&r, "t", junk, ids, 3);
    rig_wait(&r, MESSAGE_ENDED, job);
    assert_int_equal(rig_count(&r, MESSAGE_RESULT), 3);
    check(result_of(&r, job, 1), OUTCOME_EXIT, 9, false, -1, failed);
    check(result_of(&r, job, 2), OUTCOME_EXIT, 9, false, -1, failed);
    check(result_of(&r, job, 3), OUTCOME_VERDICT, -1, true, -1, "first");
    const char *output = result_of(&r, job, 1)->output;
    size_t len = strlen(output);
    assert_memory_equal(output, junk, 60);
    assert_string_equal(output + len - strlen(kept), kept);
    assert_null(strstr(output, "first"));
    rig_close(&r);
}

/* One line for task 2 of three, of a process that ends with status 0. */
struct off {
    const char *line;
    bool all;        /* it names nobody: no task may be called done */
    const char *why; /* the error begins so */
};

/* clang-format off */
static const struct off off_rows[] = {
    {"{\"id\":2,\"result\":\"fail\",\"error\":\"\\u0000\"}", false, "unreadable answer ("},
    {"{\"id\":2,\"result\":\"fail\",\"error\":\"\\ud800\"}", false, "unreadable answer ("},
    {"{\"id\":2,\"result\":\"fail\",\"error\":\"caf\xe9\"}", false, "unreadable answer ("},
    {"{\"id\":2,\"result\":\"fail\",\"reason\":\"x\"}", false, "unreadable answer ("},
    {"{\"id\":2,\"result\":\"retry\",\"after\":\"4000d\"}", false, "unreadable answer ("},
    {"{\"id\":\"2\",\"result\":\"fail\"}", false, "unreadable answer ("},
    {"{'id': 2, 'result': 'fail'}", false, "unreadable answer ("},
    {"INFO {\"id\":2,\"result\":\"fail\"}", false, "unreadable answer ("},
    {"{\"id\":2,\"result\":\"fail\",\"of\":{\"id\":99}}", false, "unreadable answer ("},
    {"{\"id\":2,\"result\":\"no\"}\n{\"id\":2,\"result\":\"snooze\"}", false,
     "unreadable answer (\"result\" is neither"},
    {"{\"id\":99,\"result\":\"fail\"}", true, "unreadable answer (99 is not a task of this process): {\"id\":99,"},
    {"{\"result\":\"fail\"}", true, "unreadable answer ("},
    {"{\"id\":2,\"result\":\"fail\"} {\"id\":3,\"result\":\"fail\"}", true, "unreadable answer ("},
};
/* clang-format on */

static void line_off_the_letter_fails_its_task(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: cat, batch: 10}\n", 2);
    for (size_t i = 0; i < sizeof off_rows / sizeof off_rows[0]; i++) {
        const struct off *row = &off_rows[i];
        uint32_t job = send_batch(&r, "t", row->line, ids, 3);

        rig_wait(&r, MESSAGE_ENDED, job);
        for (uint64_t id = 1; id <= 3; id++) {
            const struct rig_report *p = result_of(&r, job, id);
            if (id != 2 && !row->all) {
                check(p, OUTCOME_DONE, 0, false, -1, NULL);
                continue;
            }
            if (p->m.result.outcome != OUTCOME_VERDICT)
                fail_msg("%s: task %d ended as %s", row->line, (int)id,
                         task_outcome_name((int)p->m.result.outcome));
            check(p, OUTCOME_VERDICT, 0, false, -1, p->error);
            if (strncmp(p->error, row->why, strlen(row->why)) != 0)
                fail_msg("%s: %s", row->line, p->error);
        }
    }
    rig_close(&r);
}

static void verdict_too_long_to_read_fails_its_task(void **state)
{
    (void)state;
    struct rig r;

    rig_open(
        &r,
        "defaults: {batch: 10}\nhandlers:\n"
        "  first: {run: 'printf \"{\\\"id\\\":2,\\\"result\\\":\\\"fail\\\",\\\"error\\\":\\\"%020000d\\\"}\" 7'}\n"
        "  last: {run: 'printf \"{\\\"result\\\":\\\"fail\\\",\\\"error\\\":\\\"%020000d\\\",\\\"id\\\":2}\" 7'}\n",
        2);
    uint32_t job = send_batch(&r, "first", "", ids, 3);
    rig_wait(&r, MESSAGE_ENDED, job);
    check(result_of(&r, job, 1), OUTCOME_DONE, 0, false, -1, NULL);
    const struct rig_report *p = result_of(&r, job, 2);
    assert_int_equal(p->m.result.outcome, OUTCOME_VERDICT);
    assert_non_null(strstr(
        p->error, "(longer than 16384 bytes): {\"id\":2,\"result\":\"fail\",\"error\":\"0000"));
    assert_true(strlen(p->error) < 400);
    job = send_batch(&r, "last", "", ids, 3); /* its beginning does not say whose it is */
    rig_wait(&r, MESSAGE_ENDED, job);
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(result_of(&r, job, id)->m.result.outcome, OUTCOME_VERDICT);
    rig_close(&r);
}

static void proper_verdict_after_an_unreadable_line_counts(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: cat, batch: 10}\n", 2);
    uint32_t job = send_batch(&r, "t",
                              "{\"level\":\"info\",\"id\":1,\"msg\":\"sending\"}\n"
                              "{\"level\":\"info\",\"msg\":\"started\"}\n"
                              "{\"id\":1,\"result\":\"done\"}\n"
                              "{\"id\":2,\"result\":\"fail\",\"error\":\"full\"}\n"
                              "{\"id\":2,\"result\":\"done\",\"again\":true}\n",
                              ids, 2);
    rig_wait(&r, MESSAGE_ENDED, job);
    check(result_of(&r, job, 1), OUTCOME_DONE, -1, false, -1, NULL);
    check(result_of(&r, job, 2), OUTCOME_VERDICT, -1, true, -1, "full");
    rig_close(&r);
}

static void batch_handler_gets_its_lines_and_its_size(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n  t: {run: 'wc -l >&2; env | grep ^DQ_ | sort >&2; exit 1', batch: 10}\n",
             2);
    uint32_t job = send_batch(&r, "t", "{}\n{}\n", ids, 2);
    assert_string_equal(rig_end(&r, job)->output, "2\nDQ_BATCH=2\nDQ_REPLY_FD=3\nDQ_TAG=t\n");
    job = send_batch(&r, "t", "{}\n", ids, 1); /* a batch of one is a batch */
    assert_string_equal(rig_end(&r, job)->output, "1\nDQ_BATCH=1\nDQ_REPLY_FD=3\nDQ_TAG=t\n");
    rig_close(&r);
}

static void largest_batch_passes(void **state)
{
    (void)state;
    const uint32_t n = 5000;
    uint64_t *many = calloc(n, sizeof *many);
    struct rig r;

    rig_open(
        &r,
        "handlers:\n  t: {run: 'seq -f \"{\\\"id\\\":%.0f,\\\"result\\\":\\\"done\\\"}\" 5000', batch: 5000}\n",
        2);
    for (uint32_t i = 0; i < n; i++)
        many[i] = n - i;
    uint32_t job = send_batch(&r, "t", "", many, n);
    rig_wait(&r, MESSAGE_ENDED, job);
    assert_int_equal(rig_count(&r, MESSAGE_RESULT), n);
    for (size_t i = 0; i < r.count; i++)
        if (r.reports[i].m.type == MESSAGE_RESULT)
            assert_int_equal(r.reports[i].m.result.outcome, OUTCOME_DONE);
    free(many);
    rig_close(&r);
}

/* ---- the parts */

/* The CPU time of a line with 2,000 ids in a batch of n tasks, none of which it names. */
static int64_t cost_of_line(uint32_t n)
{
    uint64_t *many = calloc(n, sizeof *many);
    struct buf line = BUF_INIT;
    struct timespec begin, end;
    struct verdict v;

    for (uint32_t i = 0; i < n; i++)
        many[i] = 5000 - i;
    for (int i = 0; i < 2000; i++)
        buf_printf(&line, "x \"id\":%d", 10000 + i);
    struct message_job order = {.tag = "t", .key = "", .ids = many, .count = n, .stdin_fd = -1};
    struct job *j = job_new(1, &order, 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < 10; i++)
        assert_false(answer_line(j, NULL, line.data, line.len, false, false, &v));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    job_free(j);
    buf_done(&line);
    free(many);
    return (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
}

static void large_batch_does_not_make_its_lines_dear(void **state)
{
    int64_t small = INT64_MAX, large = INT64_MAX;

    (void)state;
    for (int i = 0; i < 5; i++) {
        small = MIN(small, cost_of_line(10));
        large = MIN(large, cost_of_line(5000));
    }
    print_message("# a line costs %.1f times as much\n", (double)large / (double)small);
    assert_true(large < 10 * small);
}

static void tail_is_the_same_however_it_comes(void **state)
{
    (void)state;
    char all[1000];

    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)('a' + i % 23);
    for (size_t limit = 0; limit < 40; limit++) {
        for (size_t piece = 1; piece < 60; piece++) {
            struct capture c;
            size_t len, total = 0;
            capture_init(&c, limit);
            while (total + piece <= sizeof all && total < 200) {
                capture_add(&c, all + total, piece);
                total += piece;
            }
            const char *tail = capture_tail(&c, &len);
            assert_int_equal(len, total < limit ? total : limit);
            assert_memory_equal(tail, all + total - len, len);
            capture_add(&c, all + total, 3); /* goes on after it was looked at */
            tail = capture_tail(&c, &len);
            assert_memory_equal(tail, all + total + 3 - len, len);
            capture_done(&c);
        }
    }
}

struct collected {
    char text[CAPTURE_LINE_MAX * 4];
    size_t len, whole, pieces;
};

static void collect(void *ctx, const char *line, size_t len, bool whole)
{
    struct collected *c = ctx;

    assert_true(len <= CAPTURE_LINE_MAX);
    memcpy(c->text + c->len, line, len);
    c->len += len;
    c->whole += whole;
    c->pieces += !whole;
    if (whole)
        c->text[c->len++] = '|';
}

static void lines_are_put_together_from_pieces(void **state)
{
    (void)state;
    static struct collected c;
    static char text[CAPTURE_LINE_MAX * 3];
    struct lines l = {0};

    for (size_t piece = 1; piece < 12; piece++) {
        static const char in[] = "one\n\ntwo\nlonger line\nlast";
        memset(&c, 0, sizeof c);
        for (size_t at = 0; at < sizeof in - 1; at += piece)
            lines_add(&l, in + at, sizeof in - 1 - at < piece ? sizeof in - 1 - at : piece, collect,
                      &c);
        lines_finish(&l, collect, &c);
        assert_string_equal(c.text, "one||two|longer line|last|");
    }
    memset(&c, 0, sizeof c);
    memset(text, 'x', sizeof text);
    /* over-long: no part of it is a line, what follows is */
    text[2 * CAPTURE_LINE_MAX + 10] = '\n';
    text[2 * CAPTURE_LINE_MAX + 20] = '\n';
    text[CAPTURE_LINE_MAX * 2 + 21 + CAPTURE_LINE_MAX - 30] = '\n';
    lines_add(&l, text, sizeof text, collect, &c);
    lines_finish(&l, collect, &c);
    assert_int_equal(c.pieces, 3);
    assert_int_equal(c.whole, 3);
    lines_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_decide_task_by_task),
        cmocka_unit_test(tasks_without_verdict_follow_the_process),
        cmocka_unit_test(permanent_status_is_that_of_a_task_that_was_alone),
        cmocka_unit_test(verdict_is_reported_while_the_process_runs),
        cmocka_unit_test(what_is_no_verdict_is_output),
        cmocka_unit_test(line_off_the_letter_fails_its_task),
        cmocka_unit_test(verdict_too_long_to_read_fails_its_task),
        cmocka_unit_test(proper_verdict_after_an_unreadable_line_counts),
        cmocka_unit_test(batch_handler_gets_its_lines_and_its_size),
        cmocka_unit_test(largest_batch_passes),
        cmocka_unit_test(large_batch_does_not_make_its_lines_dear),
        cmocka_unit_test(tail_is_the_same_however_it_comes),
        cmocka_unit_test(lines_are_put_together_from_pieces),
    };

    return cmocka_run_group_tests_name("runner: batch", tests, NULL, NULL);
}
