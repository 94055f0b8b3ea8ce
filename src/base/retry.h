/*
 * retry.h - when a failed attempt is retried. Pure: no clock, no database, no allocation beyond
 * the policy.
 */
#ifndef DQ_BASE_RETRY_H
#define DQ_BASE_RETRY_H

#include <stddef.h>
#include <stdint.h>

#define RETRY_STEPS_MAX 64

#define RETRY_JITTER_AUTO 101

/* The ladder of a handler. The default is 5s 30s 60s 10m 30m 1h 6h 24h 48h, jitter auto. */
struct retry_policy {
    int64_t step_ms[RETRY_STEPS_MAX]; /* step_ms[0] follows attempt 1 */
    size_t steps;                     /* 0: never again */
    /* 0..100: a step is lengthened by 0..this share of itself; never shortened. AUTO: only that of
     * tasks whose failures are settled together (retry_apart_ms) */
    unsigned jitter_percent;
};
extern const struct retry_policy retry_default;

/* How many attempts the ladder allows: 1 + steps. */
uint32_t retry_max_attempts(const struct retry_policy *p);

/* The delay in ms after attempt number `attempt` (1 = the first) failed, or -1 when max_attempts
 * (0: the ladder's own) is used up. Past the last step of the ladder its last step repeats. random
 * is a uniformly random number (the jitter's source). */
int64_t retry_delay_ms(const struct retry_policy *p, uint32_t attempt, uint32_t max_attempts,
                       uint64_t random);

/* With jitter auto, how much later than the first of the failures that are settled together the
 * last one is retried at most; else 0. */
int64_t retry_apart_ms(const struct retry_policy *p, int64_t delay_ms);

/* A pause between tries: the shortest one after 0, then twice as long each time, up to the longest.
 */
int64_t retry_pause(int64_t pause, int64_t shortest, int64_t longest);
/* The same of a row of dq_limit that another session has locked, in microseconds: some servers wait
 * for the lock, so a pause is long beside what the try took. */
int64_t retry_pause_locked(int64_t pause_us, int64_t took_us);

#endif
