/*
 * withdraw.h - takes tasks back that wait for a slot or a process, once a pause, a hold, the hours
 * of their limit, or dq quiet keeps them from being started, or those before them have become slow:
 * a duty.
 */
#ifndef DQ_POLLER_WITHDRAW_H
#define DQ_POLLER_WITHDRAW_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/flight.h"

#include <stdint.h>

struct withdrawals {
    const struct context *ctx;
    struct flight *flight;
    const struct look *look;
    int64_t asked_us; /* when that was last done */
    uint32_t from;    /* the job with which the next question begins */
};

/* Gives the jobs under that limit back that no handler has been started for. */
void withdraw_limit(const struct context *ctx, struct flight *f, const char *limit);

/* The duty: asks whether what has waited for a while may still start. Asks the database. 0 or a
 * negative code with err. */
int64_t withdraw_next(const struct withdrawals *w);
int withdraw_run(struct withdrawals *w, struct err *err);

#endif
