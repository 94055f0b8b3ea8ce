/*
 * task_match.h - the keys of tasks that a filter names so closely that all can be read at once.
 * Private to src/store/ask.
 */
#ifndef DQ_STORE_ASK_TASK_MATCH_H
#define DQ_STORE_ASK_TASK_MATCH_H

#include "store/ask/task_filter.h"
#include "store/db/db.h"

struct task_key {
    int64_t expected; /* db_stamp: invalid times, too, have a place in the server's order */
    uint64_t id;
};

struct task_match {
    struct task_key *keys; /* the caller frees them */
    size_t count, cap;
};

void task_match_add(struct task_match *m, struct task_key key);
/* If the filter has ids, a key, or the time since which its tasks were created or, of failed ones,
 * finished: adds the keys of the tasks in these states (a mask of TASK_BIT) that
 * match, unsorted, and returns 1. Otherwise 0. f->search->partial is set if the search leaves out
 * tasks, *f->unordered as task_filter.h says. Blocks on the database. */
int task_match_load(struct db *db, const struct task_filter *f, unsigned statuses,
                    struct task_match *ret, struct err *err) __attribute__((warn_unused_result));
/* Adds the keys of all tasks of `from`, a table reference that ends with a condition, whose tags
 * match the filter. Blocks on the database. */
int task_match_read(struct db *db, const struct task_filter *f, const struct buf *from,
                    struct task_match *ret, struct err *err) __attribute__((warn_unused_result));

#endif
