/*
 * counts.c - see counts.h. Invariant: each attempt that began is in one step of lateness, and each
 * that ended in one of run time, or beyond all of them.
 */
#include "base/counts.h"

#include <stddef.h>
#include <sys/param.h>

#define STEP_BOUND(kind, name, bound) bound,
const uint64_t counts_bounds_ms[COUNTS_STEP_COUNT] = {COUNTS_STEPS(STEP_BOUND, )};

static void count_step(uint64_t steps[COUNTS_STEP_COUNT], uint64_t ms)
{
    for (size_t i = 0; i < COUNTS_STEP_COUNT; i++) {
        if (ms <= counts_bounds_ms[i]) {
            steps[i]++;
            break;
        }
    }
}

void counts_start(struct counts *c, int64_t late_ms)
{
    uint64_t late = late_ms > 0 ? (uint64_t)late_ms : 0;

    c->started++;
    c->late_sum_ms += late;
    c->late_max_ms = MAX(c->late_max_ms, late);
    count_step(c->late, late);
}

void counts_end(struct counts *c, int64_t took_ms)
{
    uint64_t took = took_ms > 0 ? (uint64_t)took_ms : 0;

    c->ended++;
    c->run_sum_ms += took;
    c->run_max_ms = MAX(c->run_max_ms, took);
    count_step(c->run, took);
}

void counts_add(struct counts *to, const struct counts *c)
{
    to->started += c->started;
    to->done += c->done;
    to->failed += c->failed;
    to->retried += c->retried;
    to->excused += c->excused;
    to->failures += c->failures;
    to->expired += c->expired;
    to->ended += c->ended;
    to->run_sum_ms += c->run_sum_ms;
    to->run_max_ms = MAX(to->run_max_ms, c->run_max_ms);
    to->late_sum_ms += c->late_sum_ms;
    to->late_max_ms = MAX(to->late_max_ms, c->late_max_ms);
    for (size_t i = 0; i < COUNTS_STEP_COUNT; i++) {
        to->late[i] += c->late[i];
        to->run[i] += c->run[i];
    }
}

static int64_t estimate(const uint64_t steps[COUNTS_STEP_COUNT], uint64_t count, uint64_t max,
                        unsigned percent)
{
    uint64_t rank = MAX((count * percent + 99) / 100, 1), below = 0, low = 0;

    if (!count)
        return -1;
    for (size_t i = 0; i < COUNTS_STEP_COUNT && low < max; i++) {
        uint64_t high = MIN(counts_bounds_ms[i], max);

        if (steps[i] && below + steps[i] >= rank)
            return (int64_t)(low + (uint64_t)((double)(high - low) * (double)(rank - below) /
                                              (double)steps[i]));
        below += steps[i];
        low = high;
    }
    return max < INT64_MAX ? (int64_t)max : INT64_MAX;
}

int64_t counts_late(const struct counts *c, unsigned percent)
{
    return estimate(c->late, c->started, c->late_max_ms, percent);
}

int64_t counts_took(const struct counts *c, unsigned percent)
{
    return estimate(c->run, c->ended, c->run_max_ms, percent);
}
