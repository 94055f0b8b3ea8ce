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

/* The condition that a row is one of refs, at its version: `((version = 0 AND id IN (1,2)) OR
 * (version = 3 AND id IN (7)))`. Every server reads these as ranges of the primary key, unlike IN
 * with row constructors. count > 0. */
#define CLAIM_REF_THESE(refs, count) SQL_OTHER(claim_ref_put, refs, count)
void claim_ref_put(struct buf *sql, const void *refs, int64_t count);
/* And that it is running, with the owner's token: the text, and its values. */
#define CLAIM_REF_OURS "status = ? AND claim_token = ? AND ?"
#define CLAIM_REF_OF(owner, refs, count)                                                           \
    SQL_INT(TASK_RUNNING), SQL_TOKEN((owner)->token), CLAIM_REF_THESE(refs, count)

#define CLAIM_REF_COLUMNS(X) X(CLAIM_REF_ID, "id") X(CLAIM_REF_VERSION, "version")
/* Runs a statement that selects CLAIM_REF_COLUMNS (columns.h), or an id and a version by other
 * names, and stores its rows in refs, at most `count`. *ret_count: how many these are. */
int claim_ref_read(struct db *db, const struct buf *sql, struct claim_ref *refs, size_t count,
                   size_t *ret_count, struct err *err) __attribute__((warn_unused_result));

/* The same for rows of dq_task, found by the primary key and a condition, whose values follow. ret
 * may be among them: they are put before it is filled. */
#define claim_ref_find(db, ret, count, ret_count, err, where, ...)                                 \
    claim_ref_find_values(db, ret, count, ret_count, err, where, SQL_VALUES(__VA_ARGS__))
struct sql_value;
int claim_ref_find_values(struct db *db, struct claim_ref *ret, size_t count, size_t *ret_count,
                          struct err *err, const char *where, const struct sql_value *v, size_t n)
    __attribute__((warn_unused_result));

#endif
