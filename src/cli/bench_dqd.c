/*
 * bench_dqd.c - the real programs against the scratch database: what a shell pays for `dq add`, what dqd gets through, how late it
 * starts what is planned.
 *
 * Nothing of dqd is imitated here: where it is not found, or does not run, its figures stay unknown and say why.
 */
#include "cli/bench.h"

#include "base/mem.h"
#include "base/when.h"
#include "store/poller_store.h"
#include "store/tag_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define COMMANDS_MAX 500
#define PROCESSES_MAX 30000
#define BATCHED_MAX 100000
#define LATE_MAX 200
#define LATE_EVERY_MS 20
#define LATE_AHEAD_MS 500 /* from their adding to the first */
#define PATIENCE_MS 20000 /* beyond what it should take */
#define NAP_MS 20
#define LOG "log"

static char *file_of(const struct bench *b, const char *name)
{
    return mem_printf("%s/%s", b->dir, name);
}

/* The end of the last line that a program wrote. */
static void last_line(const struct bench *b, char *ret, size_t size)
{
    char *path = file_of(b, LOG), line[512];
    FILE *f = fopen(path, "re");

    snprintf(ret, size, "it said nothing");
    while (f && fgets(line, sizeof line, f))
        snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
    free(path);
}

static void set_failed(struct bench *b, enum bench_measure m, const char *what, int status)
{
    char said[160];

    last_line(b, said, sizeof said);
    if (WIFEXITED(status))
        bench_set_unknown(b, m, "%s ended with status %d: %s", what, WEXITSTATUS(status), said);
    else
        bench_set_unknown(b, m, "%s ended by signal %d: %s", what, WTERMSIG(status), said);
}

int bench_add_command(struct bench *b, int64_t ms, struct err *err)
{
    char *ini = file_of(b, "dq.ini");
    const char *const argv[] = {"/proc/self/exe", "--config", ini, "-q", "add", "add", "x", "--in", "1h", NULL};
    struct bench_times t = {0};
    int64_t end_us = when_steady_us() + ms * 1000;
    int rc = 0, status = 0;

    while (rc == 0 && status == 0 && t.count < COMMANDS_MAX && bench_more(t.count, end_us)) {
        pid_t pid;
        int64_t start = when_steady_us();
        rc = bench_process_start(b, argv, LOG, &pid, err);
        if (rc == 0 && waitpid(pid, &status, 0) == pid)
            bench_times_add(&t, when_steady_us() - start);
    }
    bench_set_times(b, BENCH_ADD_COMMAND, &t);
    if (status)
        set_failed(b, BENCH_ADD_COMMAND, "dq add", status);
    free(ini);
    return rc;
}

static int start_dqd(struct bench *b, const char *mode, const char *mode_value, const char *tag, pid_t *ret, struct err *err)
{
    char *ini = file_of(b, "dq.ini");
    const char *argv[] = {b->dqd, "--config", ini, "--allow-overlap", "--log-level", "warn", "--tag", tag, mode, mode_value, NULL};
    int rc = bench_process_start(b, argv, LOG, ret, err);

    free(ini);
    return rc;
}

static int count_done(struct bench *b, const char *tag, uint64_t *ret, struct err *err)
{
    struct tag_info *tags = NULL;
    size_t count = 0;
    int64_t now_at;
    int rc = tag_store_list(b->db, tag, true, &tags, &count, &now_at, err);

    if (rc == 0)
        *ret = count ? tags[0].count[TASK_DONE] : 0;
    tag_infos_free(tags, count);
    return rc;
}

/* As many tasks as should take so long: all of them are due, dqd runs from its start to its end. */
static int drain(struct bench *b, enum bench_measure m, const char *tag, size_t n, int64_t ms, struct err *err)
{
    uint64_t done = 0;
    pid_t pid;
    int rc = bench_fill(b, tag, n, 0, 0, NULL, err);

    if (rc < 0 || bench_stopped())
        return rc;
    int64_t start = when_steady_us();
    rc = start_dqd(b, "--once", NULL, tag, &pid, err);
    if (rc < 0)
        return rc;
    int status = bench_process_wait(pid, 2 * ms + PATIENCE_MS);
    int64_t us = when_steady_us() - start;
    rc = count_done(b, tag, &done, err);
    if (rc == 0 && (status || !done))
        set_failed(b, m, "dqd", status);
    else if (rc == 0)
        bench_set_rate(b, m, (double)done, us);
    return rc;
}

static bool have_dqd(struct bench *b, enum bench_measure m)
{
    if (!b->dqd)
        bench_set_unknown(b, m, "not measured: there is no dqd beside dq, nor in PATH");
    return b->dqd != NULL;
}

static size_t between(double wanted, size_t least, size_t most)
{
    return wanted < (double)least ? least : wanted > (double)most ? most : (size_t)wanted;
}

/* How long a task takes when it goes through all of these one after the other; 0 where one is not known. */
static double seconds_each(const struct bench *b, const enum bench_measure *m, size_t count)
{
    double s = 0;

    for (size_t i = 0; i < count; i++)
        s += b->figures[m[i]].known ? 1 / b->figures[m[i]].value : 0;
    return s;
}

int bench_run(struct bench *b, int64_t ms, struct err *err)
{
    static const enum bench_measure steps[] = {BENCH_ADD_BULK, BENCH_SPAWN_PARALLEL};
    double each = seconds_each(b, steps, 2);

    if (!have_dqd(b, BENCH_RUN))
        return 0;
    return drain(b, BENCH_RUN, "process", between((double)ms / 1000 / each, 100, PROCESSES_MAX), ms, err);
}

int bench_run_batch(struct bench *b, int64_t ms, struct err *err)
{
    static const enum bench_measure steps[] = {BENCH_ADD_BULK, BENCH_CLAIM, BENCH_SETTLE};
    double each = seconds_each(b, steps, 3);

    if (!have_dqd(b, BENCH_RUN_BATCH))
        return 0;
    return drain(b, BENCH_RUN_BATCH, "batch", between((double)ms / 1000 / each, 1000, BATCHED_MAX), ms, err);
}

/* ---- lateness */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
}

/* Waits until dqd has said that it polls. 1, or 0: it has not, or the end was asked for. */
static int wait_for_poller(struct bench *b, pid_t pid, struct err *err)
{
    int64_t until = when_steady() + PATIENCE_MS;

    while (!bench_stopped() && when_steady() < until) {
        struct poller_info *pollers;
        size_t count, at = 0;
        int rc = poller_store_list(b->db, &pollers, &count, err);
        if (rc < 0)
            return rc;
        while (at < count && pollers[at].pid != (uint32_t)pid)
            at++;
        poller_infos_free(pollers, count);
        if (at < count)
            return 1;
        nap();
    }
    return 0;
}

static int run_planned(struct bench *b, pid_t pid, size_t n, int64_t spread_ms, struct err *err)
{
    uint64_t done = 0;
    int rc = wait_for_poller(b, pid, err);

    if (rc <= 0)
        return rc;
    rc = bench_fill(b, "late", n, LATE_AHEAD_MS, spread_ms, NULL, err);
    int64_t until = when_steady() + LATE_AHEAD_MS + spread_ms + PATIENCE_MS;
    while (rc == 0 && done < n && !bench_stopped() && when_steady() < until) {
        nap();
        rc = count_done(b, "late", &done, err);
    }
    return rc;
}

/* From the rows: when each was to be started, and when it was. */
static int read_lateness(struct bench *b, struct err *err)
{
    struct bench_figure *f = &b->figures[BENCH_LATENESS];
    struct tag_lateness *late = NULL;
    size_t count = 0;
    int rc = tag_store_lateness(b->db, "late", WHEN_HOUR, &late, &count, err);

    if (rc == 0 && count && late[0].started)
        *f = (struct bench_figure){.known = true, .has_p99 = true, .value = (double)late[0].p50_ms, .p99 = (double)late[0].p99_ms};
    tag_lateness_free(late, count);
    return rc;
}

int bench_lateness(struct bench *b, int64_t ms, struct err *err)
{
    size_t n = between((double)ms / LATE_EVERY_MS, 20, LATE_MAX);
    int64_t spread_ms = (int64_t)n * LATE_EVERY_MS;
    char lives_for[WHEN_TEXT_SIZE];
    pid_t pid;

    if (!have_dqd(b, BENCH_LATENESS))
        return 0;
    /* for a time, not resident: nobody would end it after a kill -9 of ours */
    when_format_duration(lives_for, spread_ms + 3 * (int64_t)PATIENCE_MS);
    int rc = start_dqd(b, "--for", lives_for, "late", &pid, err);
    if (rc < 0)
        return rc;
    rc = run_planned(b, pid, n, spread_ms, err);
    int status = bench_process_wait(pid, 0);
    if (rc == 0)
        rc = read_lateness(b, err);
    if (rc == 0 && !b->figures[BENCH_LATENESS].known)
        set_failed(b, BENCH_LATENESS, "dqd", status);
    return rc;
}
