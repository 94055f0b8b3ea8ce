/*
 * why_store.h - what may hold back the tasks of a tag: small, bounded looks for dq why. Only
 * why_store_locked locks a row. All functions block on the database.
 */
#ifndef DQ_STORE_ASK_WHY_STORE_H
#define DQ_STORE_ASK_WHY_STORE_H

#include "base/task.h"
#include "store/fleet/limit_store.h"
#include "store/fleet/poller_store.h"

#define WHY_STORE_MOST 10000 /* counting stops here */

struct why_tag {
    uint64_t before; /* pending tasks of the tag that come before it; at most WHY_STORE_MOST + 1 */
    struct poller_tasks *owners; /* as of why_store_running */
    size_t owner_count;
    /* from start to end, of the last hundred done tasks: mean and median; -1: there are none */
    int64_t mean_ms, usual_ms;
    uint64_t longest_id; /* of its running tasks, that began first; 0: there is none */
    int64_t longest_from_at;
    struct tag_info pause; /* nothing else of it */
};

/* Reads it for a task that is pending or running. Free *ret with why_store_done, also after a
 * failure. */
int why_store_read(struct db *db, const struct task *t, struct why_tag *ret, struct err *err)
    __attribute__((warn_unused_result));
void why_store_done(struct why_tag *w);
/* Which dqd runs how many tasks of the tag, NULL: of which tag, as poller_store_tasks; counts at
 * most WHY_STORE_MOST + 1 tasks. */
int why_store_running(struct db *db, const char *tag, struct poller_tasks **ret, size_t *ret_count,
                      struct err *err) __attribute__((warn_unused_result));
/* The id of the pending task of the tag that is due first. 1, or 0: there is none. */
int why_store_first(struct db *db, const char *tag, uint64_t *ret_id, struct err *err)
    __attribute__((warn_unused_result));
/* Whether another session has locked the row of a pending task: 1 or 0, without waiting. Locks it
 * itself for the time of the statement. */
int why_store_locked(struct db *db, uint64_t id, struct err *err)
    __attribute__((warn_unused_result));

/* The same for the row of dq_limit of this name, which a claim locks if it has a limit for all
 * hosts. */
int why_store_limit_locked(struct db *db, const char *name, struct err *err)
    __attribute__((warn_unused_result));

/* The statement by which an operator makes such a row one that dqd takes: with a version or an
 * attempt that is too large, for which dq has no verb, or with an unknown status. Heap memory. */
char *why_store_mend_counts(uint64_t id);
char *why_store_mend_status(uint64_t id);

#endif
