/*
 * failures.c - see failures.h. Invariant: a task counts as failed or retrying in one group only,
 * that of its newest failure.
 */
#include "cli/judge/failures.h"

#include "base/mem.h"
#include "base/pattern.h"
#include "base/task.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Of more groups, each compared with each, the comparison would take seconds. */
#define COMPARED_MAX 1000

/* key: the tag, a NUL, and the pattern. */
static struct failures_group *group_of(struct failures *f, struct buf *key)
{
    size_t len = key->len, at = index_find(&f->index, key->data, len);

    if (at == INDEX_NONE) {
        MEM_ROOM(f->items, f->count, f->cap);
        at = f->count++;
        char *tag = buf_take(key);
        f->items[at] = (struct failures_group){.tag = tag, .pattern = tag + strlen(tag) + 1};
        index_add(&f->index, tag, len);
    }
    return &f->items[at];
}

void failures_add(const struct failure *x, void *failures)
{
    struct failures *f = failures;
    BUF_LOCAL struct buf key = BUF_INIT;
    buf_add(&key, x->tag, strlen(x->tag) + 1);
    pattern_put(&key, x->error);
    struct failures_group *g = group_of(f, &key);
    if (seen_put(&f->tasks, x->id)) {
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

void failures_sort(struct failures *f)
{
    if (f->count > 0)
        qsort(f->items, f->count, sizeof *f->items, compare_groups);
}

/* A pattern that was cut stands for texts with any end. */
static bool may_match(const char *glob, const char *pattern)
{
    size_t fixed = strcspn(glob, "*?");
    return glob[fixed] && (task_tag_glob(glob, pattern) ||
                           (strlen(pattern) >= PATTERN_MAX && strncmp(glob, pattern, fixed) == 0));
}

bool failures_alone(const struct failures *f, const struct failures_group *g, const char *tag_glob)
{
    if (f->count > COMPARED_MAX || !g->pattern[strspn(g->pattern, "*? ")])
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const struct failures_group *other = &f->items[i];
        if (other != g && may_match(g->pattern, other->pattern) &&
            task_tag_glob(tag_glob, other->tag))
            return false;
    }
    return true;
}

void failures_done(struct failures *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->items[i].tag); /* and its pattern */
    free(f->items);
    index_done(&f->index);
    seen_done(&f->tasks);
    *f = (struct failures){0};
}
