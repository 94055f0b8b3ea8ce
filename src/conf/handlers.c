/*
 * handlers.c - see handlers.h. Invariant: handlers share no memory with each other.
 */
#include "conf/handlers.h"

#include "base/task.h"

#include <stdlib.h>
#include <string.h>

static void strings_free(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

void handlers_item_done(struct handler *h)
{
    free(h->name);
    free(h->run);
    strings_free(h->argv);
    free(h->shell);
    strings_free(h->env);
    free(h->cwd);
    free(h->user);
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

/* How much of a glob is fixed: its characters but for wildcards. */
static size_t literal_count(const char *glob)
{
    size_t n = 0;
    for (; *glob; glob++)
        n += *glob != '*' && *glob != '?' && ((unsigned char)*glob & 0xc0) != 0x80;
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
