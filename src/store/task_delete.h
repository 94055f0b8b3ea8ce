/*
 * task_delete.h - deleting finished tasks with their attempts. All functions block on the database.
 */
#ifndef DQ_STORE_TASK_DELETE_H
#define DQ_STORE_TASK_DELETE_H

#include "base/task.h"
#include "store/claim_ref.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/targets.h"
#include "store/task_list.h"

/* Deletes the finished tasks that match f and finished before finished_before_at (TASK_TIME_NONE:
 * at any time), with their attempts. dry_run, progress, *ret, *faults: as task_change. */
int task_delete(struct db *db, const struct task_filter *f, int64_t finished_before_at,
                bool dry_run, void (*progress)(const struct task_changed *so_far, void *arg),
                void *arg, struct task_changed *ret, struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

/* Deletes those of refs (at most ROWS_STEP) that are finished and still at that version, with their
 * attempts, in one short transaction if no row fails. *ret_deleted is their number. faults: as
 * rows_run. */
int task_delete_refs(struct db *db, const struct claim_ref *refs, size_t count, size_t *ret_deleted,
                     struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
