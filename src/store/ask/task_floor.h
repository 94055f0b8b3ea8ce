/*
 * task_floor.h - the lowest id of the tasks created since an instant. Private to src/store.
 */
#ifndef DQ_STORE_ASK_TASK_FLOOR_H
#define DQ_STORE_ASK_TASK_FLOOR_H

#include "store/db/db.h"

#include <stdbool.h>

/* Finds an id below which no task was created at `at` or later. Ids grow with create_time, but for
 * long transactions, for which the search has an allowance, so bisecting the primary key finds it.
 * Tasks that were imported with their old times, or inserted by a program whose clock is wrong,
 * break that order and can mislead the search. If there was an import since then, or if a task
 * among thousands below the id was created at `at` or later, *ret_ordered is false and *ret_id 0:
 * any task may have been. A few tasks behind a run of more than 20,000 with a wrong time may be
 * missed. Some 60 statements of one row, and one of some 20,000. Blocks on the database. */
int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, bool *ret_ordered, struct err *err)
    __attribute__((warn_unused_result));

#endif
