/*
 * dbclock.c - see dbclock.h. Invariant: low_us <= high_us whenever known.
 */
#include "poller/dbclock.h"

/* Two quartz clocks drift apart by at most this many microseconds per second. */
#define DRIFT_PPM 200
/* Less is not noticed as a clock that was set: a lease is never that short. */
#define AHEAD_LEAST_US 500000

static void widen(struct dbclock *c, int64_t now_us)
{
    int64_t drift = (now_us - c->sampled_us) * DRIFT_PPM / 1000000;

    c->low_us -= drift;
    c->high_us += drift;
    c->sampled_us = now_us;
}

void dbclock_sample(struct dbclock *c, int64_t sent_us, int64_t answered_us, int64_t now_us)
{
    dbclock_sample_twice(c, sent_us, answered_us, now_us, now_us);
}

void dbclock_sample_twice(struct dbclock *c, int64_t sent_us, int64_t answered_us, int64_t first_us,
                          int64_t last_us)
{
    bool was_set = last_us < first_us || last_us - first_us > answered_us - sent_us;
    int64_t late_us = was_set ? first_us : last_us;
    int64_t low = late_us - answered_us, high = first_us - sent_us;

    if (c->known) {
        widen(c, answered_us);
        if (low > c->high_us + AHEAD_LEAST_US)
            c->ahead_us = answered_us;
        if (low < c->low_us)
            low = c->low_us;
        if (high > c->high_us)
            high = c->high_us;
        if (low > high) { /* one of the clocks was set: believe the newest alone */
            low = late_us - answered_us;
            high = first_us - sent_us;
        }
    }
    c->low_us = low;
    c->high_us = high;
    c->sampled_us = answered_us;
    c->known = true;
}

int64_t dbclock_at(const struct dbclock *c, int64_t steady_us)
{
    return (steady_us + c->low_us + (c->high_us - c->low_us) / 2) / 1000;
}

bool dbclock_is_before(const struct dbclock *c, int64_t at, int64_t steady_us)
{
    return (steady_us + c->high_us + AHEAD_LEAST_US) / 1000 < at;
}

int64_t dbclock_reached_us(const struct dbclock *c, int64_t at)
{
    return at * 1000 - c->low_us;
}
