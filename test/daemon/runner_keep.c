/*
 * runner_keep.c - processes that stay: one job after another, and what becomes of those that do not
 * keep to it. The input of a job is a line "ID COMMAND" here, and the worker a shell that executes
 * the command: what lines have is for the poller and the handler to know.
 */
#include "runner_rig.h"

#include "base/buf.h"
#include "base/task.h"
#include "base/when.h"
#include "runner/keep.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKER                                                                                     \
    "    run: |\n"                                                                                 \
    "      say() { printf '{\"id\":%s,\"result\":\"%s\"}\\n' \"$1\" \"${2:-done}\" >&3; }\n"       \
    "      echo '{\"ready\":true}' >&3\n"                                                          \
    "      while read -r id cmd; do eval \"$cmd\"; done\n"
#define ONE "handlers:\n  t:\n    keep: 1\n    kill_grace: 100ms\n" WORKER

/* Sends a job with that command, of `count` lines; *ret_id is its first task. */
static uint32_t send_lines(struct rig *r, const char *tag, const char *cmd, uint32_t count,
                           uint64_t *ret_id)
{
    BUF_LOCAL struct buf text = BUF_INIT;
    uint64_t ids[10];
    struct message_job j;

    rig_fill(r, &j, tag);
    memcpy(ids, j.ids, sizeof *ids);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = ids[0] + i * 1000000;
        buf_printf(&text, "%llu %s\n", (unsigned long long)ids[i], cmd);
    }
    if (ret_id)
        *ret_id = ids[0];
    j.ids = ids;
    j.count = count;
    rig_input(&j, text.data, text.len);
    uint32_t number = rig_put(r, &j);
    rig_flush(r);
    return number;
}

static uint32_t do_in(struct rig *r, const char *tag, const char *cmd)
{
    return send_lines(r, tag, cmd, 1, NULL);
}

/* The process that does the job, which is done. */
static pid_t done_by(struct rig *r, uint32_t job)
{
    const struct rig_report *end = rig_end(r, job);

    if (end->m.result.outcome != OUTCOME_DONE)
        fail_msg("outcome %d: %s", (int)end->m.result.outcome, end->error ? end->error : "");
    assert_int_equal(end->m.result.exit_code, -1);
    return rig_wait(r, MESSAGE_STARTED, job)->m.started.pid;
}

static void a_process_does_one_task_after_another(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    uint32_t first = do_in(&r, "t", "echo one; say $id");
    pid_t pid = done_by(&r, first);
    for (int i = 0; i < 20; i++)
        assert_int_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    uint32_t job = do_in(&r, "t", "echo two; say $id retry"), waits = do_in(&r, "t", "say $id");
    const struct rig_report *end = rig_end(&r, job);
    assert_int_equal(end->m.result.outcome, OUTCOME_VERDICT);
    assert_string_equal(end->error, "the handler said retry: two");
    assert_string_equal(end->output, "two\n");
    assert_int_equal(done_by(&r, waits), pid);
    assert_string_equal(rig_end(&r, first)->output, "one\n");
    rig_close(&r);
    rig_until_gone(&r, pid);
}

static void what_it_writes_between_tasks_is_of_none(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    uint32_t job = do_in(&r, "t", "echo of one; say $id; echo of none");
    (void)done_by(&r, job);
    job = do_in(&r, "t", "echo of two; say $id");
    (void)done_by(&r, job);
    const char *output = rig_end(&r, job)->output;
    assert_non_null(strstr(output, "of two\n"));
    rig_close(&r);
}

static void an_idle_process_holds_no_slot(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE "  u: {run: ':'}\n", 1);
    pid_t pid = done_by(&r, do_in(&r, "t", "say $id"));
    assert_int_equal(rig_end(&r, rig_send(&r, "u"))->m.result.outcome, OUTCOME_DONE);
    assert_int_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    rig_close(&r);
}

static void another_one_is_started_only_if_all_are_busy(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t:\n    keep: 2\n" WORKER, 4);
    pid_t first = done_by(&r, do_in(&r, "t", "say $id"));
    uint32_t slow = do_in(&r, "t", "until [ -e go ]; do sleep 0.01; done; rm go; say $id");
    assert_int_equal(rig_wait(&r, MESSAGE_STARTED, slow)->m.started.pid, first);
    pid_t second = done_by(&r, do_in(&r, "t", "say $id"));
    assert_int_not_equal(second, first);
    (void)done_by(&r, do_in(&r, "t", "cd /; touch go; say $id"));
    assert_int_equal(done_by(&r, slow), first);
    rig_close(&r);
}

static void tags_that_share_them_do_not_wait_for_each_others(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n"
             "  '*':\n"
             "    keep: 3\n"
             "    run: |\n"
             "      echo >>@DIR@/boots; [ $(wc -l <@DIR@/boots) != 3 ] || echo >@DIR@/all\n"
             "      sleep 1000\n",
             4);
    do_in(&r, "a", "");
    do_in(&r, "b", "");
    do_in(&r, "c", "");
    free(rig_read_file(&r, "all"));
    rig_close(&r);
}

static void lines_of_a_batch_come_at_once(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    batch: 5\n" WORKER, 4);
    pid_t pid = 0;
    for (uint32_t n = 1; n <= 5; n++) {
        uint32_t job = send_lines(&r, "t", "say $id", n, NULL);
        pid_t by = done_by(&r, job);
        assert_true(!pid || by == pid);
        pid = by;
        assert_int_equal(rig_count(&r, MESSAGE_RESULT), n * (n + 1) / 2);
    }
    rig_close(&r);
}

/* ---- processes that cannot be used */

static void give_back(const char *keys, const char *script, const char *error)
{
    BUF_LOCAL struct buf yaml = BUF_INIT;
    struct rig r;

    buf_printf(&yaml,
               *script == '/' ? "handlers:\n  t: {keep: 2, %s run: [%s]}\n"
                              : "handlers:\n  t: {keep: 2, %s run: [/bin/sh, -c, '%s']}\n",
               keys, script);
    rig_open(&r, yaml.data, 4);
    uint32_t jobs[3];
    for (size_t i = 0; i < 3; i++)
        jobs[i] = do_in(&r, "t", "say $id");
    for (size_t i = 0; i < 3; i++) {
        const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, jobs[i]);
        assert_int_equal(back->m.returned.cannot_start, ERR_SYSTEM);
        assert_string_equal(back->error, error);
    }
    assert_int_equal(rig_count(&r, MESSAGE_STARTED), 0);
    rig_close(&r);
}

static void a_process_that_does_not_become_ready_cannot_start(void **state)
{
    (void)state;
    give_back("", "echo no autoload; exit 3", "exit status 3 before it was ready: no autoload");
    give_back("", "exit 0", "exit status 0 before it was ready");
    give_back("", "/nowhere/x", "exec /nowhere/x: No such file or directory");
    give_back("", "kill -9 $$", "signal 9 (Killed) before it was ready");
    give_back("start_timeout: 50ms,", "echo slow; sleep 1000", "it was not ready after 50ms: slow");
    give_back("", "echo hello >&3; sleep 1000", "it has not said {\"ready\":true}, but: hello");
    give_back("", "exec 3>&-; sleep 1000", "it has closed DQ_REPLY_FD");
}

struct fault {
    const char *cmd;
    enum task_outcome outcome;
    const char *error; /* begins so */
};

/* Its task fails and says so; the next one gets another process. */
static void a_process_at_fault_is_ended(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct fault rows[] = {
        {"say 4711", OUTCOME_VERDICT, "unreadable answer (4711 is not a task of this process): {\"id\":4711,"},
        {"echo hello >&3", OUTCOME_VERDICT, "unreadable answer ("},
        {"echo \"{\\\"result\\\":\\\"done\\\"}\" >&3", OUTCOME_VERDICT, "unreadable answer (\"id\" is missing)"},
        {"exec 3>&-; sleep 1000", OUTCOME_VERDICT, "it has closed DQ_REPLY_FD"},
        {"exit 0", OUTCOME_VERDICT, "exit status 0 before it answered"},
        {"echo why; exit 75", OUTCOME_EXIT, "exit status 75: why"},
        {"kill -9 $$", OUTCOME_SIGNAL, "signal 9"},
        {"printf \"{\\\"id\\\":$id,\\\"res\" >&3; kill -9 $$", OUTCOME_SIGNAL, "signal 9"},
        {"head -c 20000 /dev/zero | tr \"\\\\0\" x >&3; sleep 1000", OUTCOME_VERDICT, "unreadable answer (longer than"},
        {"echo last; sleep 1000", OUTCOME_TIMEOUT, "timed out after 1s"},
        {"say $id 3>&1; sleep 1000", OUTCOME_TIMEOUT, "timed out after 1s"}, /* not on stdout */
        {"kill -STOP $$", OUTCOME_TIMEOUT, "timed out after 1s"},
    };
    /* clang-format on */
    struct rig r;

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    kill_grace: 100ms\n    timeout: 1s\n" WORKER,
             4);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pid_t good = done_by(&r, do_in(&r, "t", "say $id"));
        uint32_t job = do_in(&r, "t", rows[i].cmd);
        const struct rig_report *end = rig_end(&r, job);
        if (end->m.result.outcome != rows[i].outcome || !end->error ||
            strncmp(end->error, rows[i].error, strlen(rows[i].error)) != 0)
            fail_msg("%s: outcome %d: %s", rows[i].cmd, (int)end->m.result.outcome,
                     end->error ? end->error : "");
        rig_until_gone(&r, good);
    }
    rig_close(&r);
}

static void an_answer_without_a_task_ends_it_and_harms_none(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    pid_t pid = done_by(&r, do_in(&r, "t", "say $id; say $id"));
    rig_until_gone(&r, pid);
    assert_int_not_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    rig_close(&r);
}

static void a_task_that_was_not_read_is_given_back(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    for (int i = 0; i < 3; i++) {
        pid_t pid = done_by(&r, do_in(&r, "t", "say $id; kill -STOP $$"));
        uint32_t job = do_in(&r, "t", "say $id");
        rig_wait(&r, MESSAGE_STARTED, job);
        if (i)
            link_send_kill(r.link, job, i == 1 ? MESSAGE_KILL_SHUTDOWN : MESSAGE_KILL_LOST);
        else
            kill(pid, SIGKILL);
        rig_flush(&r);
        const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, job);
        assert_true(back->m.returned.cannot_start == 0 && !back->error);
    }
    rig_close(&r);
}

static void tasks_that_end_their_process_keep_no_other_waiting(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  '*':\n    keep: 1\n" WORKER, 4);
    for (int i = 0; i < 4; i++) {
        uint32_t job = do_in(&r, "bad", "echo out of memory; exit 1");
        assert_string_equal(rig_end(&r, job)->error, "exit status 1: out of memory");
    }
    (void)done_by(&r, do_in(&r, "bad", "say $id"));
    (void)done_by(&r, do_in(&r, "good", "say $id"));
    rig_close(&r);
}

/* Stops once it is ready, unless there is a file. */
#define IDLER                                                                                      \
    "handlers:\n  t:\n    keep: 1\n    run: |\n"                                                   \
    "      echo '{\"ready\":true}' >&3; [ -e @DIR@/go ] || kill -STOP $$\n"                        \
    "      read -r id cmd; printf '{\"id\":%s,\"result\":\"done\"}\\n' \"$id\" >&3; kill -STOP $$\n"

/* A process gets a job and is killed before it reads that; the job is given back. */
static void kill_unread(struct rig *r)
{
    uint32_t job = do_in(r, "t", "");

    kill(rig_wait(r, MESSAGE_STARTED, job)->m.started.pid, SIGKILL);
    assert_int_equal(rig_wait(r, MESSAGE_RETURNED, job)->m.returned.cannot_start, 0);
}

static void those_that_read_nothing_make_the_tag_rest(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, IDLER, 4);
    kill_unread(&r);
    kill_unread(&r);
    FILE *f = fopen(rig_path(&r, "go"), "w"); /* an answer: those before do not count any more */
    fclose(f);
    (void)done_by(&r, do_in(&r, "t", ""));
    unlink(rig_path(&r, "go"));
    for (int i = 0; i < 4; i++) /* the first one has answered */
        kill_unread(&r);
    const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, do_in(&r, "t", ""));
    assert_int_equal(back->m.returned.cannot_start, ERR_SYSTEM);
    assert_string_equal(back->error, "signal 9 (Killed) before it answered");
    rig_close(&r);
}

static void a_cancelled_task_ends_its_process(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    uint32_t job = do_in(&r, "t", "sleep 1000 & wait");
    pid_t pid = rig_wait(&r, MESSAGE_STARTED, job)->m.started.pid;
    link_send_kill(r.link, job, MESSAGE_KILL_CANCELLED);
    rig_flush(&r);
    assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_CANCELLED);
    assert_true(rig_session_ends(&r, pid));
    assert_int_not_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    rig_close(&r);
}

/* ---- the end of their time */

static void used_up_processes_are_replaced(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    recycle: {tasks: 2}\n" WORKER, 4);
    pid_t pid = done_by(&r, do_in(&r, "t", "say $id"));
    assert_int_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    rig_until_gone(&r, pid);
    assert_int_not_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    rig_close(&r);

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    recycle: {memory: 1k}\n" WORKER, 4);
    rig_until_gone(&r, done_by(&r, do_in(&r, "t", "say $id")));
    rig_close(&r);

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    recycle: {memory: 30m}\n" WORKER, 4);
    pid = done_by(&r, do_in(&r, "t",
                            "(x=$(head -c 40000000 /dev/zero | tr '\\0' x); >big; sleep 1000) & "
                            "until [ -e big ]; do sleep 0.01; done; say $id"));
    while (done_by(&r, do_in(&r, "t", "say $id")) == pid)
        ; /* it is not weighed each time */
    rig_close(&r);

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    recycle: {age: 1s}\n" WORKER, 4);
    int64_t from = when_steady();
    rig_until_gone(&r, done_by(&r, do_in(&r, "t", "say $id")));
    assert_true(when_steady() - from >= 900);
    rig_close(&r);
    for (pid_t i = 0; i < 64; i++) /* of several, started one after the other */
        assert_int_equal(keep_age_ms(6400, 128 + i), 6400 - 10 * i);

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    recycle: {idle: 20ms}\n" WORKER, 4);
    rig_until_gone(&r, done_by(&r, do_in(&r, "t", "say $id")));
    rig_close(&r);
}

static void those_that_do_not_go_hold_back_others(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n  t:\n    keep: 1\n    kill_grace: 300ms\n    recycle: {tasks: 1}\n" WORKER
             "      trap '' TERM; sleep 1000 & wait; wait\n",
             4);
    pid_t first = done_by(&r, do_in(&r, "t", "say $id"));
    (void)done_by(&r, do_in(&r, "t", "say $id"));
    (void)done_by(&r, do_in(&r, "t", "say $id"));
    assert_int_equal(kill(first, 0), -1);
    rig_close(&r);
}

static void a_changed_file_restarts_them(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    restart_on: [nowhere, @DIR@/REVISION]\n" WORKER,
             4);
    pid_t pid = done_by(&r, do_in(&r, "t", "say $id"));
    assert_int_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    FILE *f = fopen(rig_path(&r, "REVISION"), "w");
    fputs("2\n", f);
    fclose(f);
    pid_t next = done_by(&r, do_in(&r, "t", "say $id"));
    assert_int_not_equal(next, pid);
    rig_until_gone(&r, pid);
    assert_int_equal(done_by(&r, do_in(&r, "t", "say $id")), next);
    rig_close(&r);
}

static void a_reload_restarts_them(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    pid_t pid = done_by(&r, do_in(&r, "t", "say $id"));
    uint32_t slow = do_in(&r, "t", "sleep 0.3; say $id");
    rig_wait(&r, MESSAGE_STARTED, slow);
    rig_write_handlers(&r, "# changed\n" ONE);
    link_send_reload(r.link, r.handlers->digest);
    rig_wait(&r, MESSAGE_RELOADED, 0);
    assert_int_equal(done_by(&r, slow), pid); /* what runs finishes */
    rig_until_gone(&r, pid);
    rig_close(&r);
}

/* ---- input and output of any size */

static void long_input_arrives_however_slowly_it_is_read(void **state)
{
    (void)state;
    struct rig r;
    const size_t size = 1000000;
    BUF_LOCAL struct buf cmd = BUF_INIT;

    rig_open(&r, ONE, 4);
    buf_str(&cmd, "echo ${#cmd}; say $id # ");
    while (cmd.len < size)
        buf_chr(&cmd, 'x');
    for (int i = 0; i < 2; i++) {
        uint32_t job = do_in(&r, "t", cmd.data);
        (void)done_by(&r, job);
        assert_string_equal(rig_end(&r, job)->output, "1000000\n");
    }
    rig_close(&r);
}

static void an_answer_before_all_input_was_read_is_none(void **state)
{
    (void)state;
    struct rig r;
    uint64_t id;

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    batch: 5\n" WORKER, 4);
    uint32_t job = send_lines(&r, "t", "say $id; say $((id + 1000000)); kill -STOP $$", 2, &id);
    const struct rig_report *end = rig_end(&r, job);
    assert_int_equal(end->m.result.outcome, OUTCOME_VERDICT);
    assert_non_null(strstr(end->error, "before it read all of its input"));
    rig_close(&r);
}

static void long_output_costs_no_memory(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    uint32_t job = do_in(&r, "t", "head -c 30000000 /dev/zero; say $id");
    pid_t pid = done_by(&r, job);
    assert_int_equal(done_by(&r, do_in(&r, "t", "say $id; head -c 30000000 /dev/zero")), pid);
    assert_int_equal(done_by(&r, do_in(&r, "t", "say $id")), pid);
    rig_close(&r);
}

static void all_that_is_before_an_answer_is_of_its_task(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, ONE, 4);
    for (int i = 0; i < 50; i++) {
        uint32_t job = do_in(&r, "t", "head -c 90000 /dev/zero | tr '\\0' x; echo end; say $id");
        (void)done_by(&r, job);
        const char *output = rig_end(&r, job)->output;
        assert_string_equal(output + strlen(output) - 5, "xend\n");
    }
    rig_close(&r);
}

static void no_descriptor_is_left(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t:\n    keep: 1\n    recycle: {tasks: 1}\n" WORKER, 4);
    for (int i = 0; i < 3; i++)
        rig_until_gone(&r, done_by(&r, do_in(&r, "t", "say $id")));
    rig_ping(&r);
    size_t before = rig_count_proc(&r, "fd");
    for (int i = 0; i < 20; i++)
        rig_until_gone(&r, done_by(&r, do_in(&r, "t", "say $id")));
    rig_ping(&r);
    assert_int_equal(rig_count_proc(&r, "fd"), before);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_does_one_task_after_another),
        cmocka_unit_test(what_it_writes_between_tasks_is_of_none),
        cmocka_unit_test(an_idle_process_holds_no_slot),
        cmocka_unit_test(another_one_is_started_only_if_all_are_busy),
        cmocka_unit_test(tags_that_share_them_do_not_wait_for_each_others),
        cmocka_unit_test(lines_of_a_batch_come_at_once),
        cmocka_unit_test(a_process_that_does_not_become_ready_cannot_start),
        cmocka_unit_test(a_process_at_fault_is_ended),
        cmocka_unit_test(an_answer_without_a_task_ends_it_and_harms_none),
        cmocka_unit_test(a_task_that_was_not_read_is_given_back),
        cmocka_unit_test(tasks_that_end_their_process_keep_no_other_waiting),
        cmocka_unit_test(those_that_read_nothing_make_the_tag_rest),
        cmocka_unit_test(a_cancelled_task_ends_its_process),
        cmocka_unit_test(used_up_processes_are_replaced),
        cmocka_unit_test(those_that_do_not_go_hold_back_others),
        cmocka_unit_test(a_changed_file_restarts_them),
        cmocka_unit_test(a_reload_restarts_them),
        cmocka_unit_test(long_input_arrives_however_slowly_it_is_read),
        cmocka_unit_test(an_answer_before_all_input_was_read_is_none),
        cmocka_unit_test(long_output_costs_no_memory),
        cmocka_unit_test(all_that_is_before_an_answer_is_of_its_task),
        cmocka_unit_test(no_descriptor_is_left),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("runner: processes that stay", tests, NULL, NULL);
}
