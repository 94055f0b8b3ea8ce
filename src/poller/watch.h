/*
 * watch.h - whether the runner answers: one that is stopped enforces no timeout, and one that reads
 * a handlers file on a file system that hangs has no new handlers.
 */
#ifndef DQ_POLLER_WATCH_H
#define DQ_POLLER_WATCH_H

#include "poller/context.h"

#include <stdbool.h>
#include <stdint.h>

struct watch {
    uint64_t ping_sent, ping_answered;
    int64_t ping_sent_us;
    int64_t ticked_us; /* the last watch_run */
    /* it was asked to read the handlers file then; 0: it has answered, or the log says that it has
     * not */
    int64_t reload_us;
};

void watch_init(struct watch *w, int64_t now_us);
/* For each tick, after the runner's reports were taken. While there are jobs the runner is pinged;
 * if it does not answer for too long, it is killed, and its handlers with it. A handlers file that
 * takes too long is logged. */
void watch_run(struct watch *w, const struct context *ctx, bool jobs, int64_t now_us);
int64_t watch_next(const struct watch *w, const struct context *ctx, bool jobs);
/* The runner has answered this ping. */
void watch_answered(struct watch *w, uint64_t ping);
/* The runner was asked to read the handlers file; it has done so. */
void watch_reload(struct watch *w, int64_t now_us);
void watch_reloaded(struct watch *w);

#endif
