/*
 * counts.h - what happened to tasks in some time: how many attempts began and ended, how late they
 * began, and how long they ran.
 */
#ifndef DQ_BASE_COUNTS_H
#define DQ_BASE_COUNTS_H

#include <stdint.h>

/* The steps in which lateness and run times are counted: X(kind, name of the step, its upper bound
 * in ms); the column is kind_name. Above the last bound there is no column: that is the rest of
 * `started` or `ended`. */
/* clang-format off */
#define COUNTS_STEPS(X, kind) \
    X(kind, 5ms, 5) X(kind, 10ms, 10) X(kind, 25ms, 25) X(kind, 50ms, 50) X(kind, 100ms, 100) X(kind, 250ms, 250) \
    X(kind, 1s, 1000) X(kind, 5s, 5000) X(kind, 30s, 30000) X(kind, 2m, 120000) X(kind, 10m, 600000) X(kind, 1h, 3600000)
/* clang-format on */
#define COUNTS_STEP_COUNT 12
extern const uint64_t counts_bounds_ms[COUNTS_STEP_COUNT];

struct counts {
    uint64_t started;  /* attempts that began */
    uint64_t done;     /* tasks that became done */
    uint64_t failed;   /* tasks that failed for good */
    uint64_t retried;  /* attempts that failed, whose task runs again */
    uint64_t excused;  /* of failed and retried: by a permanent error, or because their dqd died */
    uint64_t failures; /* the others of these, those that ended with one process as one */
    uint64_t expired;  /* tasks that were cancelled because they expired */
    uint64_t ended;    /* attempts that began and ended */
    uint64_t run_sum_ms, run_max_ms;
    uint64_t late_sum_ms, late_max_ms;
    /* attempts by lateness and by run time, each counted once */
    uint64_t late[COUNTS_STEP_COUNT], run[COUNTS_STEP_COUNT];
};
/* Counts an attempt that began late_ms after it was due. */
void counts_start(struct counts *c, int64_t late_ms);
/* Counts the run time of an attempt that ended. */
void counts_end(struct counts *c, int64_t took_ms);
void counts_add(struct counts *to, const struct counts *c);
/* The lateness that `percent` of the attempts did not exceed, estimated from the steps and never
 * more than the maximum; -1: none began. */
int64_t counts_late(const struct counts *c, unsigned percent);
/* The same for run times; -1: no attempt ended. */
int64_t counts_took(const struct counts *c, unsigned percent);

#endif
