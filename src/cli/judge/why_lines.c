/*
 * why_lines.c - see why_lines.h.
 */
#include "cli/judge/why_lines.h"

#include "base/mem.h"

#include <stdlib.h>

#define CAUSE_TEXT(cause, name) name,
const char *const why_lines_names[] = {WHY_CAUSES(CAUSE_TEXT) NULL};

struct why_line *why_lines_add(struct why_lines *l, const char *name, char *text)
{
    l->items = mem_resize(l->items, l->count + 1, sizeof *l->items);
    l->items[l->count] = (struct why_line){.name = name, .text = text};
    return &l->items[l->count++];
}

struct why_line *why_lines_cause(struct why *w, enum why_cause which, char *text, char *brief)
{
    struct why_line *l = why_lines_add(&w->causes, why_lines_names[which], text);
    l->brief = brief;
    return l;
}

void why_lines_help(struct why *w, char *text)
{
    why_lines_add(&w->remedies, NULL, text);
}

void why_lines_rule_out(struct why *w, char *text)
{
    why_lines_add(&w->ruled_out, NULL, text);
}

const struct why_line *why_lines_find(const struct why *w, enum why_cause which)
{
    for (size_t i = 0; i < w->causes.count; i++)
        if (w->causes.items[i].name == why_lines_names[which])
            return &w->causes.items[i];
    return NULL;
}

static void free_lines(struct why_lines *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->items[i].text);
        free(l->items[i].detail);
        free(l->items[i].brief);
    }
    free(l->items);
}

void why_lines_done(struct why *w)
{
    free_lines(&w->causes);
    free_lines(&w->ruled_out);
    free_lines(&w->remedies);
}
