/*
 * spawn.c - how many processes a second: posix_spawn of `sh -c :`, or of PROGRAM, with nothing
 * around it, and the same as jobs of the runner, each with a body, its output captured, reported.
 *
 * usage: spawn [COUNT [IN_FLIGHT [ROUNDS [PROGRAM]]]]; prints the median of the rounds, which
 * alternate, and their ratio; and the same of the processor time that everything took together,
 * which says more on a machine that has other work.
 */
#include "base/when.h"
#include "runner/link.h"

#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define AHEAD 64 /* jobs handed over beyond those that run */
#define ROUNDS_MAX 99

extern char **environ;

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Processor time of this process and of all it has waited for, in microseconds. */
static double cpu_us(void)
{
    static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double sum = 0;

    for (int i = 0; i < 2; i++) {
        struct rusage u;
        getrusage(who[i], &u);
        sum += (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    }
    return sum;
}

static char *program; /* NULL: a shell */

static void spawn_bare(void)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)":", NULL}, *alone[] = {program, NULL};
    pid_t pid;

    if (posix_spawn(&pid, program ? program : "/bin/sh", NULL, NULL, program ? alone : argv,
                    environ) != 0)
        die("posix_spawn");
}

static double bare(int count, int in_flight)
{
    int64_t from = when_steady_us();
    int started = 0;

    while (started < in_flight && started < count) {
        spawn_bare();
        started++;
    }
    for (int ended = 0; ended < count; ended++) {
        if (waitpid(-1, NULL, 0) < 0)
            die("waitpid");
        if (started < count) {
            spawn_bare();
            started++;
        }
    }
    return count * 1e6 / (double)(when_steady_us() - from);
}

static void send_job(struct link *link, uint32_t number)
{
    static const char body[] = "{\"order\":4711}";
    const uint64_t id = number + 1;
    const struct message_job j = {.digest = 1,
                                  .tag = "bench",
                                  .vouched_us = INT64_MAX,
                                  .deadline_at = when_steady() + 60000,
                                  .input = body,
                                  .input_size = sizeof body - 1,
                                  .stdin_fd = -1,
                                  .ids = &id,
                                  .count = 1};
    link_send_job(link, number, &j);
}

static void next(struct link *link, int *ended)
{
    struct message m;
    struct err err;
    int rc = link_flush(link, &err);
    struct pollfd p = {.fd = link_fd(link), .events = POLLIN};

    if (rc < 0)
        die(err.text);
    if (rc > 0)
        p.events |= POLLOUT;
    poll(&p, 1, -1);
    while (link_next(link, &m)) {
        if (m.type == MESSAGE_GONE || m.type == MESSAGE_RETURNED) {
            fprintf(stderr, "spawn: %s\n",
                    m.type == MESSAGE_GONE ? "the runner died" : m.returned.error);
            exit(1);
        }
        *ended += m.type == MESSAGE_ENDED;
    }
}

static double linked(int count, int in_flight)
{
    struct handler h = {.name = (char *)"bench",
                        .run = program ? program : (char *)":",
                        .shell = program ? NULL : (char *)"/bin/sh",
                        .batch = 1,
                        .weight = 10,
                        .timeout_ms = 60000,
                        .kill_grace_ms = 5000,
                        .max_running = in_flight,
                        .cwd = (char *)"/",
                        .umask = 022,
                        .output_limit = 8192};
    const struct handlers table = {.digest = 1, .items = &h, .count = 1};
    const struct runner_options o = {.handlers = &table, .slots = 2 * in_flight};
    struct link *link;
    struct err err;
    int sent = 0, ended = 0;

    if (link_start(&o, &link, &err) != 0)
        die(err.text);
    int64_t from = when_steady_us();
    while (ended < count) {
        while (sent < count && sent < ended + in_flight + AHEAD)
            send_job(link, (uint32_t)sent++);
        next(link, &ended);
    }
    double rate = count * 1e6 / (double)(when_steady_us() - from);
    link_stop(link, 5000);
    return rate;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 3000, in_flight = argc > 2 ? atoi(argv[2]) : 2,
        rounds = argc > 3 ? atoi(argv[3]) : 5;

    program = argc > 4 ? argv[4] : NULL;
    double a[ROUNDS_MAX], b[ROUNDS_MAX], a_cpu[ROUNDS_MAX], b_cpu[ROUNDS_MAX];

    if (count < 1 || in_flight < 1 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: spawn [COUNT [IN_FLIGHT [ROUNDS [PROGRAM]]]]\n");
        return 64;
    }
    for (int i = 0; i < rounds; i++) {
        double from = cpu_us();
        a[i] = bare(count, in_flight);
        double between = cpu_us();
        b[i] = linked(count, in_flight);
        a_cpu[i] = (between - from) / count;
        b_cpu[i] = (cpu_us() - between) / count;
    }
    double x = median(a, rounds), y = median(b, rounds), x_cpu = median(a_cpu, rounds),
           y_cpu = median(b_cpu, rounds);
    printf(
        "in flight %d: posix_spawn %.0f/s, runner %.0f/s, ratio %.3f; processor time %.0f and %.0f us, ratio %.3f\n",
        in_flight, x, y, y / x, x_cpu, y_cpu, x_cpu / y_cpu);
    return 0;
}
