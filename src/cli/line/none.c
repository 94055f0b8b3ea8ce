/*
 * none.c - see none.h.
 */
#include "cli/line/none.h"

#include "base/mem.h"
#include "base/text.h"
#include "store/ask/complete_store.h"

#include <stdlib.h>
#include <string.h>

struct search {
    const char *tag;
    char **names;
    size_t count;
    bool exists;
};

static void take_tag(const char *tag, const char *help, void *arg)
{
    struct search *s = arg;
    (void)help;
    s->exists = s->exists || strcmp(tag, s->tag) == 0;
    s->names = mem_resize(s->names, s->count + 1, sizeof *s->names);
    s->names[s->count++] = mem_strdup(tag);
}

/* Whoever misspells a tag usually gets its first character right, which bounds the search. */
static char *nearest(struct cmd_context *c, const char *tag)
{
    struct search s = {.tag = tag};
    struct err none;
    uint32_t first;
    MEM_LOCAL char *prefix = mem_dup(tag, text_utf8_next(tag, strlen(tag), &first));
    (void)!complete_store_list(c->db, COMPLETE_STORE_TAGS, prefix, take_tag, &s, &none);
    const char *near =
        s.exists ? NULL : text_nearest(tag, (const char *const *)(uintptr_t)s.names, s.count);
    char *ret = near ? mem_strdup(near) : NULL;
    for (size_t i = 0; i < s.count; i++)
        free(s.names[i]);
    free(s.names);
    return ret;
}

bool none_note_nearest(struct cmd_context *c, const char *tag)
{
    if (c->quiet || c->style.format != OUT_TABLE)
        return false;
    MEM_LOCAL char *near = nearest(c, tag);
    if (near)
        cmd_note(c, "no task has the tag \"%s\": did you mean \"%s\"?", tag, near);
    return near;
}

void none_note(struct cmd_context *c, const char *text, const char *tags)
{
    bool single = tags && !strpbrk(tags, "*?\n");
    if (c->style.format == OUT_TABLE && !(single && none_note_nearest(c, tags)))
        cmd_note(c, "%s", text);
}
