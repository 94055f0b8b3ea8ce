/*
 * targets.h - the tasks to be changed or deleted, listed before the first of them is: what was
 * counted and agreed to is what is changed, and a change that moves a task in the order does not
 * meet it again.
 */
#ifndef DQ_STORE_ASK_TARGETS_H
#define DQ_STORE_ASK_TARGETS_H

#include "base/task.h"
#include "store/ask/task_list.h"
#include "store/db/db.h"
#include "store/fleet/event_store.h"
#include "store/row/claim_ref.h"

struct task_changed {
    uint64_t matched; /* tasks that matched and were in a state that allows the change */
    uint64_t changed; /* of these: changed */
    uint64_t running; /* of the changed: were running before */
    uint64_t lost;    /* another session was quicker, or it is in *faults */
    uint64_t faulty;  /* of the lost: those; set by change_apply */
};

#define TARGETS_TRIES 3 /* of a step that deadlocks, or whose connection breaks */

struct targets { /* initialize with {0}, free with targets_done */
    struct claim_ref *refs;
    unsigned char *running; /* whether refs[i] was running */
    size_t *sizes;          /* of its body, SIZE_MAX: not known */
    size_t count, cap;
};
/* Lists the tasks that match f, are in one of the allowed states (a mask of TASK_BIT), and for
 * which wanted, unless NULL, is true. Blocks on the database. */
int targets_list(struct db *db, const struct task_filter *f, unsigned allowed,
                 bool (*wanted)(const struct task *t, void *arg), void *arg, struct targets *x,
                 struct err *err) __attribute__((warn_unused_result));
void targets_done(struct targets *x);

/* What accompanies a change of many tasks, which goes in steps (targets_step). */
struct targets_steps {
    struct event_act *act; /* recorded in the transaction of each step; NULL: not */
    /* called after each step; false: no other one. NULL: go on */
    bool (*go_on)(const struct task_changed *so_far, void *arg);
    void *arg;
};

/* The others are private to src/store. */

/* How many targets, from there on, are changed by one statement: at most ROWS_STEP, fewer if their
 * bodies are long (rows_take). */
size_t targets_step(const struct targets *x, size_t from);

/* Always ERR_LOST: adds to err that it is not known whether n tasks were
 * changed. */
int targets_unsure(size_t n, struct err *err) __attribute__((warn_unused_result));

#endif
