/*
 * task_delete.c - deleting finished tasks, in steps (targets_step). Invariant: see delete_store.c.
 */
#include "store/ask/task_delete.h"
#include "store/work/delete_store.h"

static int delete_step(struct db *db, const struct claim_ref *refs, size_t n, struct event_act *act,
                       size_t *ret_deleted, struct rows_faults *faults, struct err *err)
{
    struct delete_store_how how = {act, TARGETS_TRIES, false};
    struct delete_store_done done;

    int rc = delete_store_refs(db, refs, n, &how, &done, faults, err);
    *ret_deleted = done.deleted;
    return rc < 0 && done.lost ? targets_unsure(n, err) : rc;
}

int task_delete(struct db *db, const struct targets *x, const struct targets_steps *steps,
                struct task_changed *ret, struct rows_faults *faults, struct err *err)
{
    struct task_changed so_far = {.matched = x->count};
    size_t n, deleted;
    bool go_on = true;
    int rc = 0;

    for (size_t from = 0; rc == 0 && go_on && from < x->count; from += n) {
        n = targets_step(x, from);
        deleted = 0;
        rc = delete_step(db, x->refs + from, n, steps->act, &deleted, faults, err);
        so_far.changed += deleted;
        so_far.lost += n - deleted;
        go_on = rc < 0 || !steps->go_on || steps->go_on(&so_far, steps->arg);
    }
    if (rc == 0 || so_far.changed)
        *ret = so_far;
    return rc;
}
