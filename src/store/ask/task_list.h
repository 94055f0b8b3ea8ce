/*
 * task_list.h - the tasks that match a filter, in order. Blocks on the database, changes nothing.
 */
#ifndef DQ_STORE_ASK_TASK_LIST_H
#define DQ_STORE_ASK_TASK_LIST_H

#include "base/task.h"
#include "store/ask/task_filter.h"
#include "store/db/db.h"

/* Calls each(task, arg) for the matching tasks, in order, with every column except output and,
 * unless `bodies`, body. If each returns non-zero, stops and returns that. `each` may use the
 * connection. Reads at most limit x (tags x statuses) rows or so: one range of the index `due` per
 * (status, tag), merged; with a key through its index; with ids through the primary key. An order
 * without an index is made in memory. */
int task_list(struct db *db, const struct task_filter *f, bool bodies,
              int (*each)(const struct task *t, void *arg), void *arg, struct err *err)
    __attribute__((warn_unused_result));

/* Counts the tasks in the states of a mask of TASK_BIT, up to `most`. Reads as many entries of the
 * index `due`. */
int task_list_count(struct db *db, unsigned statuses, uint64_t most, uint64_t *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
