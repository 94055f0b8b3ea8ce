/*
 * spawn.c - processes: start, wait, count.
 *
 * Invariant: if this process is killed, what it started dies too, or ends by itself.
 */
#include "bench/spawn.h"

#include "base/interrupt.h"
#include "base/when.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

int spawn_start(const char *const *argv, const char *output, pid_t *ret, struct err *err)
{
    int error = spawn(argv, output, ret);

    return error ? err_set(err, ERR_SYSTEM, "cannot start %s: %s", argv[0], strerror(error)) : 0;
}

int spawn_wait(pid_t pid, int64_t timeout_ms)
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

int spawn_one_by_one(struct rig *rig __attribute__((unused)), int64_t ms, struct figure *ret,
                     struct err *err)
{
    return measure(1, ms, ret, err);
}

/* The best of as many in flight as there are cores, and of twice as many. */
int spawn_parallel(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
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
