/*
 * upkeep.h - what any poller does for all: two duties.
 */
#ifndef DQ_POLLER_UPKEEP_H
#define DQ_POLLER_UPKEEP_H

#include "base/err.h"
#include "poller/aside.h"

#include <stdint.h>

struct poller;

struct upkeep {
    int64_t reap_us, retention_us; /* when that is due */
    int64_t reap_cost_us;          /* of the last look for ended leases */
    /* the next look for ended leases begins behind this tag; NULL: with the first */
    char *after;
    struct aside aside; /* tasks that could not be taken back */
};

int64_t upkeep_reap_next(const struct poller *p);
int upkeep_reap(struct poller *p, struct err *err);
int64_t upkeep_retention_next(const struct poller *p);
int upkeep_retention(struct poller *p, struct err *err);

#endif
