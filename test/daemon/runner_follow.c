/*
 * runner_follow.c - the output of a job that runs: what there is already, then what is new, and the
 * rest before its result; nothing twice, and what was lost can be seen.
 */
#include "runner_rig.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ask(struct rig *r, uint32_t job, enum message_follow_what what)
{
    link_send_follow(r->link, job, what);
    rig_flush(r);
    rig_ping(r);
}

/* What the chunks of a job say, each where it belongs; what is missing is dots. */
static struct buf heard(const struct rig *r, uint32_t job)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; i < r->count; i++) {
        const struct rig_report *p = &r->reports[i];
        if (p->m.type != MESSAGE_CHUNK || p->m.number != job)
            continue;
        assert_true(p->m.chunk.start >= b.len);
        while (b.len < p->m.chunk.start)
            buf_chr(&b, '.');
        buf_add(&b, p->output, p->m.chunk.size);
    }
    buf_add(&b, "", 1);
    return b;
}

static void hears(const struct rig *r, uint32_t job, const char *want)
{
    struct buf b = heard(r, job);

    assert_string_equal(b.data, want);
    buf_done(&b);
}

/* The handler goes on when the file is there. */
static void go(const struct rig *r, const char *name)
{
    FILE *f = fopen(rig_path(r, name), "w");

    assert_non_null(f);
    fclose(f);
}

#define STEPS                                                                                      \
    "handlers:\n"                                                                                  \
    "  t: {run: 'echo one; touch @DIR@/1; until [ -e @DIR@/a ]; do sleep 0.01; done;"              \
    " echo two; touch @DIR@/2; until [ -e @DIR@/b ]; do sleep 0.01; done; echo three'}\n"

static void until_there(const struct rig *r, const char *name)
{
    while (access(rig_path(r, name), F_OK) != 0)
        usleep(10000);
}

/* Opens the rig and follows a job that has written "one". */
static uint32_t follow_steps(struct rig *r)
{
    rig_open(r, STEPS, 1);
    uint32_t job = rig_send(r, "t");

    rig_wait(r, MESSAGE_STARTED, job);
    until_there(r, "1");
    ask(r, job, MESSAGE_FOLLOW_BEGIN);
    return job;
}

static void output_comes_from_the_tail_on_and_ends_before_the_result(void **state)
{
    (void)state;
    struct rig r;
    uint32_t job = follow_steps(&r);

    hears(&r, job, "one\n");
    ask(&r, job, MESSAGE_FOLLOW_MORE);
    hears(&r, job, "one\n");
    go(&r, "a");
    until_there(&r, "2");
    ask(&r, job, MESSAGE_FOLLOW_MORE);
    hears(&r, job, "one\ntwo\n");
    go(&r, "b");
    rig_end(&r, job);
    hears(&r, job, "one\ntwo\nthree\n");
    const struct rig_report *last = &r.reports[r.count - 1];
    assert_int_equal(last->m.type, MESSAGE_ENDED);
    assert_int_equal(last[-1].m.type, MESSAGE_RESULT);
    assert_int_equal(last[-2].m.type, MESSAGE_CHUNK);
    rig_close(&r);
}

static void a_job_that_is_not_followed_any_more_sends_nothing(void **state)
{
    (void)state;
    struct rig r;
    uint32_t job = follow_steps(&r);

    ask(&r, job, MESSAGE_FOLLOW_END);
    size_t chunks = rig_count(&r, MESSAGE_CHUNK);
    ask(&r, job, MESSAGE_FOLLOW_MORE);
    ask(&r, job + 1, MESSAGE_FOLLOW_BEGIN); /* there is no such job */
    go(&r, "a");
    go(&r, "b");
    const struct rig_report *end = rig_end(&r, job);
    assert_int_equal(rig_count(&r, MESSAGE_CHUNK), chunks);
    assert_memory_equal(end->output, "one\ntwo\nthree\n", 14);
    rig_close(&r);
}

/* As soon as it is asked for, also before the start; and what comes too fast is lost from the
 * front. */
static void a_flood_is_cut_and_its_place_is_known(void **state)
{
    (void)state;
    enum { BYTES = 3000000 };
    struct rig r;
    char yaml[200];

    snprintf(yaml, sizeof yaml,
             "handlers:\n  t: {run: 'head -c %d /dev/zero | tr \"\\0\" x; echo'}\n", BYTES);
    rig_open(&r, yaml, 1);
    struct message_job j;
    rig_fill(&r, &j, "t");
    uint32_t job = rig_put(&r, &j);
    link_send_follow(r.link, job, MESSAGE_FOLLOW_BEGIN);
    rig_flush(&r);
    rig_end(&r, job);
    struct buf b = heard(&r, job);
    assert_int_equal(b.len, BYTES + 2);
    assert_int_equal(b.data[0], '.');
    assert_int_equal(b.data[BYTES], '\n');
    assert_memory_equal(b.data + BYTES - 3, "xxx", 3);
    assert_true(rig_count(&r, MESSAGE_CHUNK) <= 2 + MESSAGE_FRESH_MAX / MESSAGE_PIECE_MAX);
    buf_done(&b);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_comes_from_the_tail_on_and_ends_before_the_result),
        cmocka_unit_test(a_job_that_is_not_followed_any_more_sends_nothing),
        cmocka_unit_test(a_flood_is_cut_and_its_place_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
