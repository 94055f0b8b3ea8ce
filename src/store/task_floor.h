/*
 * task_floor.h - where in the primary key the tasks since an instant begin. Private to src/store.
 */
#ifndef DQ_STORE_TASK_FLOOR_H
#define DQ_STORE_TASK_FLOOR_H

#include "store/db.h"

/* An id below which no task was created at `at` or later: found by bisecting the primary key, as
 * ids grow with create_time, but for transactions that took long and clocks that were set. Callers
 * subtract from `at` what they allow for those. */
int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, struct err *err)
    __attribute__((warn_unused_result));

#endif
