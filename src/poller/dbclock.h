/*
 * dbclock.h - what the database's clock shows, as known from statements that returned it.
 *
 * A statement sent at s and answered at r that says "now is d" proves that d was shown somewhere
 * between s and r. The offset between the two clocks lies in the intersection of what such
 * statements prove, widened with time for drift; a clock that was set makes the intersection empty;
 * then only the newest statement counts.
 */
#ifndef DQ_POLLER_DBCLOCK_H
#define DQ_POLLER_DBCLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define NEVER_US INT64_MAX /* a steady time that does not come */

struct dbclock {
    bool known;
    int64_t low_us, high_us; /* database minus steady: bounds */
    int64_t sampled_us;
    int64_t ahead_us; /* when it was last found to have been set ahead; 0: never */
};

/* A statement sent and answered at these steady times read the database's clock, in microseconds:
 * once, or first and last. A late reading makes the lower bound tight, even if the statement takes
 * long. If the clock was set between the two, only the first one counts. */
void dbclock_sample(struct dbclock *c, int64_t sent_us, int64_t answered_us, int64_t now_us);
void dbclock_sample_twice(struct dbclock *c, int64_t sent_us, int64_t answered_us, int64_t first_us,
                          int64_t last_us);
/* The best guess of the database's clock (ms) at a steady time; only once known. */
int64_t dbclock_at(const struct dbclock *c, int64_t steady_us);
/* Whether it has certainly not reached `at` by a steady time, unless it was set since. */
bool dbclock_is_before(const struct dbclock *c, int64_t at, int64_t steady_us);
/* The steady time at which the database's clock has certainly reached `at`. */
int64_t dbclock_reached_us(const struct dbclock *c, int64_t at);

#endif
