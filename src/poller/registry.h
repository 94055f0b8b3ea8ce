/*
 * registry.h - telling the others that this poller lives, and its share of the work: a duty.
 */
#ifndef DQ_POLLER_REGISTRY_H
#define DQ_POLLER_REGISTRY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct poller;

struct registry {
    int64_t beat_us; /* the last heartbeat; 0: none */
    unsigned share, shares;
    bool unheard; /* our row of dq_poller is locked by somebody */
};

int64_t registry_next(const struct poller *p);
int registry_beat(struct poller *p, struct err *err);
void registry_leave(struct poller *p);

#endif
