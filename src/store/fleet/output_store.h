/*
 * output_store.h - the output of running attempts, kept while someone follows it. All functions
 * block on the database.
 *
 * A follower marks an attempt, and renews the mark as long as it reads. The dqd that runs the
 * attempt finds the mark when it checks its leases, writes what the handler has written since, and
 * deletes all of it soon after the last mark has expired.
 */
#ifndef DQ_STORE_FLEET_OUTPUT_STORE_H
#define DQ_STORE_FLEET_OUTPUT_STORE_H

#include "store/db/db.h"
#include "store/row/claim_ref.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_STORE_ATTEMPTS_MOST 64 /* a dqd writes the output of so many at a time */

/* An attempt is a task at the version of its claim. */
struct output_chunk {
    uint32_t seq;   /* 1 and up */
    uint64_t start; /* where it begins in what the attempt has written so far */
    bool last;      /* the attempt has ended: none follows */
    const void *data;
    size_t size;
};

/* Marks an attempt as followed, from now on for for_ms. */
int output_store_mark(struct db *db, const struct claim_ref *attempt, int64_t for_ms,
                      struct err *err) __attribute__((warn_unused_result));
/* Whether so many attempts of its dqd are followed that one has to wait: 1 or 0. */
int output_store_waits(struct db *db, const struct claim_ref *attempt, struct err *err)
    __attribute__((warn_unused_result));
/* Adds a chunk; if it is there already, nothing changes. */
int output_store_add(struct db *db, const struct claim_ref *attempt, const struct output_chunk *c,
                     struct err *err) __attribute__((warn_unused_result));
/* Calls fn for each chunk with a larger seq than `after`, in order. fn must not use the
 * connection. */
int output_store_read(struct db *db, const struct claim_ref *attempt, uint32_t after,
                      void (*fn)(const struct output_chunk *c, void *arg), void *arg,
                      struct err *err) __attribute__((warn_unused_result));
/* Deletes the chunks that begin before that byte. */
int output_store_trim(struct db *db, const struct claim_ref *attempt, uint64_t start,
                      struct err *err) __attribute__((warn_unused_result));
/* Deletes the chunks and the mark. */
int output_store_drop(struct db *db, const struct claim_ref *attempt, struct err *err)
    __attribute__((warn_unused_result));
/* The same for up to 100 attempts that nobody has followed for a while: their dqd died. */
int output_store_drop_left(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* Private to src/store, for a statement about dq_task alone: joins the mark of each attempt, and is
 * true if that is followed. */
#define OUTPUT_STORE_JOIN                                                                          \
    " LEFT JOIN dq_output FORCE INDEX (PRIMARY) ON task_id = id AND task_version = version AND seq = 0"
#define OUTPUT_STORE_FOLLOWED "until_time > UTC_TIMESTAMP(3)"

#endif
