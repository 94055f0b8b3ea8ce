/*
 * task_count.h - how many tasks are in some states. Blocks on the database, changes nothing.
 */
#ifndef DQ_STORE_ASK_TASK_COUNT_H
#define DQ_STORE_ASK_TASK_COUNT_H

#include "store/db/db.h"

#include <stddef.h>
#include <stdint.h>

/* Counts the tasks in the states of a mask of TASK_BIT, up to `most`. Reads as many entries of the
 * index `due`. */
int task_count(struct db *db, unsigned statuses, uint64_t most, uint64_t *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
