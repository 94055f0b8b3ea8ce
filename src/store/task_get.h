/*
 * task_get.h - one task with all there is about it, and the time. Blocks on the database, changes
 * nothing.
 */
#ifndef DQ_STORE_TASK_GET_H
#define DQ_STORE_TASK_GET_H

#include "base/task.h"
#include "store/db.h"

/* One task with body and output; ERR_NOT_FOUND. The caller task_done()s ret. */
int task_get(struct db *db, uint64_t id, struct task *ret, struct err *err)
    __attribute__((warn_unused_result));

/* The database's clock. */
int task_get_now(struct db *db, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

#endif
