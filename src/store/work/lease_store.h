/*
 * lease_store.h - renewing leases, and taking back tasks whose lease has ended. All functions block
 * on the database.
 */
#ifndef DQ_STORE_WORK_LEASE_STORE_H
#define DQ_STORE_WORK_LEASE_STORE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"
#include "store/row/rows.h"
#include "store/row/task_array.h"

/* Sets lost[i] to whether refs[i] is no longer ours: running, at that version, with our token; and
 * followed[i] to whether it is, and someone follows its output (output_store.h); followed NULL:
 * dq_output is not read. Those that are ours also get again[i], whether they were added again;
 * NULL: not asked for. */
int lease_store_check(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                      size_t count, bool *lost, bool *followed, bool *again, struct err *err)
    __attribute__((warn_unused_result));
/* Sets lost[] likewise, and lets the leases of those still ours end lease_ms after the statement.
 * One UPDATE for each ROWS_STEP of them if no row fails. faults, careful: as rows_run; the leases
 * of those in *faults do not change. */
int lease_store_renew(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                      size_t count, int64_t lease_ms, bool careful, bool *lost,
                      struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

/* Appends to ret the running tasks of any owner whose lease has ended, or is further ahead than
 * longest_lease_ms (a day, if its dqd has ended) and a minute, except those of but[], with
 * everything but body and output. In the order of their tags, starting behind after_tag (NULL: with
 * the first tag), at most limit. skip_locked: passes over locked rows, if the server can. */
int lease_store_expired(struct db *db, const char *after_tag, const uint64_t *but, size_t but_count,
                        int64_t longest_lease_ms, bool skip_locked, size_t limit,
                        struct task_array *ret, struct err *err)
    __attribute__((warn_unused_result));

enum lease_end {
    LEASE_TAKE_BACK, /* TASK_TAKE_BACK: due at once, or soon if it is not the first time */
    LEASE_GIVE_UP,   /* TASK_GIVE_UP */
    /* It was made while the server's clock was ahead. It becomes one that has just begun, as its
     * owner may be alive: then he renews it, or ends the handler before. */
    LEASE_CUT,
};
/* Ends them as ends[i] says; a task that is taken back or given up gets its row of dq_attempt
 * (lease-expired), and taken[i] is set if status,
 * version and the ended lease were still as listed; other rows are left alone. In transactions of
 * at most 100 tasks. on_failed: of each that is given up, the tag of a task to add (follow_up.h),
 * or NULL; NULL: none. faults, careful: as rows_run. */
int lease_store_take_back(struct db *db, const struct task_array *expired,
                          const enum lease_end *ends, const char *const *on_failed, bool careful,
                          bool *taken, struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
