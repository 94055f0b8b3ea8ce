/*
 * rate.h - a rate of starts, kept by one instant (GCRA). Pure.
 */
#ifndef DQ_BASE_RATE_H
#define DQ_BASE_RATE_H

#include <stdint.h>

/* At most `count` starts in each period, and `burst` of them at once. */
struct rate {
    uint32_t count; /* 0: any number */
    int64_t period_ms;
    uint32_t burst;
};

#endif
