/*
 * follow.h - passes the output of running attempts on to those who follow them (dq logs -f): a
 * duty. As long as nobody does, it has nothing to do.
 */
#ifndef DQ_POLLER_FOLLOW_H
#define DQ_POLLER_FOLLOW_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/flight.h"
#include "runner/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct followed;
struct follow {
    const struct context *ctx;
    const struct flight *flight;
    struct followed *items;
    size_t count;
};

void follow_init(struct follow *f, const struct context *ctx, const struct flight *flight);
void follow_free(struct follow *f);

/* These attempts were found to be ours, followed[i] or not. */
void follow_checked(struct follow *f, const struct claim_ref *refs, const bool *followed, size_t n);
/* The runner has sent output of that job. */
void follow_take(struct follow *f, uint32_t number, const struct message_chunk *m);

/* The duty: asks the runner for new output, writes it to the database, and deletes it some time
 * after its attempt has ended or nobody has followed it any more. The end of an attempt's output is
 * written before its result, if this duty precedes that one. 0 or a negative code with err. */
int64_t follow_next(const struct follow *f);
int follow_run(struct follow *f, struct err *err);

#endif
