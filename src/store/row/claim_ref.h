/*
 * claim_ref.h - the owner of a claim, and the claim itself: a task at a version.
 */
#ifndef DQ_STORE_ROW_CLAIM_REF_H
#define DQ_STORE_ROW_CLAIM_REF_H

#include "base/task.h"
#include "store/db/db.h"

/* One process of dqd. */
struct claim_owner {
    unsigned char token[TASK_TOKEN_SIZE]; /* random, new for every process */
    const char *host;
    uint32_t pid;
};

struct claim_ref {
    uint64_t id, version;
};

/* For qsort and bsearch: by id, then by version. A task that was cancelled and retried may be
 * claimed again while its former attempt is still under way. */
int claim_ref_compare(const void *a, const void *b);

/* The rest is private to src/store. */

/* Append `column IN (1,2,3)`, and `((version = 0 AND id IN (1,2)) OR (version = 3 AND id IN (7)))`.
 * Every server reads these as ranges of the primary key, unlike IN with row constructors. count >
 * 0. */
void claim_ref_put_ids(struct buf *sql, const char *column, const struct claim_ref *refs,
                       size_t count);
void claim_ref_put(struct buf *sql, const struct claim_ref *refs, size_t count);
/* Appends the condition that a row is one of refs, at its version, running, with the owner's token.
 */
void claim_ref_put_ours(struct buf *sql, const struct claim_owner *owner,
                        const struct claim_ref *refs, size_t count);

#define CLAIM_REF_COLUMNS(X) X(CLAIM_REF_ID, "id") X(CLAIM_REF_VERSION, "version")
/* Runs a statement that selects CLAIM_REF_COLUMNS (columns.h), or an id and a version by other
 * names, and stores its rows in refs, at most `count`. *ret_count: how many these are. */
int claim_ref_read(struct db *db, const struct buf *sql, struct claim_ref *refs, size_t count,
                   size_t *ret_count, struct err *err) __attribute__((warn_unused_result));

/* Locks those of refs that the event can meet (sql_put_from), of which `more` (" AND ..." or "") is
 * true, and stores them in ret, which has room for all and may be refs. */
int claim_ref_lock(struct db *db, enum task_event event, const char *more,
                   const struct claim_ref *refs, size_t count, struct claim_ref *ret,
                   size_t *ret_count, struct err *err) __attribute__((warn_unused_result));

#endif
