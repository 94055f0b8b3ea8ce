/*
 * bench.c - figures from times and counts, and the wish to stop.
 */
#include "cli/bench.h"

#include "base/mem.h"
#include "base/when.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST 3

static volatile sig_atomic_t stopped;

static void stop(int signal_number __attribute__((unused)))
{
    stopped = 1;
}

void bench_catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

bool bench_stopped(void)
{
    return stopped != 0;
}

bool bench_more(size_t done, int64_t end_us)
{
    return !bench_stopped() && (done < LEAST || when_steady_us() < end_us);
}

void bench_times_add(struct bench_times *t, int64_t us)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 1024;
        t->us = mem_resize(t->us, t->cap, sizeof *t->us);
    }
    t->us[t->count++] = us;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The smallest value that at least this share of the sorted ones does not exceed. */
static double percentile_ms(const struct bench_times *t, size_t percent)
{
    size_t rank = (t->count * percent + 99) / 100;
    return (double)t->us[rank ? rank - 1 : 0] / 1000;
}

void bench_set_times(struct bench *b, enum bench_measure m, struct bench_times *t)
{
    if (t->count) {
        qsort(t->us, t->count, sizeof *t->us, compare);
        b->figures[m] =
            (struct bench_figure){.known = true, .has_p99 = true, .value = percentile_ms(t, 50), .p99 = percentile_ms(t, 99)};
    }
    free(t->us);
    *t = (struct bench_times){NULL, 0, 0};
}

void bench_set_rate(struct bench *b, enum bench_measure m, double count, int64_t us)
{
    if (count > 0 && us > 0)
        b->figures[m] = (struct bench_figure){.known = true, .value = count * 1e6 / (double)us};
}

void bench_set_unknown(struct bench *b, enum bench_measure m, const char *fmt, ...)
{
    struct bench_figure f = {.known = false};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f.why, sizeof f.why, fmt, ap);
    va_end(ap);
    b->figures[m] = f;
}
