/*
 * tags.c - the tags that the poller knows of. Invariant: poller.tags is sorted by name, an entry
 * with jobs is never removed, and those with a handler are known to look.c.
 */
#include "poller/tags.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "poller/state.h"

#include <stdlib.h>
#include <string.h>

#define WARN_EVERY_US INT64_C(600000000)
#define WARN_MOST 10 /* at a time */
#define FORGET_US INT64_C(600000000)

/* Among the first `count`, which are sorted. */
static size_t find(const struct poller *p, size_t count, const char *name, bool *found)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(p->tags.items[mid]->name, name);

        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *found = false;
    return low;
}

static bool selected(const struct poller *p, const char *name)
{
    if (!p->o->tags)
        return true;
    for (const char *const *g = p->o->tags; *g; g++)
        if (task_tag_glob(*g, name))
            return true;
    return false;
}

static int match(const struct poller *p, const struct tag_state *t)
{
    return t->selected && !strchr(t->name, TASK_TAG_NUL)
               ? handlers_match(p->table->handlers, t->name)
               : -1;
}

struct tag_state *tags_of(struct look_tag *t)
{
    return (struct tag_state *)t;
}

static void look_at(struct poller *p, struct tag_state *t)
{
    const struct handler *h = t->handler >= 0 ? &p->table->handlers->items[t->handler] : NULL;

    if (!h)
        return;
    t->look.batch = (uint32_t)h->batch;
    t->look.max_running = (uint32_t)h->max_running;
    t->look.limited = h->global_max_running > 0;
    look_add_tag(&p->look, &t->look);
}

static void look_at_all(struct poller *p)
{
    look_forget_tags(&p->look);
    for (size_t i = 0; i < p->tags.count; i++)
        look_at(p, p->tags.items[i]);
}

/* Makes a tag at an index of poller.tags. */
static struct tag_state *insert(struct poller *p, size_t at, const char *name)
{
    struct tag_state *t = mem_zero(1, sizeof *t);

    if (p->tags.count == p->tags.cap) {
        p->tags.cap = p->tags.cap ? 2 * p->tags.cap : 16;
        p->tags.items = mem_resize(p->tags.items, p->tags.cap, sizeof(struct tag_state *));
    }
    memmove(&p->tags.items[at + 1], &p->tags.items[at],
            (p->tags.count - at) * sizeof(struct tag_state *));
    t->name = mem_strdup(name);
    t->selected = selected(p, name);
    t->handler = match(p, t);
    t->look.next_at = TASK_TIME_NONE;
    p->tags.items[at] = t;
    p->tags.count++;
    return t;
}

struct tag_state *tags_named(struct poller *p, const char *name)
{
    bool found;
    size_t at = find(p, p->tags.count, name, &found);
    struct tag_state *t;

    if (found)
        return p->tags.items[at];
    t = insert(p, at, name);
    look_at(p, t);
    return t;
}

void tags_rematch(struct poller *p)
{
    for (size_t i = 0; i < p->tags.count; i++) {
        struct tag_state *t = p->tags.items[i];

        t->handler = match(p, t);
        look_tag_handler_changed(&t->look);
        t->warned_us = 0;
    }
    look_at_all(p);
}

/* Tags come and go: what has no tasks and no jobs for ten minutes is forgotten, so that memory
 * stays flat. */
static void forget(struct poller *p, int64_t now_us)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->tags.count; i++) {
        struct tag_state *t = p->tags.items[i];

        if (t->look.queued + t->look.running == 0 && now_us - t->seen_us > FORGET_US &&
            now_us > t->look.rest_until_us) {
            aside_done(&t->aside);
            free(t->name);
            free(t);
        } else {
            p->tags.items[kept++] = t;
        }
    }
    p->tags.count = kept;
}

/* Each by its name, as long as they are few. */
static void warn_unhandled(struct tag_state *t, size_t *warned, int64_t now_us)
{
    if (t->warned_us && now_us - t->warned_us < WARN_EVERY_US)
        return;
    t->warned_us = now_us;
    if (++*warned <= WARN_MOST)
        log_event(LOG_WARN, "tasks are due, but their tag has no handler here", "tag=%s",
                  log_quote(t->name));
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct tag_state *const *)a)->name, (*(struct tag_state *const *)b)->name);
}

/* New tags stand behind the others until the end: many at once are sorted once. */
void tags_take_all(struct poller *p, int64_t now_us)
{
    size_t known = p->tags.count, warned = 0;

    for (size_t i = 0; i < known; i++)
        look_saw_next(&p->look, &p->tags.items[i]->look, TASK_TIME_NONE, now_us);
    for (size_t i = 0; i < p->claims.peek.count; i++) {
        const struct claim_peek_tag *seen = &p->claims.peek.tags[i];
        bool found;
        size_t at = find(p, known, seen->tag, &found);
        struct tag_state *t = found ? p->tags.items[at] : insert(p, p->tags.count, seen->tag);

        t->seen_us = now_us;
        look_saw_next(&p->look, &t->look, seen->next_at, now_us);
        if (t->handler < 0 && t->selected && seen->next_at <= p->claims.peek.now_us / 1000)
            warn_unhandled(t, &warned, now_us);
    }
    if (warned > WARN_MOST)
        log_event(LOG_WARN, "tasks are due, but more tags have no handler here", "tags=%zu",
                  warned - WARN_MOST);
    if (p->tags.count > known)
        qsort(p->tags.items, p->tags.count, sizeof(struct tag_state *), by_name);
    forget(p, now_us);
    look_at_all(p);
}

void tags_take_news(struct poller *p, int64_t now_us)
{
    for (size_t i = 0; i < p->claims.peek.count; i++) {
        struct tag_state *t = tags_named(p, p->claims.peek.tags[i].tag);

        t->seen_us = now_us;
        look_tag_new(&t->look, p->claims.peek.tags[i].next_at);
    }
}

void tags_rest(struct tag_state *t, const char *why)
{
    int64_t rest_us = look_tag_rest(&t->look, when_steady_us());
    char text[WHEN_TEXT_SIZE];

    if (rest_us)
        log_event(
            LOG_ERROR,
            "handler cannot be started, its tasks are given back and the tag rests on this host",
            "tag=%s rest=%s error=%s", log_quote(t->name),
            when_format_duration(text, rest_us / 1000), log_quote(why));
}

void tags_free(struct poller *p)
{
    for (size_t i = 0; i < p->tags.count; i++) {
        aside_done(&p->tags.items[i]->aside);
        free(p->tags.items[i]->name);
        free(p->tags.items[i]);
    }
    aside_done(&p->upkeep.aside);
    free(p->upkeep.after);
    free(p->tags.items);
}
