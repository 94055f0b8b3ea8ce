/*
 * task_list.h - the tasks that match a filter, in order. Blocks on the database, changes nothing.
 */
#ifndef DQ_STORE_TASK_LIST_H
#define DQ_STORE_TASK_LIST_H

#include "base/task.h"
#include "store/db.h"

enum task_sort { SORT_EXPECTED, SORT_EXPECTED_DESC, SORT_ID, SORT_ID_DESC };
struct task_filter {
    const uint64_t *ids; /* NULL: any */
    size_t id_count;
    const char *tag_glob; /* NULL: any */
    const char *key;      /* NULL: any */
    unsigned statuses;    /* mask of TASK_BIT; 0: TASK_ANY */
    /* expected_time < before, >= after; TASK_TIME_NONE: open */
    int64_t due_before_at, due_after_at;
    int64_t since_at; /* create_time >= since; TASK_TIME_NONE: open */
    size_t limit;     /* 0: all */
    /* ties by id: the order is total, so the same on every call */
    enum task_sort sort;
};
/* Calls each(task, arg) for the matching tasks, in order, with every column except output and,
 * unless `bodies`, body. If each returns non-zero, stops and returns that. `each` may use the
 * connection. Reads at most limit x (tags x statuses) rows or so: one range of the index `due` per
 * (status, tag), merged; with a key through its index; with ids through the primary key. */
int task_list(struct db *db, const struct task_filter *f, bool bodies,
              int (*each)(const struct task *t, void *arg), void *arg, struct err *err)
    __attribute__((warn_unused_result));

#endif
