/*
 * lease_store.h - what is still ours, and whose lease has ended. All functions block on the
 * database.
 */
#ifndef DQ_STORE_LEASE_STORE_H
#define DQ_STORE_LEASE_STORE_H

#include "base/task.h"
#include "store/claim_ref.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/task_array.h"

/* What is still ours: sets lost[i] for tasks[i] (id, version) whose row no longer carries our token
 * at that version as running. */
int lease_store_check(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                      size_t count, bool *lost, struct err *err)
    __attribute__((warn_unused_result));
/* The same, and the leases of those still ours now end lease_ms after the statement: one UPDATE, if
 * no row is bad. faults, careful: as rows_run; the leases of those in *faults are as before. */
int lease_store_renew(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                      size_t count, int64_t lease_ms, bool careful, bool *lost,
                      struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

/* Running tasks whose lease has ended, whoever owned them, but for those of but[]: id, tag,
 * version, attempt, max_attempts, host, pid, execution_at. By their tags, from the one behind
 * after_tag on (NULL: from the first), at most limit. */
int lease_store_expired(struct db *db, const char *after_tag, const uint64_t *but, size_t but_count,
                        size_t limit, struct task_array *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Takes them back: TASK_TAKE_BACK (due at once, or soon when it is not the first time) or
 * TASK_GIVE_UP (give_up[i]), each with its row of dq_attempt (lease-expired), only where status,
 * version and the ended lease still hold: taken[i]. In transactions of at most 100 tasks. faults,
 * careful: as rows_run. */
int lease_store_take_back(struct db *db, const struct task_array *expired, const bool *give_up,
                          bool careful, bool *taken, struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
