/*
 * rate.h - how fast tasks may start: `count` in each period, evenly, and `burst` of them at once
 * (GCRA). All that is stored is one instant, next_us: when the next start would be due if none were
 * ever early. Instants are microseconds of the database's clock.
 *
 * Promise: in any window of t, at most burst + count / period * t starts.
 */
#ifndef DQ_BASE_RATE_H
#define DQ_BASE_RATE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate {
    uint32_t count; /* 0: no rate */
    int64_t period_ms;
    uint32_t burst; /* at least 1 */
};
#define RATE_COUNT_MAX 1000000 /* of count and burst */
/* Starts are reserved at most so far ahead. A next_us that only a reservation further ahead could
 * have left was written before the clock was set back. */
#define RATE_HORIZON_US INT64_C(10000000)
#define RATE_RESERVED_US INT64_C(2000000) /* a dqd reserves no further ahead */

/* "100/m", "5/s", "1000/h", "1/10s", "20/d"; burst is 1 then. ERR_DATA, with a text that shows the
 * place. */
int rate_parse(const char *text, struct rate *ret, struct err *err)
    __attribute__((warn_unused_result));
/* ERR_DATA: it is none of 1 to RATE_COUNT_MAX, or it would take more than a year to earn it again.
 */
int rate_set_burst(struct rate *r, int64_t burst, struct err *err)
    __attribute__((warn_unused_result));
/* Of one that others may have written: ERR_DATA, if the functions below do not hold for it. */
int rate_check(const struct rate *r, struct err *err) __attribute__((warn_unused_result));
void rate_put(struct buf *b, const struct rate *r); /* the same text, without the burst */

int64_t rate_slot_us(const struct rate *r); /* the distance of even starts, rounded up */
/* How far ahead the next_us that another rate has left may be, when r is set: the next start then
 * comes a slot after the last one that can have been reserved. */
int64_t rate_most_us(const struct rate *r);
/* The instant of the next start, now_us at the earliest. INT64_MIN as next_us: none was yet. */
int64_t rate_first(const struct rate *r, int64_t next_us, int64_t now_us);
/* How many starts there may be until horizon_us, those that may be now included. */
uint64_t rate_may(const struct rate *r, int64_t next_us, int64_t now_us, int64_t horizon_us);
/* Reserves n starts, in order: starts[i] is when each may be. Returns the next_us to store. n is at
 * most what rate_may said. */
int64_t rate_take(const struct rate *r, int64_t next_us, int64_t now_us, int64_t *starts, size_t n);
/* Since when a start may be, if one may be now; INT64_MIN: that is not known. */
int64_t rate_since(const struct rate *r, int64_t next_us, int64_t now_us);
/* Whether the clock was set back since next_us was stored: next_us then counts as the one of a
 * single start now, after which the burst is used up. */
bool rate_set_back(const struct rate *r, int64_t next_us, int64_t now_us);

#endif
