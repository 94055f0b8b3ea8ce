/*
 * task_get.h - one task. Blocks on the database, changes nothing.
 */
#ifndef DQ_STORE_ASK_TASK_GET_H
#define DQ_STORE_ASK_TASK_GET_H

#include "base/task.h"
#include "store/db/db.h"

/* Reads one task, with body and output. Free ret with task_done. ERR_NOT_FOUND. */
int task_get(struct db *db, uint64_t id, struct task *ret, struct err *err)
    __attribute__((warn_unused_result));

/* The same without body and output, for which some accounts lack the right. */
int task_get_short(struct db *db, uint64_t id, struct task *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Calls fn with the output of each of these tasks that has one, by id. One result, fetched row by
 * row: fn must not use the connection. */
int task_get_outputs(struct db *db, const uint64_t *ids, size_t n,
                     void (*fn)(uint64_t id, const void *output, size_t size, void *arg), void *arg,
                     struct err *err) __attribute__((warn_unused_result));

#endif
