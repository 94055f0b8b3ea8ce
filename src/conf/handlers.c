/*
 * handlers.c - see handlers.h. Invariant: handlers share no memory with each other.
 */
#include "conf/handlers.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

void handlers_strings_free(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

char **handlers_strings_copy(char *const *strings)
{
    size_t count = 0;
    while (strings && strings[count])
        count++;
    char **copy = mem_zero(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = mem_strdup(strings[i]);
    return copy;
}

void handlers_item_done(struct handler *h)
{
    free(h->name);
    free(h->run);
    handlers_strings_free(h->argv);
    free(h->shell);
    handlers_strings_free(h->env);
    handlers_strings_free(h->restart_on);
    free(h->cwd);
    free(h->user);
    free(h->on_failed);
    free(h->limit);
}

void handlers_free(struct handlers *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++)
        handlers_item_done(&h->items[i]);
    free(h->items);
    free(h->path);
    free(h);
}

/* With its NUL, so that the end of a text counts; a NULL differs from every text. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    return text ? text_hash(hash, text, strlen(text) + 1) : text_hash(hash, "\xff", 1);
}

static uint64_t hash_env(uint64_t hash, char *const *env)
{
    for (; env && *env; env++)
        hash = text_hash(hash, *env, strcspn(*env, "=") + 1);
    return hash;
}

static uint64_t hash_retry(uint64_t hash, const struct retry_policy *p)
{
    const int64_t numbers[] = {p->jitter_percent, (int64_t)p->steps};

    hash = text_hash(hash, p->step_ms, p->steps * sizeof p->step_ms[0]);
    return text_hash(hash, numbers, sizeof numbers);
}

uint64_t handlers_item_digest(const struct handler *h)
{
    const int64_t numbers[] = {h->batch,
                               h->timeout_ms,
                               h->kill_grace_ms,
                               h->max_running,
                               h->weight,
                               h->global_max_running,
                               h->nice,
                               h->umask,
                               (int64_t)h->output_limit,
                               h->on_lease_expiry,
                               h->expires_ms,
                               h->keep,
                               h->start_timeout_ms,
                               h->recycle.tasks,
                               h->recycle.age_ms,
                               h->recycle.memory,
                               h->recycle.idle_ms,
                               h->breaker.failures,
                               h->breaker.within_ms,
                               h->breaker.rest_ms};
    uint64_t hash = hash_text(TEXT_HASH_INIT, h->name);

    hash = hash_text(hash, h->run);
    for (char *const *arg = h->argv; arg && *arg; arg++)
        hash = hash_text(hash, *arg);
    for (char *const *path = h->restart_on; path && *path; path++)
        hash = hash_text(hash, *path);
    hash = hash_text(hash, h->shell);
    hash = hash_text(hash, h->cwd);
    hash = hash_text(hash, h->user);
    hash = hash_text(hash, h->on_failed);
    hash = hash_text(hash, h->limit);
    hash = hash_env(hash, h->env);
    hash = hash_retry(hash, &h->retry);
    hash = text_hash(hash, h->permanent_exit, sizeof h->permanent_exit);
    return text_hash(hash, numbers, sizeof numbers);
}

/* How much of a glob is fixed: its characters but for wildcards. */
static size_t literal_count(const char *glob)
{
    size_t n = 0;
    for (; *glob; glob++)
        n += *glob != '*' && *glob != '?' && !text_continues(*glob);
    return n;
}

int handlers_match(const struct handlers *h, const char *tag)
{
    int best = -1;
    size_t best_literals = 0;
    for (size_t i = 0; i < h->count; i++) {
        const struct handler *item = &h->items[i];
        if (!item->is_glob && strcmp(item->name, tag) == 0)
            return (int)i;
        if (!item->is_glob || !task_tag_glob(item->name, tag))
            continue;
        size_t literals = literal_count(item->name);
        if (best < 0 || literals > best_literals) {
            best = (int)i;
            best_literals = literals;
        }
    }
    return best;
}

const char *handlers_limit(const struct handlers *h, const char *tag)
{
    int i = handlers_match(h, tag);
    return i >= 0 && h->items[i].limit ? h->items[i].limit : tag;
}

bool handlers_share(const struct handlers *h, const char *limit)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->items[i].limit && strcmp(h->items[i].limit, limit) == 0)
            return true;
    return false;
}

const struct handler_breaker *handlers_breaker(const struct handlers *h, const struct handler *own,
                                               const char *limit)
{
    for (size_t i = 0; !own->breaker.failures && i < h->count; i++) {
        const struct handler *item = &h->items[i];
        if (item->breaker.failures && item->limit && !strcmp(item->limit, limit))
            return &item->breaker;
    }
    return own->breaker.failures ? &own->breaker : NULL;
}

const struct handler *handlers_unfollowed(const struct handlers *h, size_t *at)
{
    while (*at < h->count) {
        const struct handler *item = &h->items[(*at)++];
        if (item->on_failed && handlers_match(h, item->on_failed) < 0)
            return item;
    }
    return NULL;
}

int handlers_slots_kept(int slots)
{
    return slots > 1 ? MAX(slots / 4, 1) : 0;
}
