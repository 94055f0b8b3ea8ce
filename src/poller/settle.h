/*
 * settle.h - how attempts ended, kept until the database knows.
 */
#ifndef DQ_POLLER_SETTLE_H
#define DQ_POLLER_SETTLE_H

#include "store/settle_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct poller;

struct settle_item {
    struct settlement s; /* error and output are owned */
    int64_t queued_us;
    int64_t leased_us; /* as of the job: the task stays ours until its result is recorded */
    int64_t again_us;  /* it could not be recorded, and is tried again then; 0: not tried yet */
    int64_t hold_us;   /* how long it was kept back last */
    bool said;         /* that was logged */
};

struct settle_results {
    struct settle_item *items;
    size_t count, cap;
    uint64_t done, failed, retried; /* recorded since the start */
};

/* Copies error and output. leased_us: when the claim or the last renewal was sent. */
void settle_queue(struct settle_results *q, const struct settlement *s, int64_t leased_us);
/* The duty. */
int64_t settle_next(const struct poller *p);
int settle_flush(struct poller *p, struct err *err);
/* nothing waits but what could not be recorded since then */
bool settle_stuck(const struct settle_results *q, int64_t since_us);
void settle_free(struct settle_results *q);

#endif
