/*
 * counts.h - what happened to tasks in some time: how many attempts began and ended, and how late
 * they began.
 */
#ifndef DQ_BASE_COUNTS_H
#define DQ_BASE_COUNTS_H

#include <stdint.h>

/* How late attempts began: X(name of the column, its upper bound in ms). Above the last bound there
 * is no column: that is the rest of `started`. */
/* clang-format off */
#define COUNTS_LATE_STEPS(X) \
    X(late_5ms, 5) X(late_10ms, 10) X(late_25ms, 25) X(late_50ms, 50) X(late_100ms, 100) X(late_250ms, 250) \
    X(late_1s, 1000) X(late_5s, 5000) X(late_30s, 30000) X(late_2m, 120000) X(late_10m, 600000) X(late_1h, 3600000)
/* clang-format on */
#define COUNTS_LATE_COUNT 12
extern const uint64_t counts_late_bounds_ms[COUNTS_LATE_COUNT];

struct counts {
    uint64_t started; /* attempts that began */
    uint64_t done;    /* tasks that became done */
    uint64_t failed;  /* tasks that failed for good */
    uint64_t retried; /* attempts that failed, whose task runs again */
    uint64_t run_sum_ms;
    uint64_t late_sum_ms, late_max_ms;
    uint64_t late[COUNTS_LATE_COUNT]; /* attempts by lateness, each counted once */
};
/* Counts an attempt that began late_ms after it was due. */
void counts_start(struct counts *c, int64_t late_ms);
void counts_add(struct counts *to, const struct counts *c);
/* The lateness that `percent` of the attempts did not exceed, estimated from the steps and never
 * more than the maximum; -1: none began. */
int64_t counts_late(const struct counts *c, unsigned percent);

#endif
