/*
 * context.c - see context.h.
 */
#include "poller/context.h"

#include <sys/random.h>

int64_t context_lease_us(const struct context *ctx)
{
    return ctx->conf->dqd.lease_ms * 1000;
}

uint64_t context_random(void)
{
    uint64_t r = 0;

    while (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        ;
    return r;
}
