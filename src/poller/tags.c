/*
 * tags.c - the tags that the poller knows of, and the handlers that they have. Invariant: they are
 * sorted by name, one with jobs or results is never removed, and those with a handler are known to
 * look.c.
 */
#include "poller/tags.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "poller/context.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* A tag without handler is named in the log this often: it may be meant for another host. */
#define WARN_EVERY_US INT64_C(600000000)
/* And no more of them at a time: applications can make any number of tags. */
#define WARN_MOST 10
/* A tag without tasks and jobs is forgotten after that, so that memory stays flat: what is known of
 * it (rests, locked rows) is stale by then. */
#define FORGET_US INT64_C(600000000)

/* A shortage is logged again if there was none for so long. */
#define SHORT_AGAIN_US INT64_C(60000000)

void tags_init(struct tag_set *set, struct look *look, const char *const *globs,
               struct handlers *handlers)
{
    *set = (struct tag_set){.look = look, .globs = globs, .table = handlers_table_new(handlers)};
    set->recorded = set->table->number;
}

static const char *name_of(const void *items, size_t i)
{
    return ((struct tag_state *const *)items)[i]->name;
}

bool tags_selected(const struct tag_set *set, const char *name)
{
    if (!set->globs)
        return true;
    for (const char *const *g = set->globs; *g; g++)
        if (task_tag_glob(*g, name))
            return true;
    return false;
}

static void match(const struct tag_set *set, struct tag_state *t)
{
    const struct handlers *handlers = set->table->handlers;
    const int i = strchr(t->name, TASK_TAG_NUL) ? -1 : handlers_match(handlers, t->name);
    const struct handler *h = i < 0 ? NULL : &handlers->items[i];

    t->handler = t->selected ? i : -1;
    t->look.limit =
        h && h->limit ? text_hash((uint64_t)h->global_max_running, h->limit, strlen(h->limit)) : 0;
}

struct handlers_table *tags_table(const struct tag_set *set)
{
    return set->table;
}

const struct handler *tags_handler(const struct tag_set *set, const struct tag_state *t)
{
    return t->handler >= 0 ? &set->table->handlers->items[t->handler] : NULL;
}

const char *tags_limit(const struct tag_state *t)
{
    const struct handler *h = tags_handler(t->set, t);

    return h && h->limit ? h->limit : t->name;
}

bool tags_is_limited(const struct tag_state *t, const struct handler *h)
{
    return t->guarded || (h && h->global_max_running);
}

struct tag_state *tags_of(struct look_tag *t)
{
    return (struct tag_state *)t;
}

/* The tag's part in that of its handler; NULL: it shares with none. */
static uint32_t *shared(const struct tag_state *t)
{
    const struct handler *h = tags_handler(t->set, t);

    return h && h->keep ? &t->set->table->elsewhere[t->handler] : NULL;
}

static void share(struct tag_state *t)
{
    const uint32_t n = shared(t) ? *shared(t) : t->look.elsewhere;

    t->look.running += n - t->look.elsewhere;
    t->look.elsewhere = n;
}

void tags_share_elsewhere(struct tag_set *set)
{
    memset(set->table->elsewhere, 0, set->table->handlers->count * sizeof(uint32_t));
    for (size_t i = 0; i < set->count; i++) { /* with batches, each may seem to have them all */
        uint32_t *n = shared(set->items[i]);

        if (n)
            *n = MIN(*n + set->items[i]->look.elsewhere, set->look->turn.elsewhere);
    }
    for (size_t i = 0; i < set->count; i++)
        share(set->items[i]);
}

static void register_tag(struct tag_set *set, struct tag_state *t)
{
    const struct handler *h = tags_handler(set, t);

    if (!h)
        return;
    share(t);
    t->look.batch = (uint32_t)h->batch;
    t->look.max_running = (uint32_t)h->max_running;
    t->look.weight = (uint32_t)h->weight;
    look_add_tag(set->look, &t->look);
}

static void register_all(struct tag_set *set)
{
    look_forget_tags(set->look);
    for (size_t i = 0; i < set->count; i++)
        register_tag(set, set->items[i]);
}

/* Makes a tag at that index. */
static struct tag_state *insert(struct tag_set *set, size_t at, const char *name)
{
    struct tag_state *t = mem_zero(1, sizeof *t);

    MEM_ROOM(set->items, set->count, set->cap);
    memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof(struct tag_state *));
    t->name = mem_strdup(name);
    t->set = set;
    t->selected = tags_selected(set, name);
    match(set, t);
    t->look.next_at = TASK_TIME_NONE;
    if (set->passes)
        look_tag_begin_levels(&t->look, context_random());
    set->items[at] = t;
    set->count++;
    return t;
}

struct tag_state *tags_named(struct tag_set *set, const char *name)
{
    bool found;
    size_t at = text_place(set->items, set->count, name_of, name, &found);
    struct tag_state *t;

    if (found)
        return set->items[at];
    t = insert(set, at, name);
    register_tag(set, t);
    return t;
}

void tags_set_handlers(struct tag_set *set, struct handlers *handlers)
{
    handlers_table_release(set->table);
    set->table = handlers_table_new(handlers);
    for (size_t i = 0; i < set->count; i++) {
        struct tag_state *t = set->items[i];

        match(set, t);
        look_tag_handler_changed(&t->look);
        t->warned_us = 0;
        set->rests_changed = set->rests_changed || t->rest_error;
    }
    tags_share_elsewhere(set); /* until it is counted again */
    register_all(set);
}

static void free_tag(struct tag_state *t)
{
    aside_done(&t->aside);
    free(t->name);
    free(t->rest_error);
    free(t);
}

static void forget(struct tag_set *set, int64_t now_us)
{
    size_t kept = 0;

    for (size_t i = 0; i < set->count; i++) {
        struct tag_state *t = set->items[i];

        if (t->look.queued + t->look.running + t->look.unrecorded == 0 &&
            now_us - t->seen_us > FORGET_US && now_us > t->look.rest_until_us) {
            free_tag(t);
        } else {
            set->items[kept++] = t;
        }
    }
    set->count = kept;
}

/* Each by its name, while they are few. */
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

/* Sorts those that stand behind the first `known` in. Returns how many are known now. */
static size_t sort_new(struct tag_set *set, size_t known)
{
    if (set->count > known)
        qsort(set->items, set->count, sizeof(struct tag_state *), by_name);
    return set->count;
}

/* Which tags share a limit with some that --tag leaves to others, and that are due. */
static void see_others(struct tag_set *set)
{
    for (size_t i = 0; set->globs && i < set->count; i++)
        set->items[i]->look.others_wait = false;
    for (size_t i = 0; set->globs && i < set->count; i++) {
        const struct tag_state *o = set->items[i];

        /* once for each limit */
        if (o->selected || !o->look.limit || o->look.others_wait || !tags_is_due(set, o))
            continue;
        for (size_t k = 0; k < set->count; k++)
            set->items[k]->look.others_wait |= set->items[k]->look.limit == o->look.limit;
    }
}

/* New tags stand behind the others until their level ends: many at once are sorted once. */
void tags_take_all(struct tag_set *set, const struct peek *peek, int64_t now_us)
{
    const int64_t now_at = look_at(set->look, now_us);
    size_t known = set->count, warned = 0;

    set->looked_at = peek->now_us / 1000;
    for (size_t i = 0; i < known; i++) {
        look_tag_saw_none(&set->items[i]->look, now_at);
        set->items[i]->late_ms = 0;
    }
    for (size_t i = 0; i < peek->count; i++) {
        const struct peek_tag *seen = &peek->tags[i];
        bool found;

        if (i && seen->level != peek->tags[i - 1].level)
            known = sort_new(set, known);
        size_t at = text_place(set->items, known, name_of, seen->tag, &found);
        struct tag_state *t = found ? set->items[at] : insert(set, set->count, seen->tag);

        t->seen_us = now_us;
        t->late_ms = MAX(set->looked_at - seen->next_at, t->late_ms);
        look_tag_saw(&t->look, seen->level, seen->next_at, now_at);
        if (t->handler < 0 && t->selected && seen->next_at <= set->looked_at)
            warn_unhandled(t, &warned, now_us);
    }
    if (warned > WARN_MOST)
        log_event(LOG_WARN, "more tags with due tasks have no handler here", "tags=%zu",
                  warned - WARN_MOST);
    sort_new(set, known);
    see_others(set);
    forget(set, now_us);
    register_all(set);
}

void tags_take_news(struct tag_set *set, const struct peek *peek, int64_t now_us)
{
    set->looked_at = peek->now_us / 1000;
    for (size_t i = 0; i < peek->count; i++) {
        struct tag_state *t = tags_named(set, peek->tags[i].tag);

        t->seen_us = now_us;
        look_tag_new(&t->look, peek->tags[i].level, peek->tags[i].next_at);
    }
}

static void wait_for_host(struct tag_state *t, const char *why, int64_t now_us)
{
    if (!t->set->short_us || now_us - t->set->short_us > SHORT_AGAIN_US)
        log_event(LOG_ERROR,
                  "this host is short of processes, files or memory; starts are tried again",
                  "tag=%s error=%s", log_quote(t->name), log_quote(why));
    t->set->short_us = now_us;
    if (t->look.rest_until_us <= now_us) { /* it does not rest any more */
        free(t->rest_error);
        t->rest_error = NULL;
    }
    look_tag_short(&t->look, now_us);
}

void tags_rest(struct tag_state *t, int code, const char *why)
{
    int64_t now_us = when_steady_us(), rest_us;
    char text[WHEN_TEXT_SIZE];

    if (code == ERR_TRANSIENT) {
        wait_for_host(t, why, now_us);
        return;
    }
    rest_us = look_tag_rest(&t->look, now_us);
    if (!rest_us)
        return;
    free(t->rest_error);
    t->rest_error = mem_strdup(why ? why : "");
    t->set->rests_changed = true;
    log_event(
        LOG_ERROR,
        "a handler cannot be started; its tasks are given back, and its tag rests on this host",
        "tag=%s rest=%s error=%s", log_quote(t->name), when_format_duration(text, rest_us / 1000),
        log_quote(why));
}

struct tag_state *tags_each(const struct tag_set *set, size_t *at)
{
    return *at < set->count ? set->items[(*at)++] : NULL;
}

bool tags_is_due(const struct tag_set *set, const struct tag_state *t)
{
    return t->look.next_at != TASK_TIME_NONE && t->look.next_at <= set->looked_at;
}

void tags_free(struct tag_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free_tag(set->items[i]);
    free(set->items);
    handlers_table_release(set->table);
    *set = (struct tag_set){0};
}
