/*
 * retry.c - when a failed attempt is tried again.
 *
 * Invariant: a pure function of its arguments; a delay is never shorter than its step.
 */
#include "base/retry.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

const struct retry_policy retry_default = {
    .step_ms = {5 * SECOND, 30 * SECOND, 60 * SECOND, 10 * MINUTE, 30 * MINUTE, 1 * HOUR, 6 * HOUR, 24 * HOUR, 48 * HOUR},
    .steps = 9,
};

uint32_t retry_max_attempts(const struct retry_policy *p)
{
    return 1 + (uint32_t)p->steps;
}

int64_t retry_delay_ms(const struct retry_policy *p, uint32_t attempt, uint32_t max_attempts, uint64_t random)
{
    if (!max_attempts)
        max_attempts = retry_max_attempts(p);
    if (!p->steps || attempt >= max_attempts)
        return -1;

    size_t step = attempt > 1 ? attempt - 1 : 0;
    int64_t delay_ms = p->step_ms[step < p->steps ? step : p->steps - 1];
    uint64_t jitter_ms = (uint64_t)delay_ms * p->jitter_percent / 100;
    return delay_ms + (int64_t)(random % (jitter_ms + 1));
}
