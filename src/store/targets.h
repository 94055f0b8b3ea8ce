/*
 * targets.h - the tasks that a change or a deletion is about, listed before the first of them is
 * touched, so that a change that moves a task in the order cannot meet it twice. Private to
 * src/store, but for what was done to them.
 */
#ifndef DQ_STORE_TARGETS_H
#define DQ_STORE_TARGETS_H

#include "base/task.h"
#include "store/claim_ref.h"
#include "store/db.h"
#include "store/task_list.h"

struct task_changed {
    uint64_t matched; /* tasks that matched f and were in a state that allows the event */
    uint64_t changed; /* of these: changed (== matched when dry_run) */
    uint64_t running; /* of the changed: were running before */
    uint64_t lost;    /* somebody else was quicker, or it is in *faults */
};

#define TARGETS_TRIES 3 /* of a step whose connection breaks or that deadlocks */

struct targets {
    struct claim_ref *refs;
    unsigned char *running; /* whether refs[i] was running */
    size_t count, cap;
    int64_t finished_before_at; /* set by the caller; TASK_TIME_NONE: any */
};
/* Lists the tasks that match f in one of the allowed states (a mask of TASK_BIT). */
int targets_list(struct db *db, const struct task_filter *f, unsigned allowed, struct targets *x,
                 struct err *err) __attribute__((warn_unused_result));
void targets_done(struct targets *x);
/* ERR_LOST for n of them, after every try was lost: err says that they may have been changed or
 * not. */
int targets_unsure(size_t n, struct err *err) __attribute__((warn_unused_result));

#endif
