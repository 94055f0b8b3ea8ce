/*
 * program.c - the real programs, started as a user starts them. Nothing here imitates dqd.
 *
 * Invariant: if this process is killed, what it started dies too, or ends by itself.
 */
#include "bench/program.h"

#include "base/interrupt.h"
#include "base/when.h"
#include "bench/statement.h"
#include "store/ask/tag_store.h"
#include "store/ask/task_list.h"
#include "store/fleet/poller_store.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 500
#define PROCESSES_MAX 30000
#define BATCHED_MAX 100000
#define LATE_MAX 200
#define LATE_EVERY_MS 20
#define LATE_AHEAD_MS 500 /* from their adding to the first */
#define PATIENCE_MS 20000 /* beyond what it should take */
#define NAP_MS 20
#define END_MS 5000 /* for TERM to work */

extern char **environ;

static int spawn(const char *const *argv, const char *output, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t signals;

    sigfillset(&signals);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &signals);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(ret, argv[0], &files, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Starts argv[0] with its standard output and error in the file `output`, and default signal
 * dispositions. */
static int start_program(const char *const *argv, const char *output, pid_t *ret, struct err *err)
{
    int error = spawn(argv, output, ret);

    return error ? err_set(err, ERR_SYSTEM, "cannot start %s: %s", argv[0], strerror(error)) : 0;
}

/* Waits for its end and returns its status as waitpid(2) gives it. After timeout_ms, or when
 * stop_asked(), it gets TERM, and KILL if that does not help. */
static int wait_for_end(pid_t pid, int64_t timeout_ms)
{
    const struct timespec nap = {0, 1000000};
    int64_t term_at = when_steady() + timeout_ms, kill_at = INT64_MAX;
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        int64_t now = when_steady();
        if (kill_at == INT64_MAX && (now >= term_at || interrupt_asked())) {
            kill(pid, SIGTERM);
            kill_at = now + END_MS;
        } else if (now >= kill_at) {
            kill(pid, SIGKILL);
        }
        nanosleep(&nap, NULL);
    }
    return status;
}

/* The end of the last line that a program wrote. */
static void last_line(const struct rig *rig, char *ret, size_t size)
{
    char line[512];
    FILE *f = fopen(rig->log, "re");

    snprintf(ret, size, "it printed nothing");
    while (f && fgets(line, sizeof line, f))
        snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
}

static void set_failed(const struct rig *rig, struct figure *ret, const char *what, int status)
{
    char said[160];

    last_line(rig, said, sizeof said);
    if (WIFEXITED(status))
        figure_set_unknown(ret, "%s ended with status %d: %s", what, WEXITSTATUS(status), said);
    else
        figure_set_unknown(ret, "%s was killed by signal %d: %s", what, WTERMSIG(status), said);
}

int program_add_command(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    const char *const argv[] = {"/proc/self/exe", "--config", rig->ini, "-q", "add", "add", "x",
                                "--in",           "1h",       NULL};
    struct figure_times t = {0};
    int64_t end_us = when_steady_us() + ms * 1000;
    int rc = 0, status = 0;

    while (rc == 0 && status == 0 && t.count < COMMANDS_MAX && figure_goes_on(t.count, end_us)) {
        pid_t pid;
        int64_t start = when_steady_us();
        rc = start_program(argv, rig->log, &pid, err);
        if (rc == 0 && waitpid(pid, &status, 0) == pid)
            figure_times_add(&t, when_steady_us() - start);
    }
    figure_set_times(ret, &t);
    if (status)
        set_failed(rig, ret, "dq add", status);
    return rc;
}

static int start_dqd(const struct rig *rig, const char *mode, const char *mode_value,
                     const char *tag, pid_t *ret, struct err *err)
{
    const char *argv[] = {rig->dqd, "--config", rig->ini, "--allow-overlap", "--log-level", "warn",
                          "--tag",  tag,        mode,     mode_value,        NULL};

    return start_program(argv, rig->log, ret, err);
}

static int count_done(struct db *db, const char *tag, uint64_t *ret, struct err *err)
{
    struct tag_info *tags = NULL;
    size_t count = 0;
    int64_t now_at;
    int rc = tag_store_list(db, tag, &(struct tag_count_how){.exact = true}, &tags, &count, &now_at,
                            err);

    if (rc == 0)
        *ret = count ? tags[0].count[TASK_DONE] : 0;
    tag_store_free(tags, count);
    return rc;
}

/* All n tasks are due; the time is that from the start of dqd to its end. */
static int drain(const struct rig *rig, const char *tag, size_t n, int64_t ms, struct figure *ret,
                 struct err *err)
{
    struct db *db = rig->scratch->db;
    uint64_t done = 0;
    pid_t pid;
    int rc = statement_fill(db, tag, n, 0, 0, NULL, err);

    if (rc < 0 || interrupt_asked())
        return rc;
    int64_t start = when_steady_us();
    rc = start_dqd(rig, "--once", NULL, tag, &pid, err);
    if (rc < 0)
        return rc;
    int status = wait_for_end(pid, 2 * ms + PATIENCE_MS);
    int64_t us = when_steady_us() - start;
    rc = count_done(db, tag, &done, err);
    if (rc == 0 && (status || !done))
        set_failed(rig, ret, "dqd", status);
    else if (rc == 0)
        figure_set_rate(ret, (double)done, us);
    return rc;
}

static bool have_dqd(const struct rig *rig, struct figure *ret)
{
    if (!rig->dqd)
        figure_set_unknown(ret, "not measured: there is no dqd beside dq, nor in PATH");
    return rig->dqd;
}

static size_t between(double wanted, size_t least, size_t most)
{
    return wanted < (double)least ? least : wanted > (double)most ? most : (size_t)wanted;
}

/* Seconds that a task takes for what this figure measures; none if that is not known. */
static double seconds(const struct rig *rig, enum figure_id id)
{
    return rig->figures[id].known ? 1 / rig->figures[id].value : 0;
}

int program_run(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    double each_s = seconds(rig, FIGURE_ADD_BULK) + seconds(rig, FIGURE_SPAWN_PARALLEL);

    if (!have_dqd(rig, ret))
        return 0;
    return drain(rig, RIG_TAG_PROCESS, between((double)ms / 1000 / each_s, 100, PROCESSES_MAX), ms,
                 ret, err);
}

int program_run_batch(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    double each_s =
        seconds(rig, FIGURE_ADD_BULK) + seconds(rig, FIGURE_CLAIM) + seconds(rig, FIGURE_SETTLE);

    if (!have_dqd(rig, ret))
        return 0;
    return drain(rig, RIG_TAG_BATCH, between((double)ms / 1000 / each_s, 1000, BATCHED_MAX), ms,
                 ret, err);
}

/* ---- lateness */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
}

/* Waits until dqd has said that it polls. 1, or 0: it has not, or the end was asked for. */
static int wait_for_poller(struct db *db, pid_t pid, struct err *err)
{
    int64_t until = when_steady() + PATIENCE_MS;

    while (!interrupt_asked() && when_steady() < until) {
        struct poller_info *pollers;
        size_t count, at = 0;
        int rc = poller_store_list(db, &pollers, &count, err);
        if (rc < 0)
            return rc;
        while (at < count && pollers[at].pid != (uint32_t)pid)
            at++;
        poller_store_free(pollers, count);
        if (at < count)
            return 1;
        nap();
    }
    return 0;
}

static int run_planned(struct db *db, pid_t pid, size_t n, int64_t spread_ms, struct err *err)
{
    uint64_t done = 0;
    int rc = wait_for_poller(db, pid, err);

    if (rc <= 0)
        return rc;
    rc = statement_fill(db, RIG_TAG_LATE, n, LATE_AHEAD_MS, spread_ms, NULL, err);
    int64_t until = when_steady() + LATE_AHEAD_MS + spread_ms + PATIENCE_MS;
    while (rc == 0 && done < n && !interrupt_asked() && when_steady() < until) {
        nap();
        rc = count_done(db, RIG_TAG_LATE, &done, err);
    }
    return rc;
}

static int add_lateness(const struct task *t, void *arg)
{
    figure_times_add(arg, (t->execution_at - MAX(t->expected_at, t->create_at)) * 1000);
    return 0;
}

/* From the rows: when each was to be started, and when it was. */
static int read_lateness(struct db *db, struct figure *ret, struct err *err)
{
    struct figure_times times = {0};
    struct task_filter f = {.tag_glob = RIG_TAG_LATE, .statuses = TASK_BIT(TASK_DONE)};

    int rc = task_list(db, &f, false, add_lateness, &times, err);
    figure_set_times(ret, &times);
    return rc;
}

int program_lateness(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct db *db = rig->scratch->db;
    size_t n = between((double)ms / LATE_EVERY_MS, 20, LATE_MAX);
    int64_t spread_ms = (int64_t)n * LATE_EVERY_MS;
    char lives_for[WHEN_TEXT_SIZE];
    pid_t pid;

    if (!have_dqd(rig, ret))
        return 0;
    /* for a time, not resident: nobody would end it after a kill -9 of ours */
    when_format_duration(lives_for, spread_ms + 3 * (int64_t)PATIENCE_MS);
    int rc = start_dqd(rig, "--for", lives_for, RIG_TAG_LATE, &pid, err);
    if (rc < 0)
        return rc;
    rc = run_planned(db, pid, n, spread_ms, err);
    int status = wait_for_end(pid, 0);
    if (rc == 0)
        rc = read_lateness(db, ret, err);
    if (rc == 0 && !ret->known)
        set_failed(rig, ret, "dqd", status);
    return rc;
}

/* ---- starts per second */

/* Keeps in_flight shells running until the time is over. */
static int measure(int in_flight, int64_t ms, struct figure *ret, struct err *err)
{
    static const char *const argv[] = {"/bin/sh", "-c", ":", NULL};
    int64_t start = when_steady_us(), end_us = start + ms * 1000;
    size_t started = 0;
    int running = 0, error = 0;

    while (error == 0 && figure_goes_on(started, end_us)) {
        pid_t pid;
        for (; error == 0 && running < in_flight; running++, started++)
            if ((error = spawn(argv, "/dev/null", &pid)) != 0)
                break;
        if (running && waitpid(-1, NULL, 0) > 0)
            running--;
    }
    while (running && waitpid(-1, NULL, 0) > 0)
        running--;
    if (error)
        return err_set(err, ERR_SYSTEM, "cannot start /bin/sh: %s", strerror(error));
    figure_set_rate(ret, (double)started, when_steady_us() - start);
    return 0;
}

int program_spawn_one_by_one(struct rig *rig __attribute__((unused)), int64_t ms,
                             struct figure *ret, struct err *err)
{
    return measure(1, ms, ret, err);
}

/* The best of as many in flight as there are cores, and of twice as many. */
int program_spawn_parallel(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct figure twice = {.known = false};
    int cores = rig->cores, rc = measure(cores, ms / 2, ret, err);

    if (rc == 0)
        rc = measure(2 * cores, ms / 2, &twice, err);
    bool better = twice.value > ret->value;
    if (better)
        *ret = twice;
    snprintf(ret->why, sizeof ret->why, "the same, %d at a time, on %d core%s",
             better ? 2 * cores : cores, cores, cores == 1 ? "" : "s");
    return rc;
}
