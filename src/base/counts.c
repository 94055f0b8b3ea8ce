/*
 * counts.c - see counts.h. Invariant: each attempt that began is in one step of lateness, or later
 * than all of them.
 */
#include "base/counts.h"

#include <stddef.h>
#include <sys/param.h>

#define STEP_BOUND(name, bound) bound,
const uint64_t counts_late_bounds_ms[COUNTS_LATE_COUNT] = {COUNTS_LATE_STEPS(STEP_BOUND)};

void counts_start(struct counts *c, int64_t late_ms)
{
    uint64_t late = late_ms > 0 ? (uint64_t)late_ms : 0;

    c->started++;
    c->late_sum_ms += late;
    c->late_max_ms = MAX(c->late_max_ms, late);
    for (size_t i = 0; i < COUNTS_LATE_COUNT; i++) {
        if (late <= counts_late_bounds_ms[i]) {
            c->late[i]++;
            break;
        }
    }
}

void counts_add(struct counts *to, const struct counts *c)
{
    to->started += c->started;
    to->done += c->done;
    to->failed += c->failed;
    to->retried += c->retried;
    to->run_sum_ms += c->run_sum_ms;
    to->late_sum_ms += c->late_sum_ms;
    to->late_max_ms = MAX(to->late_max_ms, c->late_max_ms);
    for (size_t i = 0; i < COUNTS_LATE_COUNT; i++)
        to->late[i] += c->late[i];
}

int64_t counts_late(const struct counts *c, unsigned percent)
{
    uint64_t rank = MAX((c->started * percent + 99) / 100, 1), below = 0, low = 0;

    if (!c->started)
        return -1;
    for (size_t i = 0; i < COUNTS_LATE_COUNT && low < c->late_max_ms; i++) {
        uint64_t high = MIN(counts_late_bounds_ms[i], c->late_max_ms);

        if (c->late[i] && below + c->late[i] >= rank)
            return (int64_t)(low + (uint64_t)((double)(high - low) * (double)(rank - below) /
                                              (double)c->late[i]));
        below += c->late[i];
        low = high;
    }
    return c->late_max_ms < INT64_MAX ? (int64_t)c->late_max_ms : INT64_MAX;
}
