/*
 * retry.c - when a failed attempt is retried.
 *
 * Invariant: a pure function of its arguments; a delay is never shorter than its step.
 */
#include "base/retry.h"

#include <sys/param.h>
#include "base/when.h"

/* A claim takes two milliseconds, a forgotten transaction lasts. */
#define LOCKED_MIN_US 5000
#define LOCKED_MOST_US INT64_C(5000000)
#define LOCKED_PART 5

const struct retry_policy retry_default = {
    .step_ms = {5 * WHEN_SECOND, 30 * WHEN_SECOND, 60 * WHEN_SECOND, 10 * WHEN_MINUTE,
                30 * WHEN_MINUTE, 1 * WHEN_HOUR, 6 * WHEN_HOUR, 24 * WHEN_HOUR, 48 * WHEN_HOUR},
    .steps = 9,
    .jitter_percent = RETRY_JITTER_AUTO,
};

uint32_t retry_max_attempts(const struct retry_policy *p)
{
    return 1 + (uint32_t)p->steps;
}

int64_t retry_delay_ms(const struct retry_policy *p, uint32_t attempt, uint32_t max_attempts,
                       uint64_t random)
{
    if (!max_attempts)
        max_attempts = retry_max_attempts(p);
    if (!p->steps || attempt >= max_attempts)
        return -1;

    size_t step = attempt > 1 ? attempt - 1 : 0;
    int64_t delay_ms = p->step_ms[MIN(step, p->steps - 1)];
    unsigned percent = p->jitter_percent == RETRY_JITTER_AUTO ? 0 : p->jitter_percent;
    uint64_t jitter_ms = (uint64_t)delay_ms * percent / 100;
    return delay_ms + (int64_t)(random % (jitter_ms + 1));
}

int64_t retry_apart_ms(const struct retry_policy *p, int64_t delay_ms)
{
    return p->jitter_percent == RETRY_JITTER_AUTO ? delay_ms / 10 : 0;
}

int64_t retry_pause(int64_t pause, int64_t shortest, int64_t longest)
{
    pause = pause ? 2 * pause : shortest;
    return MIN(pause, longest);
}

int64_t retry_pause_locked(int64_t pause_us, int64_t took_us)
{
    pause_us = retry_pause(pause_us, LOCKED_MIN_US, LOCKED_MOST_US);
    return MIN(MAX(pause_us, LOCKED_PART * took_us), LOCKED_MOST_US);
}
