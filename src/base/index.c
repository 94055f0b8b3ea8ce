/*
 * index.c - see index.h. Invariant: at most half of the slots are taken, so a search ends soon.
 */
#include "base/index.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 64

/* The slot of the key, or the free one where it belongs. */
static struct index_slot *slot_of(const struct index *x, const char *key, size_t len)
{
    size_t at = (size_t)text_hash(TEXT_HASH_INIT, key, len);

    for (;; at++) {
        struct index_slot *s = &x->slots[at & (x->slot_count - 1)];
        if (!s->key || (s->len == len && memcmp(s->key, key, len) == 0))
            return s;
    }
}

static void grow(struct index *x)
{
    struct index more = {.count = x->count,
                         .slot_count = x->slot_count ? 2 * x->slot_count : SLOTS_FIRST};

    more.slots = mem_zero(more.slot_count, sizeof *more.slots);
    for (size_t i = 0; i < x->slot_count; i++)
        if (x->slots[i].key)
            *slot_of(&more, x->slots[i].key, x->slots[i].len) = x->slots[i];
    free(x->slots);
    *x = more;
}

size_t index_find(const struct index *x, const char *key, size_t len)
{
    const struct index_slot *s = x->count ? slot_of(x, key, len) : NULL;

    return s && s->key ? s->number : INDEX_NONE;
}

void index_add(struct index *x, const char *key, size_t len)
{
    if (2 * x->count >= x->slot_count)
        grow(x);
    *slot_of(x, key, len) = (struct index_slot){key, len, x->count};
    x->count++;
}

void index_done(struct index *x)
{
    free(x->slots);
    *x = (struct index){0};
}
