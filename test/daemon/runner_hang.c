/*
 * runner_hang.c - starts that hang: a program, a directory, an account database that does not
 * answer. They cost their tag only.
 */
#include "runner_rig.h"

#include "base/when.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* These stand before the C library's. What has "hangs" in its name does not return before the file
 * `gate` is there, or before it is killed; only system calls are made, because most are called
 * between vfork and exec. */
static char gate[128];
static pid_t test;

static void hang(const char *name)
{
    if (name && strstr(name, "slow") &&
        (pid_t)syscall(SYS_getpid) != test) /* about as long as a start may take */
        syscall(SYS_nanosleep, &(struct timespec){0, 30000000 + syscall(SYS_getpid) % 8 * 8000000},
                NULL);
    if (name && strstr(name, "hangs") && (pid_t)syscall(SYS_getpid) != test)
        while (syscall(SYS_faccessat, AT_FDCWD, gate, F_OK) != 0)
            syscall(SYS_nanosleep, &(struct timespec){0, 5000000}, NULL);
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    hang(path);
    return (int)syscall(SYS_execve, path, argv, envp);
}

int chdir(const char *path)
{
    hang(path);
    return (int)syscall(SYS_chdir, path);
}

int getpwnam_r(const char *name, struct passwd *pw, char *memory, size_t size, struct passwd **ret)
{
    hang(name);
    (void)size;
    *ret = NULL;
    if (strcmp(name, "hangs-account") != 0)
        return 0;
    *memory = '\0';
    *pw = (struct passwd){.pw_name = memory,
                          .pw_dir = memory,
                          .pw_shell = memory,
                          .pw_uid = geteuid(),
                          .pw_gid = getegid()};
    *ret = pw;
    return 0;
}

static const char handlers[] = "defaults: {kill_grace: 100ms, max_running: 4}\n"
                               "handlers:\n"
                               "  exec: {run: [@DIR@/hangs]}\n"
                               "  cwd: {run: ':', cwd: @DIR@/hangs.d}\n"
                               "  user: {run: ':', user: hangs-account}\n"
                               "  'slow-*': {run: echo fine, cwd: @DIR@/slow.d, max_running: 1}\n"
                               "  t: {run: echo fine}\n"
                               "  busy: {run: 'sleep 1000 & wait'}\n";
static const char *const hanging[] = {"exec", "cwd", "user"};

static void open_gated(struct rig *r)
{
    test = getpid();
    snprintf(gate, sizeof gate, "/tmp/dq-gate.%d", (int)getpid());
    unlink(gate);
    rig_open(r, handlers, 16);
    FILE *f = fopen(rig_path(r, "hangs"), "w");
    assert_non_null(f);
    fputs("#!/bin/sh\necho opened\n", f);
    fclose(f);
    assert_int_equal(chmod(rig_path(r, "hangs"), 0755), 0);
    assert_int_equal(mkdir(rig_path(r, "hangs.d"), 0755), 0);
    assert_int_equal(mkdir(rig_path(r, "slow.d"), 0755), 0);
}

static void open_gate(void)
{
    fclose(fopen(gate, "w"));
}

static void close_gated(struct rig *r)
{
    open_gate();
    rig_close(r);
    unlink(gate);
}

/* How long it takes, in milliseconds. */
static int64_t run_many(struct rig *r)
{
    int64_t from = when_steady();

    for (int i = 0; i < 20; i++)
        assert_string_equal(rig_end(r, rig_send(r, "t"))->output, "fine\n");
    return when_steady() - from;
}

/* One job of each; another tag is not held up. */
static void start_hanging(struct rig *r, uint32_t jobs[3])
{
    for (size_t i = 0; i < 3; i++)
        jobs[i] = rig_send(r, hanging[i]);
    assert_string_equal(rig_end(r, rig_send(r, "t"))->output, "fine\n");
}

static void hanging_start_costs_its_tag_only(void **state)
{
    (void)state;
    enum { GIVEN_UP_MS = 10000 }; /* after that long, a start that hangs holds up nothing */
    static const char *const why[] = {
        "starting ", "starting ",
        "user hangs-account: the account database has not answered for 10s"};
    uint32_t jobs[3][3], busy;
    struct rig r;

    open_gated(&r);
    int64_t alone = run_many(&r);
    busy = rig_send(&r, "busy");
    for (size_t i = 0; i < 9; i++)
        jobs[i % 3][i / 3] = rig_send(&r, hanging[i % 3]);
    int64_t beside = run_many(&r);
    /* One start of each tag hangs, in a thread of its own, and the others of the tag wait for it.
     * There are also the main thread, that of the loop, and some that stand by. */
    assert_in_range(rig_count_proc(&r, "task"), 6, 9);
    link_send_kill(r.link, busy, MESSAGE_KILL_CANCELLED); /* everything else goes on, too */
    assert_int_equal(rig_end(&r, busy)->m.result.outcome, OUTCOME_CANCELLED);
    assert_true(beside < GIVEN_UP_MS - 2000 || beside < 10 * alone);
    for (size_t tag = 0; tag < 3; tag++) {
        const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, jobs[tag][0]);
        assert_true(back->m.returned.cannot_start);
        assert_memory_equal(back->error, why[tag], strlen(why[tag]));
        /* what nobody has started does not hang, but waits or comes back */
        for (size_t i = 0; i < 3; i++) {
            assert_null(rig_find(&r, MESSAGE_STARTED, jobs[tag][i]));
            assert_null(rig_find(&r, MESSAGE_RESULT, jobs[tag][i]));
        }
    }
    close_gated(&r);
}

static void start_that_hung_goes_on(void **state)
{
    (void)state;
    uint32_t jobs[3];
    struct rig r;

    open_gated(&r);
    start_hanging(&r, jobs);
    open_gate();
    assert_string_equal(rig_end(&r, jobs[0])->output, "opened\n");
    for (size_t i = 1; i < 3; i++)
        assert_int_equal(rig_end(&r, jobs[i])->m.result.outcome, OUTCOME_DONE);
    for (size_t i = 0; i < 3; i++) /* and the tag is as good as before */
        assert_int_equal(rig_end(&r, rig_send(&r, hanging[i]))->m.result.outcome, OUTCOME_DONE);
    close_gated(&r);
}

/* The loop is handed on again and again, also while the one it is handed on from comes back. */
static void starts_that_take_a_while_are_each_made_once(void **state)
{
    (void)state;
    enum { JOBS = 160 };
    char tag[16];
    struct rig r;

    open_gated(&r);
    for (int i = 0; i < JOBS; i++) {
        snprintf(tag, sizeof tag, i % 4 ? "slow-%d" : "t", i % 10);
        rig_send(&r, tag);
    }
    for (uint32_t job = 1; job <= JOBS; job++)
        assert_string_equal(rig_end(&r, job)->output, "fine\n");
    assert_int_equal(rig_count(&r, MESSAGE_STARTED), JOBS);
    assert_int_equal(rig_count(&r, MESSAGE_RESULT), JOBS);
    close_gated(&r);
}

static void hanging_start_can_be_cancelled(void **state)
{
    (void)state;
    uint32_t jobs[3];
    struct rig r;

    open_gated(&r);
    start_hanging(&r, jobs);
    for (size_t i = 0; i < 3; i++)
        link_send_kill(r.link, jobs[i], MESSAGE_KILL_CANCELLED);
    for (size_t i = 0; i < 3; i++) {
        const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, jobs[i]);
        assert_false(back->m.returned.cannot_start);
        assert_null(rig_find(&r, MESSAGE_STARTED, jobs[i]));
    }
    close_gated(&r);
}

/* Processes of this program that wait in execve or chdir. */
static pid_t find_hanging(struct rig *r)
{
    char path[300], text[32] = "";

    rig_ping(r);
    for (pid_t pid = link_pid(r->link) + 1; pid < link_pid(r->link) + 2000; pid++) {
        snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
        FILE *f = fopen(path, "r");
        if (f && fgets(text, sizeof text, f) && strcmp(text, "dqd-runner\n") == 0) {
            fclose(f);
            return pid;
        }
        if (f)
            fclose(f);
    }
    return 0;
}

static void runner_that_dies_takes_hanging_starts_along(void **state)
{
    (void)state;
    struct rig r;
    pid_t pid;

    open_gated(&r);
    rig_send(&r, "exec");
    while (!(pid = find_hanging(&r)))
        usleep(10000);
    assert_int_equal(kill(link_pid(r.link), SIGKILL), 0);
    rig_wait(&r, MESSAGE_GONE, 0);
    while (rig_alive(pid))
        usleep(10000);
    close_gated(&r);
}

static void poller_that_goes_is_not_held_up(void **state)
{
    (void)state;
    uint32_t jobs[3];
    struct rig r;

    open_gated(&r);
    start_hanging(&r, jobs);
    int64_t from = when_steady();
    link_stop(r.link, 120000);
    assert_true(when_steady() - from < 60000);
    r.link = NULL;
    close_gated(&r);
}

static void reload_that_hangs_holds_up_nothing(void **state)
{
    (void)state;
    struct rig r;

    open_gated(&r);
    rig_write_handlers(&r, "handlers:\n  t: {run: echo new, user: hangs-account}\n");
    for (int i = 0; i < 5; i++) /* the first, and one more for the others */
        link_send_reload(r.link, r.handlers->digest);
    for (int i = 0; i < 20; i++)
        assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "fine\n");
    assert_int_equal(rig_count(&r, MESSAGE_RELOADED), 0);
    open_gate();
    while (rig_count(&r, MESSAGE_RELOADED) < 2)
        rig_ping(&r);
    for (int i = 0; i < 20; i++)
        /* by the table that its jobs name */
        assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "fine\n");
    assert_int_equal(rig_count(&r, MESSAGE_RELOADED), 2);
    close_gated(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hanging_start_costs_its_tag_only),
        cmocka_unit_test(start_that_hung_goes_on),
        cmocka_unit_test(starts_that_take_a_while_are_each_made_once),
        cmocka_unit_test(hanging_start_can_be_cancelled),
        cmocka_unit_test(runner_that_dies_takes_hanging_starts_along),
        cmocka_unit_test(poller_that_goes_is_not_held_up),
        cmocka_unit_test(reload_that_hangs_holds_up_nothing),
    };

    return cmocka_run_group_tests_name("runner: hang", tests, NULL, NULL);
}
