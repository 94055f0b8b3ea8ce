/*
 * expire_store.h - cancelling tasks that were not started in time. Blocks on the database.
 */
#ifndef DQ_STORE_WORK_EXPIRE_STORE_H
#define DQ_STORE_WORK_EXPIRE_STORE_H

#include "store/row/rows.h"
#include "store/work/claim_find.h"

/* Cancels what a claim has met (ask->expired), and the expired ones among the first `rows` due
 * tasks of a tag and level, in the due order, that are above *floor, and leaves ask->aside out;
 * those of all shares, and of a paused tag, too. Moves *floor behind them, or to {0} if there are
 * no more. *ret_count: how many were cancelled; for each of them a task is added if
 * ask->on_failed is set (follow_up.h). faults: as rows_run. A lost answer is not looked up: what
 * has expired and is still there is found again. */
int expire_store_cancel(struct db *db, const struct claim_ask *ask, enum task_level level,
                        size_t rows, struct peek_floor *floor, uint64_t *ret_count,
                        struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
