/*
 * claim_store.h - claiming due tasks.
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
    size_t limit; /* the most tasks to claim */
    /* also claim tasks due within this time; the caller starts none before its time */
    int64_t early_ms;
    struct peek_floor floor; /* for our share */
    unsigned share, shares;  /* claim ids of this share first, 0 to shares - 1; shares 1: all ids */
    /* if our share has too few: ids of this one that are overdue by steal_after_ms */
    unsigned steal_share;
    int64_t steal_after_ms;
    /* of these, those due last first, which avoids races with their owner. Not to be set every
     * time, or the oldest would starve */
    bool steal_far_end;
    uint32_t max_attempts; /* for rows that have none */
    int64_t lease_ms;
    uint32_t global_limit; /* running tasks of the tag on all hosts; 0: none */
    bool without_bodies;   /* load no bodies */
    bool next;             /* also find out when the next task is due; ignored with skip_locked */
    /* After some rows could not be claimed: */
    bool careful; /* as rows_run */
    /* leave out all locked rows, however many, if the server can */
    bool skip_locked;
    const uint64_t *aside; /* ids to leave out */
    size_t aside_count;
};
/* What a claim found. */
struct claim_seen {
    size_t found; /* candidates */
    size_t lost;  /* of these: claimed by others first */
    /* If `next` was set and our share had fewer candidates than the limit: when the first task of
     * our share that is not due yet becomes due. TASK_TIME_NONE: there is none, or the tag is
     * paused. Its row is neither changed nor locked. */
    bool next_known;
    int64_t next_at;
    /* the database's clock, microseconds, as the statement began and when it was nearly done, and
     * the steady times around it; 0: not known */
    int64_t now_us, late_us, sent_us, answered_us;
};
/* Claims due tasks of one tag: reads candidates from the index, then claims them with one UPDATE by
 * (id, version). Of a paused tag, it finds none. With a global limit the two statements run in one
 * short transaction that locks the tag's row of dq_tag, so that the limit holds across hosts.
 *
 * Appends to `won` the tasks that are now ours: status running, version and attempt as after the
 * claim. Bodies up to 16 KiB are loaded. A longer one has body NULL (see body_store_load) and a
 * body_size that may be wrong; SIZE_MAX: unknown, or found to be wrong.
 *
 * Tasks that could not be claimed are added to *faults: locked (ERR_LOCKED), or refused by the
 * server. faults NULL: the first failure is returned. Returns ERR_LOCKED if the tag's row of dq_tag
 * is locked. After ERR_LOST, call claim_store_recover: what the broken UPDATE claimed is ours, and
 * would otherwise wait until its lease ends. */
int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      struct task_array *won, struct claim_seen *ret, struct rows_faults *faults,
                      struct err *err) __attribute__((warn_unused_result));

/* Finds running tasks that have our token but are not among known[] (sorted ascending): they were
 * claimed by an UPDATE whose answer was lost. Appends them to ret as claim_store_claim does. */
int claim_store_recover(struct db *db, const struct claim_owner *owner, const uint64_t *known,
                        size_t count, struct task_array *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Appends the statement with which a claim of a sole poller finds up to `limit` candidates. */
void claim_store_put_find(struct buf *sql, const char *tag, size_t limit);

#endif
