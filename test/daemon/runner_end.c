/*
 * runner_end.c - how handlers end: by themselves, by a signal, by timeout; and what is kept of
 * their output.
 */
#include "runner_rig.h"

#include "base/buf.h"
#include "base/mem.h"

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

static void check_end(const struct rig_report *end, enum task_outcome outcome, int exit_code,
                      int sig, bool permanent, const char *error)
{
    assert_int_equal(end->m.result.outcome, outcome);
    assert_int_equal(end->m.result.exit_code, exit_code);
    assert_int_equal(end->m.result.signal, sig);
    assert_int_equal(end->m.result.permanent, permanent);
    assert_int_equal(end->m.result.retry_after_ms, -1);
    if (error)
        assert_string_equal(end->error, error);
    else
        assert_null(end->error);
}

static void exit_status_and_signal_are_told_apart(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n"
             "  ok: {run: exit 0}\n"
             "  again: {run: exit 75}\n"
             "  never: {run: exit 65}\n"
             "  own: {run: exit 3, permanent_exit_codes: [3]}\n"
             "  term: {run: 'kill $$; sleep 1000'}\n"
             "  kill: {run: kill -9 $$}\n",
             4);
    check_end(rig_end(&r, rig_send(&r, "ok")), OUTCOME_DONE, 0, 0, false, NULL);
    check_end(rig_end(&r, rig_send(&r, "again")), OUTCOME_EXIT, 75, 0, false, "exit status 75");
    check_end(rig_end(&r, rig_send(&r, "never")), OUTCOME_EXIT, 65, 0, true, "exit status 65");
    check_end(rig_end(&r, rig_send(&r, "own")), OUTCOME_EXIT, 3, 0, true, "exit status 3");
    check_end(rig_end(&r, rig_send(&r, "term")), OUTCOME_SIGNAL, -1, SIGTERM, false,
              "signal 15 (Terminated)");
    check_end(rig_end(&r, rig_send(&r, "kill")), OUTCOME_SIGNAL, -1, SIGKILL, false,
              "signal 9 (Killed)");
    rig_close(&r);
}

static void error_quotes_the_last_line_of_the_output(void **state)
{
    (void)state;
    struct rig r;
    char *longest = mem_alloc(1000);

    rig_open(
        &r,
        "handlers:\n"
        "  exit: {run: 'echo fine; printf \"no such \\\\033[31maccount\\\\033[0m: 4711\\n\\n\" >&2; exit 65'}\n"
        "  signal: {run: 'echo reading row 17; kill -9 $$'}\n"
        "  stderr: {run: 'echo why >&2; echo; exit 1'}\n"
        "  long: {run: 'head -c 100000 /dev/zero | tr \"\\\\0\" x; exit 1'}\n"
        "  fine: {run: echo all is well}\n",
        4);
    check_end(rig_end(&r, rig_send(&r, "exit")), OUTCOME_EXIT, 65, 0, true,
              "exit status 65: no such account: 4711");
    check_end(rig_end(&r, rig_send(&r, "signal")), OUTCOME_SIGNAL, -1, SIGKILL, false,
              "signal 9 (Killed): reading row 17");
    check_end(rig_end(&r, rig_send(&r, "stderr")), OUTCOME_EXIT, 1, 0, false, "exit status 1: why");
    memset(longest, 'x', 1000);
    memcpy(longest, "exit status 1: ", 15);
    strcpy(longest + 15 + 200, "…");
    check_end(rig_end(&r, rig_send(&r, "long")), OUTCOME_EXIT, 1, 0, false, longest);
    check_end(rig_end(&r, rig_send(&r, "fine")), OUTCOME_DONE, 0, 0, false, NULL);
    free(longest);
    rig_close(&r);
}

static void times_of_start_and_end_are_reported(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: sleep 0.1}\n", 4);
    uint32_t job = rig_send(&r, "t");
    int64_t finish_us = rig_end(&r, job)->m.result.finish_us;
    assert_true(finish_us - rig_find(&r, MESSAGE_STARTED, job)->m.started.at_us >= 100000);
    rig_close(&r);
}

static void timeout_ends_a_handler(void **state)
{
    (void)state;
    struct rig r;

    rig_open(
        &r,
        "defaults: {timeout: 100ms, kill_grace: 60s}\n"
        "handlers:\n"
        "  plain: {run: sleep 1000}\n"
        "  tidy: {run: 'trap \"echo bye; exit 0\" TERM; while :; do sleep 0.01; done', timeout: 2s}\n"
        "  stopped: {run: 'kill -STOP $$'}\n",
        8);
    check_end(rig_end(&r, rig_send(&r, "plain")), OUTCOME_TIMEOUT, -1, SIGTERM, false,
              "timed out after 100ms (TERM)");
    const struct rig_report *end = rig_end(&r, rig_send(&r, "tidy"));
    check_end(end, OUTCOME_TIMEOUT, 0, 0, false, "timed out after 2s (TERM): bye");
    assert_non_null(strstr(end->output, "bye\n"));
    check_end(rig_end(&r, rig_send(&r, "stopped")), OUTCOME_TIMEOUT, -1, SIGTERM, false,
              "timed out after 100ms (TERM)");
    rig_close(&r);
}

static void handler_that_ignores_term_is_killed(void **state)
{
    (void)state;
    struct rig r;

    rig_open(
        &r,
        "defaults: {timeout: 2s, kill_grace: 100ms}\n"
        "handlers:\n"
        "  t: {run: 'trap \"\" TERM; sleep 1000 & echo $! >@DIR@/child; sleep 1000; sleep 1000'}\n",
        4);
    check_end(rig_end(&r, rig_send(&r, "t")), OUTCOME_TIMEOUT, -1, SIGKILL, false,
              "timed out after 2s (TERM, then KILL after 100ms)");
    char *child = rig_read_file(&r, "child");
    rig_until_gone(&r, atoi(child));
    free(child);
    rig_close(&r);
}

static void timeout_holds_in_every_shape_of_shell(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "sleep 1000 | cat",     "(sleep 1000)",    "x=$(sleep 1000)",     "sleep 1000 & wait",
        "yes | cat >/dev/null", "exec sleep 1000", "while :; do :; done",
    };
    static const char *const shells[] = {"/bin/dash", "/bin/bash"};
    const size_t n = sizeof shapes / sizeof shapes[0];
    struct buf yaml = BUF_INIT;
    struct rig r;
    char tag[16];

    buf_str(&yaml, "defaults: {timeout: 100ms, kill_grace: 60s}\nhandlers:\n");
    for (size_t i = 0; i < 2 * n; i++)
        buf_printf(&yaml, "  t%zu: {run: '%s', shell: %s}\n", i, shapes[i % n], shells[i / n]);
    rig_open(&r, yaml.data, 32);
    for (size_t i = 0; i < 2 * n; i++) {
        snprintf(tag, sizeof tag, "t%zu", i);
        rig_send(&r, tag);
    }
    for (uint32_t job = 1; job <= 2 * n; job++)
        assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_TIMEOUT);
    buf_done(&yaml);
    rig_close(&r);
}

static void cancelled_handler_ends_so_even_with_status_0(void **state)
{
    (void)state;
    struct rig r;

    rig_open(
        &r,
        "handlers:\n  t: {run: 'trap \"exit 0\" TERM; echo x >@DIR@/up; while :; do sleep 0.01; done'}\n",
        2);
    uint32_t job = rig_send(&r, "t");
    free(rig_read_file(&r, "up"));
    link_send_kill(r.link, job, MESSAGE_KILL_CANCELLED);
    link_send_kill(r.link, job, MESSAGE_KILL_SHUTDOWN); /* the first reason counts */
    link_send_kill(r.link, 4711, MESSAGE_KILL_LOST);    /* nobody's */
    check_end(rig_end(&r, job), OUTCOME_CANCELLED, 0, 0, false, "cancelled while it ran");
    rig_close(&r);
}

/* ---- output */

static void output_and_errors_come_in_order(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n  t: {run: 'echo 1; echo 2 >&2; echo 3; printf \"a\\0b\\377\"; exit 1'}\n",
             2);
    const struct rig_report *end = rig_end(&r, rig_send(&r, "t"));
    assert_int_equal(end->m.result.output_size, 10);
    assert_memory_equal(end->output, "1\n2\n3\na\0b\377", 10);
    rig_close(&r);
}

static void tail_of_output_is_kept(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n"
             "  t: {run: seq 100000, output_limit: 19}\n"
             "  none: {run: seq 1000, output_limit: 0}\n"
             "  all: {run: seq 100000, output_limit: 1m}\n"
             "  utf8: {run: 'printf \"ääääääxx\"', output_limit: 9}\n",
             2);
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "99998\n99999\n100000\n");
    assert_int_equal(rig_end(&r, rig_send(&r, "none"))->m.result.output_size, 0);
    const struct rig_report *all = rig_end(&r, rig_send(&r, "all"));
    assert_int_equal(all->m.result.output_size, 588895);
    assert_memory_equal(all->output + 588895 - 13, "99999\n100000\n", 13);
    /* not half a character */
    assert_string_equal(rig_end(&r, rig_send(&r, "utf8"))->output, "äääxx");
    rig_close(&r);
}

static long peak_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    fclose(f);
    return kib;
}

static void endless_output_is_bounded_and_starves_nobody(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r,
             "handlers:\n"
             "  flood: {run: head -c 1G /dev/zero; exit 3, timeout: 1h}\n"
             "  noise: {run: yes, timeout: 1h}\n"
             "  batch: {run: 'tr \"\\0\" x </dev/zero', batch: 2, timeout: 1h}\n"
             "  t: {run: echo hello}\n",
             8);
    rig_ping(&r);
    long before = peak_kib(link_pid(r.link));
    uint32_t flood = rig_send(&r, "flood"), noise = rig_send(&r, "noise"),
             batch = rig_send(&r, "batch");
    for (int i = 0; i < 20; i++)
        assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "hello\n");
    const struct rig_report *end = rig_end(&r, flood);
    assert_int_equal(end->m.result.exit_code, 3);
    assert_int_equal(end->m.result.output_size, 8192);
    link_send_kill(r.link, noise, MESSAGE_KILL_CANCELLED);
    link_send_kill(r.link, batch, MESSAGE_KILL_CANCELLED);
    assert_int_equal(rig_end(&r, noise)->m.result.outcome, OUTCOME_CANCELLED);
    assert_int_equal(rig_end(&r, batch)->m.result.outcome, OUTCOME_CANCELLED);
#ifndef __SANITIZE_ADDRESS__
    assert_in_range(peak_kib(link_pid(r.link)) - before, 0, 4096);
#else
    (void)before;
#endif
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_status_and_signal_are_told_apart),
        cmocka_unit_test(error_quotes_the_last_line_of_the_output),
        cmocka_unit_test(times_of_start_and_end_are_reported),
        cmocka_unit_test(timeout_ends_a_handler),
        cmocka_unit_test(handler_that_ignores_term_is_killed),
        cmocka_unit_test(timeout_holds_in_every_shape_of_shell),
        cmocka_unit_test(cancelled_handler_ends_so_even_with_status_0),
        cmocka_unit_test(output_and_errors_come_in_order),
        cmocka_unit_test(tail_of_output_is_kept),
        cmocka_unit_test(endless_output_is_bounded_and_starves_nobody),
    };

    return cmocka_run_group_tests_name("runner: end", tests, NULL, NULL);
}
