/*
 * bench_process.c - processes: how many this host starts in a second, and dq and dqd with files of their own.
 *
 * Invariant: what is started has no descriptor of ours above 2 and dies or ends by itself when we are killed; what it reads
 * names files with secrets but has none.
 */
#include "cli/bench.h"

#include "base/mem.h"
#include "base/when.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS 1024 /* far more than dq ever has */
#define END_MS 5000      /* for TERM to work */

extern char **environ;

/* ---- the directory */

static int write_file(const char *dir, const char *name, const struct buf *text, struct err *err)
{
    char *path = mem_printf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = 0;

    if (fd < 0 || write(fd, text->data, text->len) != (ssize_t)text->len)
        rc = err_set(err, ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* The configured settings, but on the scratch database and with handlers that do nothing. */
static int write_files(struct bench *b, struct err *err)
{
    static char handlers[] = "handlers.yaml", none[] = "";
    struct conf conf = *b->c->conf;
    struct buf ini = BUF_INIT, yaml = BUF_INIT;

    conf.mysql = b->conf;
    conf.dqd.handlers = handlers;
    conf.dqd.lock_file = none;
    conf.dqd.wake_dir = none;
    conf_put_section(&ini, &conf, "mysql");
    conf_put_section(&ini, &conf, "dqd");
    buf_printf(
        &yaml,
        "defaults:\n  max_running: %d\n"
        "handlers:\n  process:\n    run: ':'\n  batch:\n    run: exec cat >/dev/null\n    batch: 500\n  late:\n    run: ':'\n",
        conf.dqd.slots);
    int rc = write_file(b->dir, "dq.ini", &ini, err);
    if (rc == 0)
        rc = write_file(b->dir, "handlers.yaml", &yaml, err);
    buf_done(&ini);
    buf_done(&yaml);
    return rc;
}

static char *find_in_path(const char *name)
{
    const char *path = getenv("PATH");

    for (const char *p = path ? path : ""; *p; p += *p == ':') {
        size_t len = strcspn(p, ":");
        char *try = mem_printf("%.*s/%s", (int)len, p, name);
        if (*p == '/' && access(try, X_OK) == 0)
            return try;
        free(try);
        p += len;
    }
    return NULL;
}

/* Beside dq, else in PATH; NULL. */
static char *find_dqd(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    if (len > 0) {
        self[len] = '\0';
        char *beside = mem_printf("%.*s/dqd", (int)(strrchr(self, '/') - self), self);
        if (access(beside, X_OK) == 0)
            return beside;
        free(beside);
    }
    return find_in_path("dqd");
}

int bench_process_init(struct bench *b, struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    cpu_set_t cpus;

    b->cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    unsetenv("NOTIFY_SOCKET"); /* of a unit that runs dq bench: nothing of its dqd's business */
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC); /* the lock of the scratch database ends with our connection: nobody may keep that open */
    b->dqd = find_dqd();
    b->dir = mem_printf("%s/dq-bench.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (!mkdtemp(b->dir)) {
        int rc = err_set(err, ERR_SYSTEM, "cannot make a directory %s: %s", b->dir, strerror(errno));
        free(b->dir);
        b->dir = NULL;
        return rc;
    }
    return write_files(b, err);
}

void bench_process_done(struct bench *b)
{
    static const char *const names[] = {"dq.ini", "handlers.yaml", "log"};

    for (size_t i = 0; b->dir && i < sizeof names / sizeof names[0]; i++) {
        char *path = mem_printf("%s/%s", b->dir, names[i]);
        unlink(path);
        free(path);
    }
    if (b->dir)
        rmdir(b->dir);
    free(b->dir);
    free(b->dqd);
}

/* ---- processes */

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

int bench_process_start(struct bench *b, const char *const *argv, const char *output, pid_t *ret, struct err *err)
{
    char *path = output ? mem_printf("%s/%s", b->dir, output) : mem_strdup("/dev/null");
    int error = spawn(argv, path, ret);

    free(path);
    return error ? err_set(err, ERR_SYSTEM, "cannot start %s: %s", argv[0], strerror(error)) : 0;
}

int bench_process_wait(pid_t pid, int64_t timeout_ms)
{
    const struct timespec nap = {0, 1000000};
    int64_t term_at = when_steady() + timeout_ms, kill_at = INT64_MAX;
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        int64_t now = when_steady();
        if (kill_at == INT64_MAX && (now >= term_at || bench_stopped())) {
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

/* Keeps in_flight shells running until the time is over; how many were started per second. */
static int spawn_rate(int in_flight, int64_t ms, double *ret, struct err *err)
{
    static const char *const argv[] = {"/bin/sh", "-c", ":", NULL};
    int64_t start = when_steady_us(), end_us = start + ms * 1000;
    size_t started = 0;
    int running = 0, error = 0;

    while (error == 0 && bench_more(started, end_us)) {
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
    *ret = (double)started * 1e6 / (double)(when_steady_us() - start);
    return 0;
}

int bench_spawn(struct bench *b, int64_t ms, struct err *err)
{
    double rate = 0;
    int rc = spawn_rate(1, ms, &rate, err);

    if (rc == 0)
        bench_set_rate(b, BENCH_SPAWN, rate, 1000000);
    return rc;
}

/* The best of as many in flight as there are cores, and of twice as many. */
int bench_spawn_parallel(struct bench *b, int64_t ms, struct err *err)
{
    double best = 0;
    int best_at = 0;

    for (int k = 1; k <= 2; k++) {
        double rate = 0;
        int rc = spawn_rate(k * b->cores, ms / 2, &rate, err);
        if (rc < 0)
            return rc;
        if (rate > best) {
            best = rate;
            best_at = k * b->cores;
        }
    }
    bench_set_rate(b, BENCH_SPAWN_PARALLEL, best, 1000000);
    snprintf(b->figures[BENCH_SPAWN_PARALLEL].why, sizeof b->figures[0].why, "the same, %d at a time, on %d core%s", best_at,
             b->cores, b->cores == 1 ? "" : "s");
    return 0;
}
