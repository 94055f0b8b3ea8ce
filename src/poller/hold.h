/*
 * hold.h - limits that handlers asked to hold (`hold` of an answer), kept until the database has
 * recorded it. A duty.
 */
#ifndef DQ_POLLER_HOLD_H
#define DQ_POLLER_HOLD_H

#include "base/err.h"
#include "poller/context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hold { /* at most one of a limit */
    char *limit, *reason;
    int64_t for_ms, queued_us;
    int64_t again_us;  /* its row was locked: it is tried again then */
    int64_t locked_us; /* for how long it was left alone last because of that */
};

/* Init with ctx. */
struct holds {
    const struct context *ctx;
    struct hold *items;
    size_t count, cap;
    int64_t not_before_us; /* the last try waited for a lock that may be in the way of all */
};
void hold_free(struct holds *h);

/* Queues it; copies the texts. */
void hold_queue(struct holds *h, const char *limit, int64_t for_ms, const char *reason);
/* Whether one of that limit is not recorded yet. */
bool hold_has(const struct holds *h, const char *limit);
/* Whether dqd does not end before one is recorded: until a lease has passed. */
bool hold_waits(const struct holds *h);

/* The duty. Records one of those that are due. One that the server refuses is dropped, which is
 * logged; one whose row is locked stays. 0, or a negative code with err if the connection broke. */
int64_t hold_next(const struct holds *h);
int hold_flush(struct holds *h, struct err *err);

#endif
