/*
 * claim.h - asks what is due, and takes it: two duties.
 */
#ifndef DQ_POLLER_CLAIM_H
#define DQ_POLLER_CLAIM_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/flight.h"
#include "poller/handover.h"
#include "poller/lease.h"
#include "poller/look.h"
#include "poller/registry.h"
#include "poller/settle.h"
#include "poller/tags.h"
#include "store/work/peek_store.h"

#include <stdbool.h>
#include <stdint.h>

struct claims {
    struct context *ctx;
    struct look *look; /* decides */
    struct tag_set *tags;
    const struct registry *registry; /* our share */
    struct handover *handover;       /* of what was taken */
    struct flight *flight;
    struct settle_results *results;
    const struct leases *leases;
    struct peek peek;       /* the last look at several tags */
    bool recover;           /* a claim failed, its outcome is not known: look what it took */
    int64_t sent_us;        /* of that claim */
    const char *limit_name; /* of the current claim */
    bool overtook;   /* candidates of the last claim have former attempts that have not ended */
    bool others_run; /* under its limit, tasks of tags that --tag leaves to others */
};

void claim_free(struct claims *claims);

/* The duty that asks and claims as look.c says, a round at a time. Asks the database. 0 or a
 * negative code with err. */
int64_t claim_next(const struct claims *claims);
int claim_run(struct claims *claims, struct err *err);

/* The duty that finds out what a claim took whose outcome is not known. Until then there is no
 * other claim. Asks the database. 0 or a negative code with err. */
int64_t claim_recover_next(const struct claims *claims);
int claim_recover(struct claims *claims, struct err *err);
bool claim_in_doubt(const struct claims *claims); /* there is such a claim */

#endif
