/*
 * tags.c - what the poller knows of each tag, and how much of it to claim. Invariant: poller.tags is sorted by name, an entry with
 * jobs is never removed, and poller.handled has those of the others.
 */
#include "poller/state.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"

#include <stdlib.h>
#include <string.h>

#define REST_MIN_US INT64_C(5000000)
#define REST_MAX_US INT64_C(300000000)
#define WARN_EVERY_US INT64_C(600000000)
#define WARN_MOST 10 /* at a time */
#define FORGET_US INT64_C(600000000)
/* Tasks are claimed ahead of free slots for this long: far more than a claim takes, far less than anyone would notice. */
#define AHEAD_US INT64_C(100000)

/* Producers whose transaction takes no longer than this never commit a task that is due before a floor. */
#define FLOOR_SLACK_MS 1000

/* Among the first `count`, which are sorted. */
static size_t find(const struct poller *p, size_t count, const char *name, bool *found)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(p->tags[mid]->name, name);

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
    return t->selected && !strchr(t->name, TASK_TAG_NUL) ? handlers_match(p->table->handlers, t->name) : -1;
}

static void add_handled(struct poller *p, struct tag_state *t)
{
    if (t->handler < 0)
        return;
    if (p->handled_count == p->handled_cap) {
        p->handled_cap = p->handled_cap ? 2 * p->handled_cap : 16;
        p->handled = mem_resize(p->handled, p->handled_cap, sizeof(struct tag_state *));
    }
    p->handled[p->handled_count++] = t;
}

static void list_handled(struct poller *p)
{
    p->handled_count = 0;
    for (size_t i = 0; i < p->tag_count; i++)
        add_handled(p, p->tags[i]);
}

/* Makes a tag at an index of poller.tags. */
static struct tag_state *insert(struct poller *p, size_t at, const char *name)
{
    struct tag_state *t = mem_zero(1, sizeof *t);

    if (p->tag_count == p->tag_cap) {
        p->tag_cap = p->tag_cap ? 2 * p->tag_cap : 16;
        p->tags = mem_resize(p->tags, p->tag_cap, sizeof(struct tag_state *));
    }
    memmove(&p->tags[at + 1], &p->tags[at], (p->tag_count - at) * sizeof(struct tag_state *));
    t->name = mem_strdup(name);
    t->selected = selected(p, name);
    t->handler = match(p, t);
    t->next_at = TASK_TIME_NONE;
    p->tags[at] = t;
    p->tag_count++;
    return t;
}

struct tag_state *tags_get(struct poller *p, const char *name)
{
    bool found;
    size_t at = find(p, p->tag_count, name, &found);
    struct tag_state *t;

    if (found)
        return p->tags[at];
    t = insert(p, at, name);
    add_handled(p, t);
    return t;
}

void tags_rematch(struct poller *p)
{
    for (size_t i = 0; i < p->tag_count; i++) {
        struct tag_state *t = p->tags[i];

        t->handler = match(p, t);
        t->rest_until_us = t->rest_us = 0;
        t->warned_us = 0;
    }
    list_handled(p);
}

/* Tags come and go: what has no tasks and no jobs for ten minutes is forgotten, so that memory stays flat. */
static void forget(struct poller *p, int64_t now_us)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->tag_count; i++) {
        struct tag_state *t = p->tags[i];

        if (t->queued + t->running == 0 && now_us - t->seen_us > FORGET_US && now_us > t->rest_until_us) {
            aside_done(&t->aside);
            free(t->name);
            free(t);
        } else {
            p->tags[kept++] = t;
        }
    }
    p->tag_count = kept;
}

/* Each by its name, as long as they are few. */
static void warn_unhandled(struct tag_state *t, size_t *warned, int64_t now_us)
{
    if (t->warned_us && now_us - t->warned_us < WARN_EVERY_US)
        return;
    t->warned_us = now_us;
    if (++*warned <= WARN_MOST)
        log_event(LOG_WARN, "tasks are due, but their tag has no handler here", "tag=%s", log_quote(t->name));
}

void tags_set_floor(const struct poller *p, struct tag_state *t, struct claim_floor floor)
{
    int64_t recent_at = p->clock.known ? dbclock_at(&p->clock, when_steady_us()) - FLOOR_SLACK_MS : 0;

    t->floor = floor.at != TASK_TIME_NONE && floor.at < recent_at ? floor : (struct claim_floor){.at = recent_at};
}

void tags_take_next(const struct poller *p, struct tag_state *t, int64_t next_at)
{
    t->next_at = next_at;
    tags_set_floor(p, t, (struct claim_floor){.at = next_at});
    t->look = false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct tag_state *const *)a)->name, (*(struct tag_state *const *)b)->name);
}

/* New tags stand behind the others until the end: many at once are sorted once. */
void tags_take_peek(struct poller *p, int64_t now_us)
{
    size_t known = p->tag_count, warned = 0;

    for (size_t i = 0; i < known; i++)
        tags_take_next(p, p->tags[i], TASK_TIME_NONE);
    for (size_t i = 0; i < p->peek.count; i++) {
        const struct claim_peek_tag *seen = &p->peek.tags[i];
        bool found;
        size_t at = find(p, known, seen->tag, &found);
        struct tag_state *t = found ? p->tags[at] : insert(p, p->tag_count, seen->tag);

        t->seen_us = now_us;
        tags_take_next(p, t, seen->next_at);
        if (t->handler < 0 && t->selected && seen->next_at <= p->peek.now_us / 1000)
            warn_unhandled(t, &warned, now_us);
    }
    if (warned > WARN_MOST)
        log_event(LOG_WARN, "tasks are due, but more tags have no handler here", "tags=%zu", warned - WARN_MOST);
    if (p->tag_count > known)
        qsort(p->tags, p->tag_count, sizeof(struct tag_state *), by_name);
    forget(p, now_us);
    list_handled(p);
}

void tags_take_news(struct poller *p, int64_t now_us)
{
    for (size_t i = 0; i < p->peek.count; i++) {
        const struct claim_peek_tag *seen = &p->peek.tags[i];
        struct tag_state *t = tags_get(p, seen->tag);

        t->seen_us = now_us;
        if (t->next_at == TASK_TIME_NONE || seen->next_at < t->next_at)
            t->next_at = seen->next_at;
        if (seen->next_at < t->floor.at)
            t->floor = (struct claim_floor){.at = seen->next_at};
    }
}

void tags_job_ended(struct tag_state *t, int64_t duration_us)
{
    if (duration_us < 1)
        duration_us = 1;
    t->mean_us = t->mean_us ? (7 * t->mean_us + duration_us) / 8 : duration_us;
    t->rest_us = 0;
}

void tags_rest(struct poller *p, struct tag_state *t, const char *why, int64_t now_us)
{
    char text[WHEN_TEXT_SIZE];

    (void)p;
    if (now_us < t->rest_until_us)
        return;
    t->rest_us = t->rest_us ? 2 * t->rest_us : REST_MIN_US;
    if (t->rest_us > REST_MAX_US)
        t->rest_us = REST_MAX_US;
    t->rest_until_us = now_us + t->rest_us;
    log_event(LOG_ERROR, "handler cannot be started, its tasks are given back and the tag rests on this host",
              "tag=%s rest=%s error=%s", log_quote(t->name), when_format_duration(text, t->rest_us / 1000), log_quote(why));
}

void tags_free(struct poller *p)
{
    for (size_t i = 0; i < p->tag_count; i++) {
        aside_done(&p->tags[i]->aside);
        free(p->tags[i]->name);
        free(p->tags[i]);
    }
    aside_done(&p->reap_aside);
    free(p->reap_after);
    free(p->tags);
    free(p->handled);
}

bool tags_claimable(const struct tag_state *t, int64_t now_us)
{
    return t->handler >= 0 && now_us >= t->hold_until_us && now_us >= t->rest_until_us;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Jobs that will start within AHEAD_US at the rate seen so far. */
static uint32_t ahead(const struct tag_state *t, uint32_t at_once)
{
    int64_t n;

    if (t->wary || t->mean_us == 0)
        return 0;
    n = (int64_t)at_once * AHEAD_US / t->mean_us;
    return n > 5000 ? 5000 : (uint32_t)n;
}

int64_t tags_early_ms(const struct poller *p, const struct tag_state *t)
{
    bool alone = p->table->handlers->items[t->handler].batch <= 1; /* a batch would wait for its last task */

    return p->o->mode != POLLER_ONCE && alone && !t->wary ? CLAIM_EARLY_MS : 0;
}

size_t tags_want(const struct poller *p, const struct tag_state *t)
{
    const struct handler *h = &p->table->handlers->items[t->handler];
    uint32_t slots = (uint32_t)p->slots, mine = t->queued + t->running, others = p->started - t->running;
    uint32_t kept = mine && slots > 1 ? (slots < 8 ? 1 : slots / 4) : 0;
    uint32_t at_once, more, target, batch = (uint32_t)h->batch, limit = (uint32_t)p->conf->dqd.claim_batch;

    if (others + kept >= slots)
        return 0;
    at_once = smaller((uint32_t)h->max_running, slots - others - kept);
    more = ahead(t, at_once);
    if (batch > 1) /* one batch waiting behind each that runs is enough */
        more = smaller(more, at_once);
    target = at_once + more;
    if (mine >= target || target - mine < more / 2)
        return 0;
    if (batch > limit)
        limit = batch;
    return smaller((target - mine) * batch, limit);
}
