/*
 * context.c - see context.h.
 */
#include "poller/context.h"

#include <sys/random.h>

#define RANDOM_AT_ONCE 32 /* 256 bytes, which the kernel never returns in parts */

int64_t context_lease_us(const struct context *ctx)
{
    return ctx->conf->dqd.lease_ms * 1000;
}

int64_t context_renew_us(const struct context *ctx)
{
    return context_lease_us(ctx) / 3;
}

/* The kernel is asked for many numbers at once: each task of a batch takes one. */
uint64_t context_random(void)
{
    static uint64_t numbers[RANDOM_AT_ONCE];
    static size_t left;

    if (left == 0) {
        while (getrandom(numbers, sizeof numbers, 0) != (ssize_t)sizeof numbers)
            ;
        left = RANDOM_AT_ONCE;
    }
    return numbers[--left];
}
