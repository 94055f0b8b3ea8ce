/*
 * figure.h - what `dq bench` measures, and how times and counts become one figure.
 */
#ifndef DQ_BENCH_FIGURE_H
#define DQ_BENCH_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum figure_id {
    FIGURE_ROUND_TRIP,
    FIGURE_COMMIT,
    FIGURE_CONNECT,
    FIGURE_ADD_COMMAND,
    FIGURE_ADD,
    FIGURE_ADD_BULK,
    FIGURE_PEEK,
    FIGURE_CLAIM,
    FIGURE_SETTLE,
    FIGURE_SPAWN,
    FIGURE_SPAWN_PARALLEL,
    FIGURE_RUN,
    FIGURE_RUN_BATCH,
    FIGURE_LATENESS,
    FIGURE_COUNT
};

struct figure { /* all zero: not known */
    bool known, has_p99;
    double value, p99; /* ms (value: the median) or per second */
    /* if it is not known: why; else how it was measured, if that differs from run to run */
    char why[256];
};

/* Whether to go on measuring: `done` of a thing are done, and end_us (when_steady_us) is when its
 * share of the time is over. A few are done however slow they are. After an interrupt the verb
 * fails: half a measurement is worth nothing. */
bool figure_goes_on(size_t done, int64_t end_us);

/* Times of one operation, in microseconds. All zero: none. */
struct figure_times {
    int64_t *us;
    size_t count, cap;
};
void figure_times_add(struct figure_times *t, int64_t us);
/* Sets *ret to the median and the 99th percentile, and frees the times. Without any time *ret stays
 * as it is. */
void figure_set_times(struct figure *ret, struct figure_times *t);
/* Sets *ret to count per second; leaves it as it is if nothing was counted. */
void figure_set_rate(struct figure *ret, double count, int64_t us);
void figure_set_unknown(struct figure *ret, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
