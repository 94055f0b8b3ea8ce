/*
 * runner_lease.c - handlers outlive neither their lease nor the poller nor the runner, frozen or
 * dead.
 */
#include "runner_rig.h"

#include "base/when.h"
#include "runner/job.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUBBORN "'trap \"\" TERM; echo x >@DIR@/up; while :; do sleep 0.01; done'"

static uint32_t send_leased(struct rig *r, const char *tag, int64_t lease_ms, int64_t *ret_deadline)
{
    struct message_job j;

    rig_fill(r, &j, tag);
    j.deadline_at = when_steady() + lease_ms;
    if (ret_deadline)
        *ret_deadline = j.deadline_at;
    uint32_t number = rig_put(r, &j);
    rig_flush(r);
    return number;
}

static void lease_without_renewal_ends_a_handler(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: sleep 1000, kill_grace: 1h}\n", 2);
    const struct rig_report *end = rig_end(&r, send_leased(&r, "t", 4000, NULL));
    assert_int_equal(end->m.result.outcome, OUTCOME_KILLED);
    assert_int_equal(end->m.result.signal, SIGTERM);
    assert_string_equal(end->error, "the lease could not be renewed");
    rig_close(&r);
}

/* By one that stays: another dqd may already run its task. */
static void an_answer_after_the_lease_does_not_count(void **state)
{
    (void)state;
    struct message_job j;
    char line[32];
    struct rig r;

    rig_open(
        &r,
        "handlers:\n  t:\n    keep: 1\n    run: |\n"
        "      trap 'printf \"{\\\"id\\\":$id,\\\"result\\\":\\\"done\\\"}\\n\" >&3; exit 0' TERM\n"
        "      echo '{\"ready\":true}' >&3; read -r id\n"
        "      while :; do sleep 0.01; done\n",
        2);
    rig_fill(&r, &j, "t");
    j.deadline_at = when_steady() + 4000;
    snprintf(line, sizeof line, "%" PRIu64 "\n", *(const uint64_t *)j.ids);
    rig_input(&j, line, strlen(line));
    uint32_t job = rig_put(&r, &j);
    rig_flush(&r);
    const struct rig_report *end = rig_end(&r, job);
    assert_int_equal(end->m.result.outcome, OUTCOME_KILLED);
    assert_string_equal(end->error, "the lease could not be renewed");
    rig_close(&r);
}

/* A handler that ignores TERM is gone before its lease ends. A busy machine may be late, but not
 * each time. */
static void assert_killed_in_time(const char *keys, enum task_outcome outcome)
{
    struct rig r;
    int64_t deadline;
    bool in_time = false;
    char yaml[200];

    snprintf(yaml, sizeof yaml, "handlers:\n  t: {run: " STUBBORN ", kill_grace: 1h%s}\n", keys);
    rig_open(&r, yaml, 2);
    for (int tries = 0; tries < 10 && !in_time; tries++) {
        const struct rig_report *end = rig_end(&r, send_leased(&r, "t", 4000, &deadline));
        assert_int_equal(end->m.result.outcome, outcome);
        assert_int_equal(end->m.result.signal, SIGKILL);
        in_time = end->m.result.finish_us < deadline * 1000;
    }
    assert_true(in_time);
    rig_close(&r);
}

static void kill_comes_before_the_lease_ends(void **state)
{
    (void)state;
    assert_killed_in_time("", OUTCOME_KILLED);
}

static void timeout_kill_comes_before_the_lease_ends(void **state)
{
    (void)state;
    assert_killed_in_time(", timeout: 1s", OUTCOME_TIMEOUT);
}

static void renewed_lease_lets_a_handler_run(void **state)
{
    (void)state;
    struct rig r;
    uint32_t jobs[2];

    rig_open(&r, "handlers:\n  t: {run: 'read x; sleep 3.5'}\n", 4);
    jobs[0] = send_leased(&r, "t", 3000, NULL);
    jobs[1] = 4711; /* long gone */
    link_send_deadline(r.link, jobs, 2, when_steady() + 60000);
    link_send_deadline(r.link, jobs, 2, when_steady() + 10); /* a lease is never shortened */
    assert_int_equal(rig_end(&r, jobs[0])->m.result.outcome, OUTCOME_DONE);
    rig_close(&r);
}

static void waiting_job_past_its_lease_is_returned(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: 'sleep 1000', max_running: 1}\n", 4);
    uint32_t runs = rig_send(&r, "t"), waits = send_leased(&r, "t", 300, NULL),
             late = send_leased(&r, "t", -5, NULL);
    const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, waits);
    assert_false(back->m.returned.cannot_start);
    assert_null(back->error);
    rig_wait(&r, MESSAGE_RETURNED, late);
    assert_null(rig_find(&r, MESSAGE_STARTED, waits));
    assert_null(rig_find(&r, MESSAGE_ENDED, runs));
    rig_close(&r);
}

static void freeze_beyond_the_lease_kills_at_the_thaw(void **state)
{
    (void)state;
    struct rig r;
    uint32_t job;

    rig_open(&r, "handlers:\n  t: {run: " STUBBORN ", kill_grace: 1h, max_running: 1}\n", 4);
    job = send_leased(&r, "t", 5000, NULL);
    free(rig_read_file(&r, "up"));
    pid_t pid = rig_wait(&r, MESSAGE_STARTED, job)->m.started.pid;
    assert_int_equal(kill(link_pid(r.link), SIGSTOP), 0);
    uint32_t queued = send_leased(&r, "t", 1000, NULL), fresh = send_leased(&r, "t", 3600000, NULL);
    int64_t late = when_steady() + 5500;
    while (when_steady() < late)
        usleep(10000);
    assert_true(rig_alive(pid));
    assert_int_equal(kill(link_pid(r.link), SIGCONT), 0);
    assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_KILLED);
    /* TERM and KILL at once: there is no grace left */
    assert_int_equal(rig_end(&r, job)->m.result.signal, SIGKILL);
    rig_wait(&r, MESSAGE_RETURNED, queued);
    rig_wait(&r, MESSAGE_STARTED, fresh);
    rig_close(&r);
}

static void handler_that_ended_during_a_freeze_is_not_called_timed_out(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: 'echo x >@DIR@/up; sleep 0.3', timeout: 3s}\n", 4);
    uint32_t job = rig_send(&r, "t");
    free(rig_read_file(&r, "up"));
    pid_t pid = rig_wait(&r, MESSAGE_STARTED, job)->m.started.pid;
    assert_int_equal(kill(link_pid(r.link), SIGSTOP), 0);
    int64_t late = when_steady() + 3500;
    while (when_steady() < late || rig_alive(pid))
        usleep(10000);
    assert_int_equal(kill(link_pid(r.link), SIGCONT), 0);
    assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_DONE);
    rig_close(&r);
}

static void closed_link_kills_every_handler(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "defaults: {kill_grace: 200ms}\n"
             "handlers:\n"
             "  t: {run: 'sleep 1000 & echo $! >@DIR@/child; wait'}\n"
             "  stubborn: {run: " STUBBORN "}\n",
             4);
    uint32_t t = rig_send(&r, "t"), s = rig_send(&r, "stubborn");
    char *child = rig_read_file(&r, "child");
    free(rig_read_file(&r, "up"));
    pid_t pids[3] = {rig_wait(&r, MESSAGE_STARTED, t)->m.started.pid,
                     rig_wait(&r, MESSAGE_STARTED, s)->m.started.pid, atoi(child)};
    link_stop(r.link, 30000);
    for (int i = 0; i < 3; i++)
        while (rig_alive(pids[i])) /* killed, and on its way out */
            usleep(10000);
    free(child);
    r.link = NULL;
    rig_close(&r);
}

static void poller_that_dies_takes_its_handlers_along(void **state)
{
    (void)state;
    struct {
        char dir[64];
        pid_t runner, handler;
    } seen = {0};
    int fds[2];
    char command[128];

    assert_int_equal(pipe(fds), 0);
    pid_t poller = fork();
    if (poller == 0) {
        struct rig r;
        rig_open(&r, "handlers:\n  t: {run: sleep 1000, kill_grace: 0s}\n", 4);
        memcpy(seen.dir, r.dir, sizeof seen.dir);
        seen.runner = link_pid(r.link);
        seen.handler = rig_wait(&r, MESSAGE_STARTED, rig_send(&r, "t"))->m.started.pid;
        if (write(fds[1], &seen, sizeof seen) != sizeof seen)
            _exit(1);
        pause();
    }
    assert_int_equal(read(fds[0], &seen, sizeof seen), sizeof seen);
    assert_true(rig_alive(seen.runner) && rig_alive(seen.handler));
    kill(poller, SIGKILL);
    assert_int_equal(waitpid(poller, NULL, 0), poller);
    alarm(300);
    while (rig_alive(seen.runner) || rig_alive(seen.handler))
        usleep(10000);
    alarm(0);
    close(fds[0]);
    close(fds[1]);
    snprintf(command, sizeof command, "rm -rf '%s'", seen.dir);
    assert_int_equal(system(command), 0);
}

/* Until it is reported as gone. */
static void kill_runner(struct rig *r)
{
    struct message e;

    assert_int_equal(kill(link_pid(r->link), SIGKILL), 0);
    do
        while (!link_next(r->link, &e))
            usleep(10000);
    while (e.type != MESSAGE_GONE);
}

static void killed_runner_takes_the_leaders_along(void **state)
{
    (void)state;
    struct rig r;
    struct message e;

    rig_open(&r, "handlers:\n  t: {run: " STUBBORN "}\n", 4);
    uint32_t job = rig_send(&r, "t");
    free(rig_read_file(&r, "up"));
    pid_t pid = rig_wait(&r, MESSAGE_STARTED, job)->m.started.pid;
    kill_runner(&r);
    assert_int_equal(link_next(r.link, &e), 0);
    assert_int_equal(link_fd(r.link), -1);
    assert_false(link_wants_write(r.link));
    link_send_kill(r.link, job, MESSAGE_KILL_LOST); /* to nobody: harmless */
    assert_int_equal(link_flush(r.link, NULL), ERR_SYSTEM);
    while (rig_alive(pid))
        usleep(10000);
    rig_close(&r);
}

/* For this process and those it starts. */
static void drop_right_to_kill(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(1u << CAP_KILL);
    data[0].permitted &= ~(1u << CAP_KILL);
    data[0].inheritable &= ~(1u << CAP_KILL);
    assert_int_equal(prctl(PR_CAPBSET_DROP, CAP_KILL), 0);
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* A handler that starts `other` as another account, with its pid in a file, and then does
 * `then`. */
#define BESIDE_OTHER(tag, file, other, then)                                                       \
    "  " tag ": {run: 'setpriv --reuid=65534 --clear-groups sh -c \"echo \\$\\$ >&3; " other       \
    "\" 3>@DIR@/" file " <@DIR@/hold & "                                                           \
    "while ! test -s @DIR@/" file "; do sleep 0.01; done; " then "'}\n"

static pid_t read_pid(struct rig *r, const char *name)
{
    char *text = rig_read_file(r, name);
    pid_t pid = (pid_t)atoi(text);

    free(text);
    return pid;
}

/* Until it is not even a zombie. */
static void until_reaped(struct rig *r, pid_t pid)
{
    while (kill(pid, 0) == 0 || errno != ESRCH)
        rig_ping(r);
}

/* Must be the last tests: the right does not come back. */
static void what_may_not_be_killed_is_waited_for(void **state)
{
    (void)state;
    struct rig r;

    if (geteuid() != 0)
        skip();
    drop_right_to_kill();
    rig_open(&r,
             "defaults: {kill_grace: 100ms}\n"
             "handlers:\n" BESIDE_OTHER("t", "other", "read x", "sleep 1000") BESIDE_OTHER(
                 "ends", "left", "exec sleep 120",
                 ":") "  orphan: {run: 'setsid sh -c \"echo \\$\\$ >@DIR@/orphan; sleep 0.1\" & "
                      "while ! test -s @DIR@/orphan; do sleep 0.01; done'}\n",
             4);
    assert_int_equal(mkfifo(rig_path(&r, "hold"), 0600), 0);
    int hold = open(rig_path(&r, "hold"), O_RDWR | O_CLOEXEC);
    assert_true(hold >= 0);
    uint32_t job = rig_send(&r, "t"), ends = rig_send(&r, "ends");
    pid_t other = read_pid(&r, "other"), left = read_pid(&r, "left");
    assert_int_equal(rig_end(&r, ends)->m.result.outcome,
                     OUTCOME_DONE); /* an end of its own is one */
    assert_true(rig_alive(left));
    link_send_kill(r.link, job, MESSAGE_KILL_CANCELLED);
    rig_until_gone(&r, rig_wait(&r, MESSAGE_STARTED, job)->m.started.pid);
    rig_end(&r, rig_send(&r, "orphan"));
    /* meanwhile others are no zombies for longer than needed */
    until_reaped(&r, read_pid(&r, "orphan"));
    assert_null(rig_find(&r, MESSAGE_ENDED, job));
    assert_true(rig_alive(other));
    assert_int_equal(write(hold, "\n", 1), 1);
    assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_CANCELLED);
    until_reaped(&r, other);
    assert_true(rig_alive(left)); /* its end would have had the others reaped */
    close(hold);
    rig_close(&r);
}

/* Another account begins as a setuid program does: the death of the runner kills it no more. */
static void a_leader_that_may_not_be_killed_is_left_by_a_dead_runner(void **state)
{
    (void)state;
    struct rig r;

    if (geteuid() != 0)
        skip();
    drop_right_to_kill();
    rig_open(
        &r,
        "handlers:\n"
        "  t: {run: 'exec setpriv --reuid=65534 --clear-groups sh -c \"echo \\$\\$ >&3; read x\" "
        "3>@DIR@/up <@DIR@/hold'}\n",
        4);
    assert_int_equal(mkfifo(rig_path(&r, "hold"), 0600), 0);
    int hold = open(rig_path(&r, "hold"), O_RDWR | O_CLOEXEC);
    assert_true(hold >= 0);
    uint32_t job = rig_send(&r, "t");
    pid_t leader = read_pid(&r, "up");
    assert_int_equal(rig_wait(&r, MESSAGE_STARTED, job)->m.started.pid, leader);
    kill_runner(&r);
    assert_true(rig_alive(leader));
    assert_false(link_cleared(r.link));
    assert_int_equal(write(hold, "\n", 1), 1);
    assert_int_equal(waitpid(leader, NULL, 0), leader);
    close(hold);
    rig_close(&r);
}

static void signals_leave_the_runner_alone(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGTSTP, SIGPIPE, SIGALRM};
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: echo fine}\n", 4);
    rig_ping(&r);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        assert_int_equal(kill(link_pid(r.link), signals[i]), 0);
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "fine\n");
    rig_close(&r);
}

static void the_grace_before_the_end_of_a_lease_is_a_quarter_of_it_at_most(void **state)
{
    static const struct {
        int64_t lease_ms, grace_ms, term_ms, kill_ms; /* these: before the deadline */
    } cases[] = {{60000, 5000, 5200, 200},
                 {60000, 20000, 15200, 200},
                 {2000, 5000, 600, 100},
                 {0, 5000, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct handler h = {.kill_grace_ms = cases[i].grace_ms};
        const struct plan plan = {.handler = &h};
        const struct job j = {.plan = &plan, .deadline_at = 100000, .lease_ms = cases[i].lease_ms};

        assert_int_equal(100000 - job_lease_term_at(&j), cases[i].term_ms);
        assert_int_equal(100000 - job_lease_kill_at(&j), cases[i].kill_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grace_before_the_end_of_a_lease_is_a_quarter_of_it_at_most),
        cmocka_unit_test(lease_without_renewal_ends_a_handler),
        cmocka_unit_test(an_answer_after_the_lease_does_not_count),
        cmocka_unit_test(kill_comes_before_the_lease_ends),
        cmocka_unit_test(timeout_kill_comes_before_the_lease_ends),
        cmocka_unit_test(renewed_lease_lets_a_handler_run),
        cmocka_unit_test(waiting_job_past_its_lease_is_returned),
        cmocka_unit_test(freeze_beyond_the_lease_kills_at_the_thaw),
        cmocka_unit_test(handler_that_ended_during_a_freeze_is_not_called_timed_out),
        cmocka_unit_test(closed_link_kills_every_handler),
        cmocka_unit_test(poller_that_dies_takes_its_handlers_along),
        cmocka_unit_test(killed_runner_takes_the_leaders_along),
        cmocka_unit_test(signals_leave_the_runner_alone),
        cmocka_unit_test(what_may_not_be_killed_is_waited_for),
        cmocka_unit_test(a_leader_that_may_not_be_killed_is_left_by_a_dead_runner),
    };

    return cmocka_run_group_tests_name("runner: lease", tests, NULL, NULL);
}
