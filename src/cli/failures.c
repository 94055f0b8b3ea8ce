/*
 * failures.c - see failures.h. Invariant: a task counts as failed or retrying in one group only,
 * that of its newest failure.
 */
#include "cli/failures.h"

#include "base/mem.h"
#include "base/pattern.h"
#include "base/task.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* A table is at most half full. */
#define SLOTS_FIRST 64

static uint64_t hash_id(uint64_t id)
{
    return text_hash(TEXT_HASH_INIT, &id, sizeof id);
}

static size_t *find_slot(const struct failures *f, const char *tag, const char *pattern)
{
    uint64_t h = text_hash(TEXT_HASH_INIT, tag, strlen(tag) + 1);
    size_t at = (size_t)text_hash(h, pattern, strlen(pattern)) & (f->slot_count - 1);
    while (f->slots[at]) {
        const struct failures_group *g = &f->items[f->slots[at] - 1];
        if (strcmp(g->tag, tag) == 0 && strcmp(g->pattern, pattern) == 0)
            break;
        at = (at + 1) & (f->slot_count - 1);
    }
    return &f->slots[at];
}

static void grow_slots(struct failures *f)
{
    free(f->slots);
    f->slot_count = f->slot_count ? 2 * f->slot_count : SLOTS_FIRST;
    f->slots = mem_zero(f->slot_count, sizeof *f->slots);
    for (size_t i = 0; i < f->count; i++)
        *find_slot(f, f->items[i].tag, f->items[i].pattern) = i + 1;
}

static struct failures_group *group_of(struct failures *f, const char *tag, const char *pattern)
{
    if (2 * f->count >= f->slot_count)
        grow_slots(f);
    size_t *slot = find_slot(f, tag, pattern);
    if (*slot)
        return &f->items[*slot - 1];
    if (f->count == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 16;
        f->items = mem_resize(f->items, f->cap, sizeof *f->items);
    }
    f->items[f->count] =
        (struct failures_group){.tag = mem_strdup(tag), .pattern = mem_strdup(pattern)};
    *slot = ++f->count;
    return &f->items[f->count - 1];
}

/* True the first time. */
static bool put_task(uint64_t *tasks, size_t slots, uint64_t id)
{
    size_t at = (size_t)hash_id(id) & (slots - 1);
    while (tasks[at] && tasks[at] != id)
        at = (at + 1) & (slots - 1);
    bool is_new = !tasks[at];
    tasks[at] = id;
    return is_new;
}

static bool is_first_of_task(struct failures *f, uint64_t id)
{
    if (2 * f->task_count >= f->task_slots) {
        size_t slots = f->task_slots ? 2 * f->task_slots : SLOTS_FIRST;
        uint64_t *tasks = mem_zero(slots, sizeof *tasks);
        for (size_t i = 0; i < f->task_slots; i++)
            if (f->tasks[i])
                put_task(tasks, slots, f->tasks[i]);
        free(f->tasks);
        f->tasks = tasks;
        f->task_slots = slots;
    }
    bool is_new = put_task(f->tasks, f->task_slots, id);
    f->task_count += is_new;
    return is_new;
}

void failures_add(struct failures *f, const struct failure *x)
{
    struct buf pattern = BUF_INIT;
    pattern_put(&pattern, x->error);
    struct failures_group *g = group_of(f, x->tag, pattern.data ? pattern.data : "");
    buf_done(&pattern);
    if (is_first_of_task(f, x->id)) {
        g->failed += x->status == TASK_FAILED;
        g->retrying += x->status == TASK_PENDING || x->status == TASK_RUNNING;
    }
    if (g->failures == 0 || x->finish_at > g->last_at) {
        g->last_at = x->finish_at;
        g->id = x->id;
    }
    g->first_at = g->failures == 0 ? x->finish_at : MIN(g->first_at, x->finish_at);
    g->failures++;
}

static int compare_groups(const void *a, const void *b)
{
    const struct failures_group *x = a, *y = b;
    if (x->failures != y->failures)
        return x->failures > y->failures ? -1 : 1;
    if (x->last_at != y->last_at)
        return x->last_at > y->last_at ? -1 : 1;
    int tags = strcmp(x->tag, y->tag);
    return tags ? tags : strcmp(x->pattern, y->pattern);
}

/* The slots are of no use afterwards. */
void failures_sort(struct failures *f)
{
    if (f->count > 0)
        qsort(f->items, f->count, sizeof *f->items, compare_groups);
}

void failures_done(struct failures *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].tag);
        free(f->items[i].pattern);
    }
    free(f->items);
    free(f->slots);
    free(f->tasks);
    *f = (struct failures){0};
}
