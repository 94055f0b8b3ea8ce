/*
 * runner_answer.c - what handlers say on DQ_REPLY_FD, however they say it.
 */
#include "runner_rig.h"

#include "base/buf.h"
#include "base/task.h"
#include "base/when.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The end of a handler: a shell script. */
struct row {
    const char *script;
    enum task_outcome outcome;
    int exit_code, signal;
    bool permanent;
    int64_t after_ms;
    const char *error; /* NULL: none; the error begins so */
};

#define DONE "{\"result\":\"done\"}"
#define RETRY "{\"result\":\"retry\",\"after\":\"2m\"}"
#define FAIL "{\"result\":\"fail\",\"error\":\"no such \\u00e9\"}"

/* clang-format off */
static const struct row rows[] = {
    {"echo '" DONE "' >&\"$DQ_REPLY_FD\"", OUTCOME_DONE, 0, 0, false, -1, NULL},
    {"printf '" DONE "' >&3", OUTCOME_DONE, 0, 0, false, -1, NULL}, /* no newline */
    {"echo '" RETRY "' >&3", OUTCOME_VERDICT, 0, 0, false, 120000, "asked to wait 2m"},
    {"echo '" RETRY "' >&3; echo HTTP 429; exit 75",
     OUTCOME_VERDICT, 75, 0, false, 120000, "asked to wait 2m: HTTP 429"},
    {"echo '{\"result\":\"retry\"}' >&3", OUTCOME_VERDICT, 0, 0, false, -1, "the handler said retry"},
    {"echo '{\"result\":\"retry\",\"after\":\"0s\"}' >&3", OUTCOME_VERDICT, 0, 0, false, 0, "asked to wait 0s"},
    {"echo '{\"result\":\"fail\",\"error\":\"\"}' >&3; echo why",
     OUTCOME_VERDICT, 0, 0, true, -1, "the handler said fail: why"},
    {"echo '" FAIL "' >&3; echo x", OUTCOME_VERDICT, 0, 0, true, -1, "no such \xc3\xa9"},
    {"echo '{\"result\":\"snooze\",\"after\":\"90s\",\"error\":\"closed\"}' >&3; exit 1",
     OUTCOME_SNOOZED, 1, 0, false, 90000,
     "snoozed for 1m30s: closed"},
    /* the exit status and the signal */
    {"echo '" DONE "' >&3; exit 3", OUTCOME_DONE, 3, 0, false, -1, NULL},
    {"echo '" DONE "' >&3; exit 127", OUTCOME_DONE, 127, 0, false, -1, NULL},
    {"echo '" RETRY "' >&3; exit 65", OUTCOME_VERDICT, 65, 0, false, 120000, "asked to wait 2m"},
    {"echo '" DONE "' >&3; kill -9 $$", OUTCOME_SIGNAL, -1, 9, false, -1, "signal 9"},
    {"echo '" DONE "' >&3; sleep 1000", OUTCOME_TIMEOUT, -1, 15, false, -1, "timed out after 2s"},
    {"echo x; exit 65", OUTCOME_EXIT, 65, 0, true, -1, "exit status 65: x"},
    /* the last line counts */
    {"echo '" DONE "' >&3; echo '" FAIL "' >&3", OUTCOME_VERDICT, 0, 0, true, -1, "no such"},
    {"echo '" FAIL "' >&3; echo '" DONE "' >&3; exit 1", OUTCOME_DONE, 1, 0, false, -1, NULL},
    {"echo oops >&3; echo '" DONE "' >&3", OUTCOME_DONE, 0, 0, false, -1, NULL},
    {"echo '" DONE "' >&3; echo >&3", OUTCOME_DONE, 0, 0, false, -1, NULL},
    {"echo early >&3; echo '" DONE "' >&3; echo oops >&3; echo again >&3", OUTCOME_VERDICT, 0, 0, false, -1,
     "unreadable answer (not a JSON object: \"{\" expected at column 1): oops"}, /* the first since */
    {"printf '" DONE "%20000s\\n' >&3", OUTCOME_VERDICT, 0, 0, false, -1,
     "unreadable answer (longer than 16384 bytes)"},
    {"printf '" DONE "\\n{\"result\":\"fa' >&3", OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer ("},
    {"echo oops >&3; exit 65", OUTCOME_VERDICT, 65, 0, false, -1, "unreadable answer ("},
    {"echo oops >&3; kill -9 $$", OUTCOME_SIGNAL, -1, 9, false, -1, "signal 9"},
    /* what is not an answer */
    {"echo '{\"result\":\"done\",\"id\":4711}' >&3", OUTCOME_VERDICT, 0, 0, false, -1,
     "unreadable answer (4711 is not the task of this process): {\"result\":\"done\",\"id\":4711}"},
    {"echo '{\"result\":\"retry\",\"after\":\"400d\"}' >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (\"after\" is above 366d)"},
    {"echo '{\"result\":\"retry\",\"after\":\"-2m\"}' >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (duration \"-2m\":"},
    {"echo '{\"result\":\"retry\",\"after\":\"120\"}' >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (duration \"120\":"},
    {"echo '{\"result\":\"retry\",\"after\":120}' >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (\"after\" must be"},
    {"echo '{\"result\":\"snooze\"}' >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (\"snooze\" needs \"after\")"},
    {"echo '{\"result\":\"done\",\"after\":\"1s\"}' >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (\"after\" is allowed only"},
    {"echo '{\"result\":\"DONE\"}' >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (\"result\" is neither"},
    /* however it is written */
    {"printf '{\"result\":\"re' >&3; sleep 0.3; printf 'try\",\"after\":\"2m\"}\\n' >&3",
     OUTCOME_VERDICT, 0, 0, false, 120000, "asked to wait 2m"},
    {"sh -c 'printf \"{\\\"result\\\":\" >&3'; sh -c 'echo \\\"done\\\"} >&3'; exit 1",
     OUTCOME_DONE, 1, 0, false, -1, NULL},
    {"sh -c 'echo \"$1\" >&3' - '" RETRY "' & wait; sh -c 'echo \"$1\" >&3' - '" FAIL "'",
     OUTCOME_VERDICT, 0, 0, true, -1, "no such"},
    {"exec 4>&3 3>&-; echo '" DONE "' >&4; exec 4>&-; sleep 0.3; exit 1", OUTCOME_DONE, 1, 0, false, -1, NULL},
    {"exec 3>&-; sleep 0.3; exit 1", OUTCOME_EXIT, 1, 0, false, -1, "exit status 1"},
    {"echo '" DONE "' >/dev/fd/3; exit 1", OUTCOME_DONE, 1, 0, false, -1, NULL},
    {"head -c 10000000 /dev/zero | tr '\\0' x >&3",
     OUTCOME_VERDICT, 0, 0, false, -1, "unreadable answer (longer than 16384 bytes): xxx"},
    {"yes '" FAIL "' | head -c 10000000 >&3; echo >&3; echo '" DONE "' >&3; exit 1",
     OUTCOME_DONE, 1, 0, false, -1, NULL},
    /* output stays what it was */
    {"echo '" FAIL "'", OUTCOME_DONE, 0, 0, false, -1, NULL},
};
/* clang-format on */
#define ROWS (sizeof rows / sizeof rows[0])

static void the_last_answer_decides(void **state)
{
    (void)state;
    struct buf yaml = BUF_INIT;
    struct rig r;
    char tag[16];

    buf_str(&yaml, "defaults: {timeout: 60s}\nhandlers:\n");
    for (size_t i = 0; i < ROWS; i++) {
        buf_printf(&yaml, "  t%zu:\n    run: |\n      ", i);
        buf_str(&yaml, rows[i].script);
        buf_str(&yaml, rows[i].outcome == OUTCOME_TIMEOUT ? "\n    timeout: 2s\n" : "\n");
    }
    rig_open(&r, yaml.data, 4);
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        snprintf(tag, sizeof tag, "t%zu", i);
        const struct rig_report *p = rig_end(&r, rig_send(&r, tag));
        const struct message_result *m = &p->m.result;

        print_message("# %s: %s, %s\n", row->script, task_outcome_name((int)m->outcome),
                      p->error ? p->error : "-");
        assert_int_equal(m->outcome, row->outcome);
        assert_int_equal(m->exit_code, row->exit_code);
        assert_int_equal(m->signal, row->signal);
        assert_int_equal(m->permanent, row->permanent);
        assert_int_equal(m->retry_after_ms, row->after_ms);
        if (row->error)
            assert_int_equal(strncmp(p->error, row->error, strlen(row->error)), 0);
        else
            assert_null(p->error);
    }
    rig_close(&r);
    buf_done(&yaml);
}

/* What leaves the session is not the handler any more. */
static void nobody_answers_after_the_end(void **state)
{
    (void)state;
    struct rig r;

    rig_open(
        &r,
        "handlers:\n"
        "  t: {run: ': \"$(setsid -f sh -c \"exec >&- 2>&-; trap : PIPE; until [ -e @DIR@/over ]; do sleep 0.02; done;"
        " echo {} >&3; echo \\$? >@DIR@/status\")\"'}\n"
        "  next: {run: 'sleep 0.3; exit 1'}\n",
        2);
    uint32_t job = rig_send(&r, "t");
    assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_DONE);
    size_t files = rig_count_proc(&r, "fd");
    job = rig_send(&r, "next");
    FILE *over = fopen(rig_path(&r, "over"), "w");
    fclose(over);
    assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_EXIT);
    char *status = rig_read_file(&r, "status");
    assert_string_not_equal(status, "0\n");
    assert_int_equal(rig_count_proc(&r, "fd"), files);
    free(status);
    rig_close(&r);
}

/* One line per task of the batch comes from stdin. */
static const uint64_t ids[] = {1, 2, 3, 4};

static const struct rig_report *result_of(struct rig *r, uint32_t job, uint64_t id)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->reports[i].m.type == MESSAGE_RESULT && r->reports[i].m.number == job &&
            r->reports[i].m.result.id == id)
            return &r->reports[i];
    fail_msg("no result of task %d", (int)id);
    return NULL;
}

static void a_batch_that_replies_prints_no_verdicts(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"id\":1,\"result\":\"retry\",\"after\":\"3s\",\"error\":\"busy\"}\n"
        "{\"id\":1,\"result\":\"done\"}\n" /* the first one counts */
        "{\"id\":2,\"result\":\"snooze\",\"after\":\"1h\"}\n"
        "{\"result\":\"done\"}\n"
        "{\"id\":4,\"result\":\"done\"}\n";
    struct message_job m;
    struct rig r;

    rig_open(&r,
             "handlers:\n  t: {run: 'echo \"{\\\"id\\\":4}\""
             "; cat >&3; echo \"{\\\"id\\\":3,\\\"result\\\":\\\"done\\\"}\"', batch: 10}\n",
             2);
    rig_fill(&r, &m, "t");
    m.stdin_fd = rig_memfd(lines, strlen(lines));
    m.ids = ids;
    m.count = 4;
    uint32_t job = rig_put(&r, &m);
    rig_wait(&r, MESSAGE_ENDED, job);
    assert_int_equal(rig_count(&r, MESSAGE_RESULT), 4);
    assert_int_equal(result_of(&r, job, 1)->m.result.retry_after_ms, 3000);
    assert_string_equal(result_of(&r, job, 1)->error, "asked to wait 3s: busy");
    assert_int_equal(result_of(&r, job, 2)->m.result.outcome, OUTCOME_SNOOZED);
    assert_string_equal(result_of(&r, job, 2)->error, "snoozed for 1h");
    assert_int_equal(result_of(&r, job, 4)->m.result.outcome, OUTCOME_DONE);
    assert_int_equal(result_of(&r, job, 3)->m.result.outcome, OUTCOME_VERDICT);
    assert_string_equal(result_of(&r, job, 3)->error,
                        "unreadable answer (\"id\" is missing): {\"result\":\"done\"}");
    assert_non_null(strstr(result_of(&r, job, 3)->output, "{\"id\":3,\"result\":\"done\"}"));
    rig_close(&r);
}

static void what_comes_before_a_reply_on_stdout_is_output(void **state)
{
    (void)state;
    struct message_job m;
    struct rig r;

    rig_open(
        &r,
        "handlers:\n  t: {run: 'echo \"{\\\"id\\\":2,\\\"result\\\":\\\"no\\\"}\"; echo \"{\\\"result\\\":1}\";"
        " sleep 0.3; echo \"{\\\"id\\\":1,\\\"result\\\":\\\"done\\\"}\" >&3', batch: 10}\n"
        "  oops: {run: 'echo oops >&3; echo again >&3', batch: 10}\n",
        2);
    for (int odd = 0; odd <= 1; odd++) {
        rig_fill(&r, &m, odd ? "oops" : "t");
        m.ids = ids;
        m.count = 2;
        uint32_t job = rig_put(&r, &m);
        rig_wait(&r, MESSAGE_ENDED, job);
        for (uint64_t id = 1; id <= 2; id++) {
            const struct rig_report *p = result_of(&r, job, id);

            assert_int_equal(p->m.result.outcome, odd ? OUTCOME_VERDICT : OUTCOME_DONE);
            if (odd) /* the first one is quoted */
                assert_string_equal(strrchr(p->error, ':'), ": oops");
        }
    }
    rig_close(&r);
}

/* The runner may find all that was written at once; stdout comes first then. */
static void what_follows_a_reply_on_stdout_is_output(void **state)
{
    (void)state;
    struct message_job m;
    struct rig r;

    rig_open(
        &r,
        "handlers:\n  t: {run: 'echo x; echo \"{\\\"id\\\":2,\\\"result\\\":\\\"done\\\"}\" >&3;"
        " echo \"{\\\"id\\\":1,\\\"result\\\":\\\"done\\\"}\"; exit 1', batch: 10}\n",
        8);
    for (int i = 0; i < 50; i++) {
        rig_fill(&r, &m, "t");
        m.ids = ids;
        m.count = 2;
        uint32_t job = rig_put(&r, &m);
        rig_wait(&r, MESSAGE_ENDED, job);
        assert_int_equal(result_of(&r, job, 2)->m.result.outcome, OUTCOME_DONE);
        assert_int_equal(result_of(&r, job, 1)->m.result.outcome, OUTCOME_EXIT);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_answer_decides),
        cmocka_unit_test(nobody_answers_after_the_end),
        cmocka_unit_test(a_batch_that_replies_prints_no_verdicts),
        cmocka_unit_test(what_comes_before_a_reply_on_stdout_is_output),
        cmocka_unit_test(what_follows_a_reply_on_stdout_is_output),
    };

    return cmocka_run_group_tests_name("runner: answers", tests, NULL, NULL);
}
