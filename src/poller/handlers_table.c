/*
 * handlers_table.c - see handlers_table.h.
 */
#include "poller/handlers_table.h"

#include "base/mem.h"
#include "base/text.h"
#include "store/fleet/poller_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Of the file, and of the program that has read it: another one may have other defaults. */
static uint64_t number_of(const struct handlers *h)
{
    uint64_t number = text_hash(TEXT_HASH_INIT, PACKAGE_VERSION, sizeof PACKAGE_VERSION);
    uint64_t tags = 0;

    for (size_t i = 0; i < h->count; i++)
        tags ^= text_hash(TEXT_HASH_INIT, h->items[i].name, strlen(h->items[i].name));
    number = text_hash(number, &h->digest, sizeof h->digest);
    number = tags << POLLER_SERVES_SHIFT | number >> POLLER_SERVES_SHIFT;
    return h->count ? MAX(number, 1) : 0;
}

struct handlers_table *handlers_table_new(struct handlers *handlers)
{
    struct handlers_table *t = mem_alloc(sizeof *t);

    *t = (struct handlers_table){.handlers = handlers, .number = number_of(handlers), .users = 1};
    t->elsewhere = mem_zero(handlers->count + 1, sizeof *t->elsewhere);
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
    free(t->elsewhere);
    free(t);
}
