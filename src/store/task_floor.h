/*
 * task_floor.h - the lowest id of the tasks created since an instant. Private to src/store.
 */
#ifndef DQ_STORE_TASK_FLOOR_H
#define DQ_STORE_TASK_FLOOR_H

#include "store/db.h"

/* Finds an id below which no task was created at `at` or later, by bisecting the primary key (some
 * 60 statements of one row at most). Ids grow with create_time except for long transactions and
 * clocks that were set; callers subtract an allowance for these from `at`. Blocks on the
 * database. */
int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, struct err *err)
    __attribute__((warn_unused_result));

#endif
