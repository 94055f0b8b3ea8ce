/*
 * seen.c - see seen.h. Invariant: memory is bounded by what was put within twice keep_ms.
 */
#include "cli/judge/seen.h"

#include "base/mem.h"

#include <stdlib.h>

#define SLOTS_FIRST 256

static size_t slot_of(const struct seen_part *p, uint64_t key)
{
    size_t at = (size_t)(key ^ key >> 32) & (p->slot_count - 1);
    while (p->slots[at] && p->slots[at] != key)
        at = (at + 1) & (p->slot_count - 1);
    return at;
}

static bool has(const struct seen_part *p, uint64_t key)
{
    return p->slot_count && p->slots[slot_of(p, key)];
}

static void grow(struct seen_part *p)
{
    struct seen_part more = {.slot_count = p->slot_count ? 2 * p->slot_count : SLOTS_FIRST};
    more.slots = mem_zero(more.slot_count, sizeof *more.slots);
    for (size_t i = 0; i < p->slot_count; i++)
        if (p->slots[i])
            more.slots[slot_of(&more, p->slots[i])] = p->slots[i];
    free(p->slots);
    p->slots = more.slots;
    p->slot_count = more.slot_count;
}

bool seen_has(const struct seen *s, uint64_t key)
{
    return has(&s->now, key ? key : 1) || has(&s->before, key ? key : 1);
}

bool seen_put(struct seen *s, uint64_t key)
{
    key = key ? key : 1;
    if (seen_has(s, key))
        return false;
    if (2 * s->now.count >= s->now.slot_count)
        grow(&s->now);
    s->now.slots[slot_of(&s->now, key)] = key;
    s->now.count++;
    return true;
}

void seen_age(struct seen *s, int64_t now_at, int64_t keep_ms)
{
    if (now_at - s->begun_at < keep_ms)
        return;
    free(s->before.slots);
    s->before = s->now;
    s->now = (struct seen_part){0};
    s->begun_at = now_at;
}

void seen_done(struct seen *s)
{
    free(s->now.slots);
    free(s->before.slots);
}
