/*
 * task_change.h - operators' transitions of tasks.
 *
 * Each change is one UPDATE that checks status and version (task_transition), so that it never
 * overwrites what somebody else did in between. All functions block on the database.
 */
#ifndef DQ_STORE_TASK_CHANGE_H
#define DQ_STORE_TASK_CHANGE_H

#include "base/task.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/targets.h"
#include "store/task_list.h"

/* Operators' transitions (TASK_CANCEL, TASK_RETRY, TASK_RESCHEDULE) for all that match f, in steps
 * of at most 500 rows, each row by (id, version). dry_run: only counts. */
struct task_change {
    enum task_event event;
    /* TASK_RETRY, TASK_RESCHEDULE: the new time; TASK_TIME_NONE: the database's now + delay_ms */
    int64_t expected_at;
    int64_t delay_ms;
};
/* progress, if not NULL, is called after each step. *faults gets the tasks that could not be
 * changed: their row is locked by somebody (ERR_LOCKED), a live task has their tag and key
 * (ERR_DUPLICATE; returned if nothing was changed), or the server refuses. On other errors *ret is
 * set when something had been changed before; ERR_LOST: the last step may have been done or not,
 * and doing it again does no harm. */
int task_change(struct db *db, const struct task_filter *f, const struct task_change *change,
                bool dry_run, void (*progress)(const struct task_changed *so_far, void *arg),
                void *arg, struct task_changed *ret, struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
