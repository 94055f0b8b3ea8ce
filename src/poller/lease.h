/*
 * lease.h - keeping what was claimed: two duties.
 */
#ifndef DQ_POLLER_LEASE_H
#define DQ_POLLER_LEASE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct poller;

struct leases {
    int64_t check_us, renew_us; /* when that was last done */
    int64_t again_us;           /* leases that could not be renewed are tried again then; 0: none */
    bool faulty;                /* there were some at the last renewal */
};

int64_t lease_check_next(const struct poller *p);
int lease_check(struct poller *p, struct err *err);
int64_t lease_renew_next(const struct poller *p);
int lease_renew(struct poller *p, struct err *err);
/* how long after a claim or a check a task may be started */
int64_t lease_vouch_us(const struct poller *p);

#endif
