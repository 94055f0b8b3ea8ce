/*
 * task_delete.h - deleting finished tasks with their attempts. All functions block on the database.
 */
#ifndef DQ_STORE_ASK_TASK_DELETE_H
#define DQ_STORE_ASK_TASK_DELETE_H

#include "base/task.h"
#include "store/ask/targets.h"
#include "store/ask/task_list.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"
#include "store/row/rows.h"

/* Deletes the tasks of x that are still finished and at their versions, with their attempts. steps,
 * *ret, *faults: as task_change. */
int task_delete(struct db *db, const struct targets *x, const struct targets_steps *steps,
                struct task_changed *ret, struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
