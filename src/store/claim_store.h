/*
 * claim_store.h - taking what is due.
 *
 * All functions block on the database. None opens a transaction longer than its own two or three
 * statements.
 */
#ifndef DQ_STORE_CLAIM_STORE_H
#define DQ_STORE_CLAIM_STORE_H

#include "base/task.h"
#include "store/claim_ref.h"
#include "store/db.h"
#include "store/peek_store.h"
#include "store/rows.h"
#include "store/task_array.h"

struct claim_ask {
    const char *tag;
    size_t limit; /* at most so many */
    /* also what is due so soon: the caller starts nothing before its time */
    int64_t early_ms;
    struct claim_floor floor; /* of our share */
    unsigned share, shares;   /* prefer the ids of this share, 0 to shares - 1; shares 1: all */
    /* another share: when ours has too few, ids of this one that are overdue by steal_after_ms */
    unsigned steal_share;
    int64_t steal_after_ms;
    /* of these the latest first: out of their owner's way, but never always, for the oldest would
     * starve */
    bool steal_far_end;
    uint32_t max_attempts; /* written to rows that have none */
    int64_t lease_ms;
    uint32_t global_limit; /* running tasks of the tag on all hosts; 0: none */
    bool without_bodies;   /* bring no bodies */
    bool next;             /* also find out when the next one is due; not with skip_locked */
    /* After rows that could not be taken: */
    bool careful; /* as rows_run */
    /* if the server can: leave out all that is locked, however much that is */
    bool skip_locked;
    const uint64_t *aside; /* leave these out */
    size_t aside_count;
};
/* What a claim saw. */
struct claim_seen {
    size_t found; /* candidates */
    size_t lost;  /* of these: somebody else took them */
    /* If `next` was set and our share had fewer candidates than the limit: when the first task of
     * our share that is not due yet becomes due. TASK_TIME_NONE: there is none, or the tag is
     * paused. Its row is neither changed nor locked. */
    bool next_known;
    int64_t next_at;
    /* the database's clock, microseconds, and the steady times around the statement that returned
     * it; 0: not known */
    int64_t now_us, sent_us, answered_us;
};
/* The claim of one tag, unless an operator has paused it (nothing is found then): candidates by the
 * index, then one UPDATE by (id, version). Appends to `won` the tasks that are now ours: status
 * running, version and attempt as after the claim. Bodies up to 16 KiB come along, longer ones have
 * body NULL (body_store_load), with a body_size that is not to be trusted; SIZE_MAX: not known, or
 * a lie. *faults gets those that could not be taken: locked (ERR_LOCKED), or refused (NULL: the
 * first failure is returned). ERR_LOCKED itself: the tag's row of dq_tag is locked. With a global
 * limit the two statements run in one short transaction that locks the tag's row of dq_tag, so that
 * the limit holds across hosts. After ERR_LOST the caller reconnects and calls claim_store_recover:
 * what the broken UPDATE took is ours and would otherwise wait for its lease to end. */
int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      struct task_array *won, struct claim_seen *ret, struct rows_faults *faults,
                      struct err *err) __attribute__((warn_unused_result));

/* Running tasks that carry our token but are not among known[] (sorted ascending): claimed by an
 * UPDATE whose answer was lost. Appends them to ret, like claim_store_claim. */
int claim_store_recover(struct db *db, const struct claim_owner *owner, const uint64_t *known,
                        size_t count, struct task_array *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
