/*
 * handlers_table.c - see handlers_table.h.
 */
#include "poller/handlers_table.h"

#include "base/mem.h"

#include <stdlib.h>

struct handlers_table *handlers_table_new(struct handlers *handlers)
{
    struct handlers_table *t = mem_alloc(sizeof *t);

    *t = (struct handlers_table){.handlers = handlers, .users = 1};
    return t;
}

struct handlers_table *handlers_table_use(struct handlers_table *t)
{
    t->users++;
    return t;
}

void handlers_table_release(struct handlers_table *t)
{
    if (--t->users > 0)
        return;
    handlers_free(t->handlers);
    free(t);
}
