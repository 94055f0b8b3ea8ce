/*
 * targets.h - the tasks to be changed or deleted, listed before the first of them is, so that a
 * change that moves a task in the order does not meet it again. Private to src/store, except for
 * struct task_changed.
 */
#ifndef DQ_STORE_TARGETS_H
#define DQ_STORE_TARGETS_H

#include "base/task.h"
#include "store/claim_ref.h"
#include "store/db.h"
#include "store/task_list.h"

struct task_changed {
    uint64_t matched; /* tasks that matched and were in a state that allows the change */
    uint64_t changed; /* of these: changed (== matched when dry_run) */
    uint64_t running; /* of the changed: were running before */
    uint64_t lost;    /* another session was quicker, or it is in *faults */
};

#define TARGETS_TRIES 3 /* of a step that deadlocks, or whose connection breaks */

struct targets {
    struct claim_ref *refs;
    unsigned char *running; /* whether refs[i] was running */
    size_t count, cap;
    int64_t finished_before_at; /* set by the caller; TASK_TIME_NONE: any */
};
/* Lists the tasks that match f and are in one of the allowed states (a mask of TASK_BIT). Blocks on
 * the database. */
int targets_list(struct db *db, const struct task_filter *f, unsigned allowed, struct targets *x,
                 struct err *err) __attribute__((warn_unused_result));
void targets_done(struct targets *x);
/* Always ERR_LOST: adds to err that it is not known whether n tasks were changed. */
int targets_unsure(size_t n, struct err *err) __attribute__((warn_unused_result));

#endif
