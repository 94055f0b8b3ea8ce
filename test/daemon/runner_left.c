/*
 * runner_left.c - nothing of a handler is left when it has ended: no process of its session, no
 * descriptor, no child.
 */
#include "runner_rig.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void background_process_ends_with_its_leader(void **state)
{
    (void)state;
    static const char *const shells[] = {"/bin/dash", "/bin/bash"};
    char yaml[256];

    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        struct rig r;
        snprintf(
            yaml, sizeof yaml,
            "defaults: {shell: %s}\nhandlers:\n"
            "  t: {run: '(trap \"\" TERM HUP; echo kept; echo $$ >@DIR@/x; exec sleep 1000) & echo $! >@DIR@/child; read x "
            "<@DIR@/f'}\n",
            shells[i]);
        rig_open(&r, yaml, 4);
        char *fifo = rig_path(&r, "f"), command[300];
        snprintf(command, sizeof command, "mkfifo %s", fifo);
        assert_int_equal(system(command), 0);
        uint32_t job = rig_send(&r, "t");
        char *child = rig_read_file(&r, "child"), *x = rig_read_file(&r, "x");
        FILE *f = fopen(rig_path(&r, "f"), "w");
        fputs("go\n", f);
        fclose(f);
        const struct rig_report *end = rig_end(&r, job);
        assert_int_equal(end->m.result.outcome, OUTCOME_DONE);
        assert_string_equal(end->output, "kept\n");
        rig_until_gone(&r, atoi(child));
        free(child);
        free(x);
        rig_close(&r);
    }
}

/* Shapes that put processes into groups other than the leader's. */
static const char *const grouping[] = {
    "timeout 1000 sleep 1000 & timeout -k 1 1000 sleep 1000 &",
    "set -m; sleep 1000 & sleep 1000 &",
    "set -m; (trap \"\" TERM HUP INT; sleep 1000; sleep 1000) &",
    "set -m; (set -m; (sleep 1000 & sleep 1000) &) &",
    /* its parent has left the session */
    "bash -c \"set -m; sleep 1000 & exec setsid sleep 0.5\" &",
};
#define GROUPING (sizeof grouping / sizeof grouping[0])

/* Sends a job for each of them, whose shell then does what `then` says; waits until it is so
 * far. */
static void start_grouping(struct rig *r, const char *defaults, const char *then,
                           uint32_t jobs[GROUPING])
{
    struct buf yaml = BUF_INIT;
    char tag[16], name[16];

    buf_printf(&yaml, "defaults: {shell: /bin/bash, %s}\nhandlers:\n", defaults);
    for (size_t i = 0; i < GROUPING; i++)
        buf_printf(&yaml, "  t%zu: {run: '%s sleep 0.1; echo x >@DIR@/up%zu; %s'}\n", i,
                   grouping[i], i, then);
    rig_open(r, yaml.data, 16);
    buf_done(&yaml);
    for (size_t i = 0; i < GROUPING; i++) {
        snprintf(tag, sizeof tag, "t%zu", i);
        jobs[i] = rig_send(r, tag);
    }
    for (size_t i = 0; i < GROUPING; i++) {
        snprintf(name, sizeof name, "up%zu", i);
        free(rig_read_file(r, name));
    }
}

/* Each of them ends with this outcome, and nothing of its session is left. OUTCOME_CANCELLED: they
 * are cancelled. */
static void check_sessions_end(const char *defaults, const char *then, enum task_outcome outcome)
{
    uint32_t jobs[GROUPING];
    struct rig r;

    start_grouping(&r, defaults, then, jobs);
    for (size_t i = 0; outcome == OUTCOME_CANCELLED && i < GROUPING; i++)
        link_send_kill(r.link, jobs[i], MESSAGE_KILL_CANCELLED);
    for (size_t i = 0; i < GROUPING; i++) {
        assert_int_equal(rig_end(&r, jobs[i])->m.result.outcome, outcome);
        if (!rig_session_ends(&r, rig_find(&r, MESSAGE_STARTED, jobs[i])->m.started.pid))
            fail_msg("something of \"%s\" is left", grouping[i]);
    }
    rig_close(&r);
}

static void session_ends_with_its_leader(void **state)
{
    (void)state;
    check_sessions_end("timeout: 1h", "exit 0", OUTCOME_DONE);
}

static void session_ends_at_a_timeout(void **state)
{
    (void)state;
    check_sessions_end("timeout: 5s, kill_grace: 100ms",
                       "trap : TERM; while :; do sleep 1000; done", OUTCOME_TIMEOUT);
}

static void session_ends_when_it_is_cancelled(void **state)
{
    (void)state;
    check_sessions_end("timeout: 1h", "sleep 1000", OUTCOME_CANCELLED);
}

static void term_reaches_every_group_of_the_session(void **state)
{
    (void)state;
    struct rig r;

    rig_open(
        &r,
        "defaults: {shell: /bin/bash, kill_grace: 1h}\n"
        "handlers:\n"
        "  t: {run: 'set -m; trap : TERM; (trap \"echo tidied; exit\" TERM; echo x >@DIR@/up; while :; do sleep 0.01; done) & "
        "wait; wait; exit 3'}\n",
        2);
    uint32_t job = rig_send(&r, "t");
    free(rig_read_file(&r, "up"));
    link_send_kill(r.link, job, MESSAGE_KILL_CANCELLED);
    const struct rig_report *end = rig_end(&r, job);
    assert_int_equal(end->m.result.exit_code, 3);
    assert_non_null(strstr(end->output, "tidied\n"));
    rig_close(&r);
}

static void session_of_its_own_holds_up_nobody(void **state)
{
    (void)state;
    struct rig r;

    rig_open(
        &r,
        "handlers:\n"
        "  t: {run: 'setsid sh -c \"echo \\$\\$ >@DIR@/pid; exec sleep 1000\" & while ! test -s @DIR@/pid; do sleep 0.01; "
        "done; echo out'}\n"
        "  u: {run: echo next}\n",
        2);
    const struct rig_report *end = rig_end(&r, rig_send(&r, "t"));
    assert_int_equal(end->m.result.outcome, OUTCOME_DONE);
    assert_string_equal(end->output, "out\n");
    char *pid = rig_read_file(&r, "pid");
    assert_true(rig_alive(atoi(pid)));
    assert_string_equal(rig_end(&r, rig_send(&r, "u"))->output, "next\n");
    kill(atoi(pid), SIGKILL);
    free(pid);
    rig_close(&r);
}

/* Of none of its threads. */
static void assert_no_children(pid_t pid)
{
    char path[300], text[64] = "";
    struct dirent *e;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    assert_non_null(d);
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, e->d_name);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_null(fgets(text, sizeof text, f));
        fclose(f);
    }
    closedir(d);
}

static void thousands_of_starts_leave_nothing(void **state)
{
    (void)state;
    const uint32_t many = 3000;
    struct rig r;
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max; /* every waiting job is a descriptor */
    setrlimit(RLIMIT_NOFILE, &files);
    rig_open(
        &r,
        "handlers:\n  t: {run: [/bin/true]}\n  bad: {run: [/nonexistent]}\n  batch: {run: [/bin/true], batch: 9}\n",
        8);
    rig_ping(&r);
    size_t before = rig_count_proc(&r, "fd");
    for (uint32_t i = 0; i < many; i++)
        rig_send_body(&r, i % 10 == 8 ? "bad" : i % 10 == 9 ? "batch" : "t", "x", 1);
    while (rig_count(&r, MESSAGE_ENDED) + rig_count(&r, MESSAGE_RETURNED) < many)
        rig_ping(&r);
    assert_int_equal(rig_count(&r, MESSAGE_RETURNED), many / 10);
    assert_int_equal(rig_count(&r, MESSAGE_RESULT), many - many / 10);
    assert_int_equal(rig_count_proc(&r, "fd"), before);
    assert_no_children(link_pid(r.link));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(background_process_ends_with_its_leader),
        cmocka_unit_test(session_ends_with_its_leader),
        cmocka_unit_test(session_ends_at_a_timeout),
        cmocka_unit_test(session_ends_when_it_is_cancelled),
        cmocka_unit_test(term_reaches_every_group_of_the_session),
        cmocka_unit_test(session_of_its_own_holds_up_nobody),
        cmocka_unit_test(thousands_of_starts_leave_nothing),
    };

    return cmocka_run_group_tests_name("runner: left", tests, NULL, NULL);
}
