/*
 * settle_store.h - recording how attempts ended.
 */
#ifndef DQ_STORE_WORK_SETTLE_STORE_H
#define DQ_STORE_WORK_SETTLE_STORE_H

#include "store/db/db.h"
#include "store/row/claim_ref.h"
#include "store/row/rows.h"
#include "store/row/settlement.h"

/* Settles all of s: what leaves no row of dq_attempt in one UPDATE for each event, the others with
 * their rows in one short transaction (several of each, if there are more than ROWS_STEP or they
 * take more than a packet). Blocks on the database.
 *
 * applied[i] is set if the row was still ours, also if an earlier call with the same settlement
 * applied it and then failed with ERR_LOST: calling again with the same array is safe and applies
 * nothing twice. history_all: successes and snoozes get a row of dq_attempt too. A release without
 * an error (the task was never started, as dqd is stopping) leaves none.
 *
 * The beginning of an output that does not fit into max_allowed_packet is cut off; a line in its
 * place says so. A row of dq_attempt that already exists for that task and version dates from
 * before a TRUNCATE or a partial restore, and is replaced.
 *
 * A task that was added again while it ran (again_time) gets the body that was added, and becomes
 * pending instead of done or failed. A task without costs nothing; those with are settled by a
 * statement of their own. For one that has failed, a task is added if on_failed is set. Returns 1
 * if some tasks were added, or added again, otherwise 0.
 *
 * faults, careful: as rows_run. Those in *faults are not applied. */
int settle_store_settle(struct db *db, const struct claim_owner *owner, const struct settlement *s,
                        size_t count, bool history_all, bool careful, bool *applied,
                        struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

/* Whether a result may add a row of dq_attempt, and so needs a transaction. */
bool settle_store_needs_attempt(const struct settlement *s, bool history_all);

#endif
