/*
 * task_array.h - a growing array of tasks.
 */
#ifndef DQ_STORE_ROW_TASK_ARRAY_H
#define DQ_STORE_ROW_TASK_ARRAY_H

#include "base/task.h"

struct task_array {
    struct task *items; /* owned */
    size_t count, cap;
    bool lies; /* after a claim: some row has a body_size that is wrong */
};
/* Appends an empty task; the pointer is valid until the next call. */
struct task *task_array_add(struct task_array *l);
void task_array_done(struct task_array *l);

#endif
