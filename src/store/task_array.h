/*
 * task_array.h - tasks as they come from the database.
 */
#ifndef DQ_STORE_TASK_ARRAY_H
#define DQ_STORE_TASK_ARRAY_H

#include "base/task.h"

struct task_array {
    struct task *items; /* owned */
    size_t count, cap;
    bool lies; /* after a claim: the body_size of some row is not true */
};
/* an empty task at the end, valid until the next call */
struct task *task_array_add(struct task_array *l);
void task_array_done(struct task_array *l);

#endif
