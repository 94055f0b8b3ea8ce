/*
 * registry.h - announces to other pollers that this one lives, and learns its share of the work: a
 * duty.
 */
#ifndef DQ_POLLER_REGISTRY_H
#define DQ_POLLER_REGISTRY_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/look.h"

#include <stdbool.h>
#include <stdint.h>

struct registry {
    struct context *ctx;
    struct look *look;
    const char *mode;
    int64_t beat_us; /* the last heartbeat; 0: none */
    unsigned share, shares;
    bool unheard; /* another session has locked our row of dq_poller */
};

/* mode: as dq pollers shows it; the caller's. */
void registry_init(struct registry *r, struct context *ctx, struct look *look, const char *mode);

/* This poller's share of the tasks, 0 to registry_shares - 1. Claims of other shares leave it
 * alone. */
unsigned registry_share(const struct registry *r);
unsigned registry_shares(const struct registry *r); /* 1 or more */

/* The duty: writes the heartbeat, counts the others. Asks the database. 0 or a negative code with
 * err. */
int64_t registry_next(const struct registry *r);
int registry_beat(struct registry *r, struct err *err);
/* At the end: takes this poller off the list, if it is on it and there is a connection. */
void registry_leave(struct registry *r);

#endif
