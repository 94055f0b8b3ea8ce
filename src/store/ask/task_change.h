/*
 * task_change.h - cancelling, retrying, rescheduling and deleting tasks.
 *
 * Each change is one UPDATE that checks status and version (task_transition), so that it never
 * overwrites what another session did in between. All functions block on the database.
 */
#ifndef DQ_STORE_ASK_TASK_CHANGE_H
#define DQ_STORE_ASK_TASK_CHANGE_H

#include "base/task.h"
#include "store/ask/targets.h"
#include "store/ask/task_list.h"
#include "store/db/db.h"
#include "store/row/rows.h"

/* Which change: TASK_CANCEL, TASK_RETRY or TASK_RESCHEDULE. */
struct task_change {
    enum task_event event;
    /* TASK_RETRY, TASK_RESCHEDULE: the new time; TASK_TIME_NONE: the database's now + delay_ms */
    int64_t expected_at;
    int64_t delay_ms;
    /* the new times are spread evenly over this long, in the order of the targets */
    int64_t over_ms;
    bool moves_expiry; /* the time at which they expire moves along; else they do not expire any
                          more */
};
/* Changes the tasks of x that are still at their versions, in steps of ROWS_STEP. change NULL:
 * deletes those that are still finished, with their attempts.
 *
 * Tasks that could not be changed are added to *faults: their row is locked by another session
 * (ERR_LOCKED), a live task has their tag and key (ERR_DUPLICATE, also returned if nothing was
 * changed), or the server refused. On any other error *ret is set if earlier steps changed
 * something. ERR_LOST: it is not known whether the last step was done; repeating it is safe. */
int task_change(struct db *db, const struct targets *x, const struct task_change *change,
                const struct targets_steps *steps, struct task_changed *ret,
                struct rows_faults *faults, struct err *err) __attribute__((warn_unused_result));

#endif
