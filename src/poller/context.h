/*
 * context.h - what most parts of the poller work with and none of them owns. poller.c fills it in.
 *
 * Times named _us are microseconds on the steady clock of this host, times named _at milliseconds
 * on the database's clock. The two meet only in dbclock.c.
 */
#ifndef DQ_POLLER_CONTEXT_H
#define DQ_POLLER_CONTEXT_H

#include "conf/conf.h"
#include "poller/dbclock.h"
#include "runner/link.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"

#include <stdbool.h>
#include <stdint.h>

struct context {
    const struct conf *conf; /* reloadable settings change */
    struct db *db;
    struct link *link;
    struct claim_owner owner;
    struct dbclock clock;
    uint32_t slots;
    int64_t longest_lease_ms; /* of all dqds, as of the last heartbeat; 0: not known yet */
    /* as of the last heartbeat: the next slot of a schedule, TASK_TIME_NONE: there is none; whether
     * there are recorded slots, and some whose runs have not ended */
    int64_t next_slot_at;
    bool has_slots, open_slots;
    bool once;                /* this is a pass, which ends when nothing is due */
    bool runner_gone;         /* the runner died */
    bool quiet;               /* claim nothing, as of the last heartbeat */
    bool ending;              /* begin nothing new: dqd is about to end, or its runner is gone */
};

int64_t context_lease_us(const struct context *ctx); /* [dqd] lease */
/* A third of it: its age when it is renewed, and how much of it a claim may use up. */
int64_t context_renew_us(const struct context *ctx);
/* The next heartbeat, retry or sidestep is spread with this: 64 random bits from the kernel. */
uint64_t context_random(void);

#endif
