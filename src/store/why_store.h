/*
 * why_store.h - what may hold back the tasks of a tag: small, bounded looks for dq why. Nothing is
 * locked, but by why_store_locked. All functions block on the database.
 */
#ifndef DQ_STORE_WHY_STORE_H
#define DQ_STORE_WHY_STORE_H

#include "base/task.h"
#include "store/db.h"

#define WHY_STORE_MOST 10000 /* counting stops here */

/* The tasks of a tag that a dqd runs, or has claimed. */
struct why_owner {
    unsigned char token[TASK_TOKEN_SIZE];
    uint64_t tasks;
};

struct why_tag {
    uint64_t before; /* pending tasks of the tag that come before it; at most WHY_STORE_MOST + 1 */
    struct why_owner *owners;
    size_t owner_count;
    int64_t
        mean_ms; /* mean time of the last hundred done tasks from start to end; -1: there is none */
    int64_t paused_until_at; /* INT64_MAX: until resumed; TASK_TIME_NONE: not paused */
    char *paused_by, *pause_reason;
};

/* What there is before a task of that tag, due then. Free *ret with why_store_done, also after a
 * failure. */
int why_store_read(struct db *db, const struct task *t, struct why_tag *ret, struct err *err)
    __attribute__((warn_unused_result));
void why_store_done(struct why_tag *w);
/* The id of the pending task of the tag that is due first. 1, or 0: there is none. */
int why_store_first(struct db *db, const char *tag, uint64_t *ret_id, struct err *err)
    __attribute__((warn_unused_result));
/* Whether another session has locked the row of a pending task: 1 or 0, without waiting. Locks it
 * itself for the time of the statement. ERR_STATE if the server cannot say. */
int why_store_locked(struct db *db, uint64_t id, struct err *err)
    __attribute__((warn_unused_result));

#endif
