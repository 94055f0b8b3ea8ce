/*
 * task_array.c - tasks as they come from the database. Invariant: items[0 .. count-1] are
 * initialized.
 */
#include "store/row/task_array.h"
#include "base/mem.h"

#include <stdlib.h>

void task_array_done(struct task_array *l)
{
    for (size_t i = 0; i < l->count; i++)
        task_done(&l->items[i]);
    free(l->items);
    *l = (struct task_array){NULL, 0, 0, false};
}

struct task *task_array_add(struct task_array *l)
{
    MEM_ROOM(l->items, l->count, l->cap);
    struct task *t = &l->items[l->count++];
    task_init(t);
    return t;
}
