/*
 * lease.h - keeping what was claimed: two duties.
 */
#ifndef DQ_POLLER_LEASE_H
#define DQ_POLLER_LEASE_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/flight.h"
#include "poller/follow.h"
#include "poller/settle.h"

#include <stdbool.h>
#include <stdint.h>

struct leases {
    const struct context *ctx;
    struct flight *flight;
    struct settle_results *results;
    struct follow *follow;      /* learns which tasks are followed */
    int64_t check_us, renew_us; /* when that was last done */
    int64_t took_us;            /* by the last check */
    int64_t round_us;           /* when the round of renewals began that is not finished; 0: none */
    int64_t again_us;           /* try again then what could not be renewed; 0: nothing */
    bool faulty;                /* there was something of that kind at the last renewal */
    struct look_cost cost;      /* of renewing a row: a trigger may be slow there only */
    /* dq_output cannot be read; when to try that again. 0: it can */
    int64_t blind_until_us;
};

void lease_init(struct leases *l, const struct context *ctx, struct flight *flight,
                struct settle_results *results, struct follow *follow);

/* How long after a claim or a check a task may be started, microseconds. */
int64_t lease_vouch_us(const struct context *ctx);

/* Until when tasks that wait in the runner may be started, after a check that was sent then and
 * took this long: at sent_us all of them were ours but what has been dropped. A slow database does
 * not keep them waiting for ever; but if only this check took long, we may have been frozen, and
 * they may be anybody's. */
int64_t lease_vouches_until(struct leases *l, int64_t sent_us, int64_t took_us);

/* The duty that asks whether tasks in flight are still ours, and stops handlers of those that were
 * cancelled or taken back. Asks the database. 0 or a negative code with err. */
int64_t lease_check_next(const struct leases *l);
int lease_check(struct leases *l, struct err *err);

/* Of tasks that a claim has won or is about to claim, those whose former attempt has not ended
 * here: the rows went back in time (a restore, a failover that lost the end of the log), or were
 * cancelled and retried. The former attempts are lost, and their handlers are stopped. The tasks
 * move to back (if it is not NULL): they must not start beside them. Whether there are some. */
bool lease_overtaken(const struct leases *l, struct task_array *won, struct task_array *back);

/* The duty that renews leases, of tasks in flight and of those whose result is not recorded yet; it
 * does what lease_check does, too. Asks the database. 0 or a negative code with err. */
int64_t lease_renew_next(const struct leases *l);
/* After this much time, a round of claims is interrupted if a renewal is due: on a slow server it
 * may take longer than a lease. */
#define LEASE_LOOK_US INT64_C(100000)
int lease_renew(struct leases *l, struct err *err);

#endif
