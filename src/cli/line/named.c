/*
 * named.c - see named.h.
 */
#include "cli/line/named.h"

#include "base/mem.h"
#include "base/task.h"
#include "store/ask/task_list.h"

#include <stdlib.h>
#include <string.h>

/* Only the newest that have the key are looked at. */
#define MOST 1000

struct search {
    uint64_t id;
    bool live;
    char *tag, *other; /* other: another tag that has the key, too */
};

static int take(const struct task *t, void *arg)
{
    struct search *s = arg;
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

static int find(const struct cmd_context *c, const char *key, const char *tag_glob, uint64_t *ret,
                struct err *err)
{
    struct task_filter f = {
        .key = key, .tag_glob = tag_glob, .sort = SORT_ID_DESC, .limit = MOST};
    struct search s = {.id = 0};
    int rc = task_list(c->db, &f, false, take, &s, err);

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

int named_ids(const struct cmd_context *c, const char *key, const char *tag_glob, bool sorted,
              uint64_t **ret, size_t *ret_count, struct err *err)
{
    uint64_t id;

    if (!key && tag_glob)
        return err_set(err, ERR_USAGE, "--tag needs --key, the key of the task");
    if (!key == !c->operand_count)
        return err_set(err, ERR_USAGE, "give the id of a task, or --key with its key");
    if (!key)
        return cmd_ids(c, sorted, ret, ret_count, err);
    int rc = find(c, key, tag_glob, &id, err);
    if (rc < 0)
        return rc;
    *ret = mem_dup(&id, sizeof id);
    *ret_count = 1;
    return 0;
}
