/*
 * task_keys.h - the ids of the tasks that may match a filter, in its order. Private to src/store.
 */
#ifndef DQ_STORE_ASK_TASK_KEYS_H
#define DQ_STORE_ASK_TASK_KEYS_H

#include "store/ask/task_filter.h"
#include "store/db/db.h"

struct task_keys;

/* Begins with the tasks in these states (a mask of TASK_BIT). The caller has to check each row: the
 * filter is applied only as far as that is cheap. f is used until task_keys_free;
 * f->search->partial is set if the search leaves out tasks. This function and the next one block on
 * the database. */
int task_keys_new(struct task_keys **ret, struct db *db, const struct task_filter *f,
                  unsigned statuses, struct err *err) __attribute__((warn_unused_result));
/* The next id: 1, or 0 at the end. The caller may use the connection in between. */
int task_keys_next(struct task_keys *k, uint64_t *ret_id, struct err *err)
    __attribute__((warn_unused_result));
void task_keys_free(struct task_keys *k); /* NULL is fine */

#endif
