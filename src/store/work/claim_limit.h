/*
 * claim_limit.h - what the limit and the pauses of a tag let a claim take, and what the claim takes
 * of them. Private to src/store/work. All functions but claim_limit_count block on the database.
 */
#ifndef DQ_STORE_WORK_CLAIM_LIMIT_H
#define DQ_STORE_WORK_CLAIM_LIMIT_H

#include "store/row/limit_row.h"
#include "store/work/claim_find.h"

/* Whether anything may start, without a lock: a limit by which nothing may is not locked to find
 * that out, nor is a paused tag claimed in vain again and again. limited: the tag is under a limit.
 * Sets *saw if it is, or is paused. *ret_may: how many, of one whose row nobody changes. */
int claim_limit_look(struct db *db, const struct claim_ask *ask, bool limited,
                     struct claim_seen *saw, uint64_t *ret_may, struct err *err)
    __attribute__((warn_unused_result));
/* Locks the row of the limit until the transaction ends, and adds it if there is none. careful:
 * does not wait for that lock. Returns ERR_LOCKED if another session has it. */
int claim_limit_lock(struct db *db, const struct claim_ask *ask, bool careful, struct err *err)
    __attribute__((warn_unused_result));
/* Reads that row, with what runs under it; the caller frees *row with limit_row_done. *ret_may: how
 * many tasks may start. Sets what *saw has of limits. */
int claim_limit_read(struct db *db, const struct claim_ask *ask, struct limit_row *row,
                     struct claim_seen *saw, uint64_t *ret_may, struct err *err)
    __attribute__((warn_unused_result));
/* Reserves a start of its rate for each of the tasks, in their order. full: there would have been
 * more tasks. */
int claim_limit_reserve(struct db *db, const struct claim_ask *ask, struct limit_row *row,
                        struct task_array *tasks, bool full, struct claim_seen *saw,
                        struct err *err) __attribute__((warn_unused_result));
/* The tasks count as late from when the limit let them start. */
void claim_limit_count(const struct limit_row *row, struct task_array *tasks);

#endif
