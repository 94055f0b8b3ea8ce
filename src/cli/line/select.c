/*
 * select.c - see select.h.
 */
#include "cli/line/select.h"

#include "base/text.h"
#include "store/ask/complete_store.h"

#include <stdlib.h>
#include <string.h>

const struct cmd_option select_filters[] = {SELECT_OPTIONS(struct select_values, )};
const size_t select_filter_count = sizeof select_filters / sizeof select_filters[0];

bool select_given(const struct select_values *v)
{
    bool any = v->tag || v->key || v->error || v->host || v->body;
    for (int t = 0; t < TASK_FILTER_TIMES; t++)
        any = any || v->since[t].text || v->before[t].text;
    return any;
}

static int bound(struct cmd_context *c, const struct cmd_when *when, struct task_filter_bound *ret,
                 struct err *err)
{
    ret->set = !!when->text;
    return cmd_resolve(c, when, &ret->at, err);
}

int select_filter(struct cmd_context *c, const struct select_values *v, unsigned by_default,
                  struct task_filter *ret, struct err *err)
{
    struct task_filter f = {
        .tag_glob = v->tag,
        .key = v->key,
        .error_glob = v->error,
        .host_glob = v->host,
        .body = v->body,
        .statuses = v->statuses ? v->statuses : by_default,
    };
    int rc = 0;
    if (v->body && *v->body == '\0') /* a variable that is not set, in a script */
        return err_set(err, ERR_USAGE, "--body is empty and would match every task");
    for (int t = 0; rc == 0 && t < TASK_FILTER_TIMES; t++) {
        rc = bound(c, &v->since[t], &f.since[t], err);
        if (rc == 0)
            rc = bound(c, &v->before[t], &f.before[t], err);
    }
    if (rc == 0)
        *ret = f;
    return rc;
}

void select_note_unordered(const struct cmd_context *c, bool unordered)
{
    if (unordered)
        cmd_note(
            c, "an import or a wrong clock broke the order of ids: --since had to read all tasks");
}

void select_put_statuses(struct buf *b, unsigned statuses)
{
    for (int s = 0; s < TASK_STATUS_COUNT; s++) {
        if (!(statuses & TASK_BIT(s)))
            continue;
        statuses &= ~TASK_BIT(s);
        buf_str(b, task_status_name(s));
        if (statuses != 0)
            buf_str(b, statuses & (statuses - 1) ? ", " : " or ");
    }
}

/* ---- one task, by the key that an application gave it ---- */

/* Only the newest that have the key are looked at. */
#define HOLDERS_MOST 1000

struct holders {
    uint64_t id;
    bool live;
    char *tag, *other; /* other: another tag that has the key, too */
};

static int take_holder(const struct task *t, void *arg)
{
    struct holders *s = arg;
    bool live = TASK_BIT(t->status) & TASK_LIVE;

    if (!s->tag)
        s->tag = mem_strdup(t->tag);
    else if (strcmp(s->tag, t->tag) != 0)
        s->other = mem_strdup(t->tag);
    if (!s->id || (live && !s->live))
        s->id = t->id;
    s->live |= live;
    return s->other ? 1 : 0;
}

static int find_key(const struct cmd_context *c, const char *key, const char *tag_glob,
                    uint64_t *ret, struct err *err)
{
    struct task_filter f = {
        .key = key, .tag_glob = tag_glob, .sort = SORT_ID_DESC, .limit = HOLDERS_MOST};
    struct holders s = {.id = 0};
    int rc = task_list(c->db, &f, false, take_holder, &s, err);

    if (rc >= 0 && s.other)
        rc = err_set(err, ERR_USAGE, "tasks of %s and of %s have the key \"%s\": add --tag", s.tag,
                     s.other, key);
    else if (rc >= 0 && !s.id)
        rc = err_set(err, ERR_NOT_FOUND, "no task %shas the key \"%s\"",
                     tag_glob ? "of such a tag " : "", key);
    if (rc >= 0)
        *ret = s.id;
    free(s.tag);
    free(s.other);
    return rc < 0 ? rc : 0;
}

int select_ids(const struct cmd_context *c, const char *key, const char *tag_glob, bool sorted,
               uint64_t **ret, size_t *ret_count, struct err *err)
{
    uint64_t id;

    if (!key && tag_glob)
        return err_set(err, ERR_USAGE, "--tag needs --key, the key of the task");
    if (!key == !c->operand_count)
        return err_set(err, ERR_USAGE, "give the id of a task, or --key with its key");
    if (!key)
        return cmd_ids(c, sorted, ret, ret_count, err);
    int rc = find_key(c, key, tag_glob, &id, err);
    if (rc < 0)
        return rc;
    *ret = mem_dup(&id, sizeof id);
    *ret_count = 1;
    return 0;
}

/* ---- a table without rows ---- */

struct tags_like {
    const char *tag;
    char **names;
    size_t count;
    bool exists;
};

static void take_tag(const char *tag, const char *help, void *arg)
{
    struct tags_like *s = arg;
    (void)help;
    s->exists = s->exists || strcmp(tag, s->tag) == 0;
    s->names = mem_resize(s->names, s->count + 1, sizeof *s->names);
    s->names[s->count++] = mem_strdup(tag);
}

/* Whoever misspells a tag usually gets its first character right, which bounds the search. */
static char *nearest(struct cmd_context *c, const char *tag)
{
    struct tags_like s = {.tag = tag};
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

bool select_note_nearest(struct cmd_context *c, const char *tag)
{
    if (c->quiet || c->style.format != OUT_TABLE)
        return false;
    MEM_LOCAL char *near = nearest(c, tag);
    if (near)
        cmd_note(c, "no task has the tag \"%s\": did you mean \"%s\"?", tag, near);
    return near;
}

void select_note_none(struct cmd_context *c, const char *text, const char *tags)
{
    bool single = tags && !strpbrk(tags, "*?\n");
    if (c->style.format == OUT_TABLE && !(single && select_note_nearest(c, tags)))
        cmd_note(c, "%s", text);
}
