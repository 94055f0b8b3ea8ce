/*
 * claim.h - asking what is due, and taking it: two duties.
 */
#ifndef DQ_POLLER_CLAIM_H
#define DQ_POLLER_CLAIM_H

#include "base/err.h"
#include "store/peek_store.h"

#include <stdbool.h>
#include <stdint.h>

struct poller;

struct claims {
    struct claim_peek peek; /* the last look at several tags */
    bool recover;           /* a claim failed, its outcome is not known: look what it took */
    int64_t sent_us;        /* of that claim */
};

int64_t claim_next(const struct poller *p);
int claim_run(struct poller *p, struct err *err);
int64_t claim_recover_next(const struct poller *p);
int claim_recover(struct poller *p, struct err *err);

#endif
