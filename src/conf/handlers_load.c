/*
 * handlers_load.c - what the handlers file means: from the tree of handlers_yaml.h to a table of
 * handlers.
 *
 * Invariant: a struct handlers that handlers_load hands out is complete and in range, needs no
 * defaults any more, and shares no memory with the file or with another handler.
 */
#include "conf/handlers_load.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "conf/conf_file.h"
#include "conf/handlers_keys.h"

#include <stdlib.h>
#include <string.h>

/* A handler that begins as a copy of the defaults, without a name and a command. */
static void handler_copy(struct handler *h, const struct handler *defaults)
{
    *h = *defaults;
    h->name = h->run = NULL;
    h->argv = NULL;
    h->shell = defaults->shell ? mem_strdup(defaults->shell) : NULL;
    h->cwd = mem_strdup(defaults->cwd);
    h->user = mem_strdup(defaults->user);
    h->on_failed = mem_strdup(defaults->on_failed);
    h->limit = mem_strdup(defaults->limit);
    h->env = handlers_strings_copy(defaults->env);
    h->restart_on = handlers_strings_copy(defaults->restart_on);
}

static int read_defaults(const struct handlers_loader *l, const struct handlers_node *map,
                         struct handler *h)
{
    if (map->kind == HANDLERS_NODE_SCALAR && map->is_null)
        return 0;
    if (map->kind != HANDLERS_NODE_MAP)
        return handlers_fail(l, map, "defaults must be a mapping of keys, such as timeout: 60s");
    return handlers_keys_read(l, map, true, h);
}

static int read_handler(const struct handlers_loader *l, const struct handlers_node *name,
                        const struct handler *defaults, struct handler *h)
{
    const struct handlers_node *map = name + 1;
    struct err why;
    handler_copy(h, defaults);
    h->name = mem_strdup(name->text);
    h->is_glob = strpbrk(name->text, "*?");
    h->line = name->line;
    if (task_check_tag_glob(name->text, strlen(name->text), &why) != 0)
        return handlers_fail(l, name, "%s", why.text);
    if (map->kind != HANDLERS_NODE_MAP)
        return handlers_fail(l, map, "handler \"%s\" is a mapping of keys; at least run: COMMAND",
                             name->text);
    int rc = handlers_keys_read(l, map, false, h);
    if (rc == 0 && !h->run && !h->argv)
        return handlers_fail(l, name, "handler \"%s\" has no command; add run: COMMAND",
                             name->text);
    return rc;
}

/* None is its own; that of the defaults is not for the handler that it names. */
static int check_on_failed(const struct handlers_loader *l, const struct handlers_node *map,
                           const struct handler *defaults, const struct handlers *all)
{
    for (size_t i = 0; i < all->count; i++) {
        char *tag = all->items[i].on_failed;
        if (!tag || handlers_match(all, tag) != (int)i)
            continue;
        if (all->items[i].is_glob || !defaults->on_failed || strcmp(tag, defaults->on_failed) != 0)
            return handlers_fail(l, &map->items[2 * i],
                                 "on_failed: %s is served by this handler; name another one", tag);
        all->items[i].on_failed = NULL;
        free(tag);
    }
    return 0;
}

static int read_handlers(const struct handlers_loader *l, const struct handlers_node *map,
                         const struct handler *defaults, struct handlers *ret)
{
    if (map->kind == HANDLERS_NODE_SCALAR && map->is_null)
        return 0;
    if (map->kind != HANDLERS_NODE_MAP)
        return handlers_fail(
            l, map, "handlers must be a mapping from tags, such as mail.welcome: {run: COMMAND}");
    ret->items = mem_zero(map->count + 1, sizeof *ret->items);
    for (size_t i = 0; i < map->count; i++) {
        ret->count = i + 1;
        int rc = read_handler(l, &map->items[2 * i], defaults, &ret->items[i]);
        if (rc != 0)
            return rc;
    }
    return check_on_failed(l, map, defaults, ret);
}

static int read_root(const struct handlers_loader *l, const struct handlers_node *root,
                     struct handlers *ret)
{
    static const char *const sections[] = {"defaults", "handlers"};
    const struct handlers_node *found[2] = {NULL, NULL};
    if (root->kind != HANDLERS_NODE_MAP)
        return handlers_fail(
            l, root,
            "a handlers file begins with handlers: and has the tags below it, such as mail.welcome: {run: COMMAND}");
    for (size_t i = 0; i < root->count; i++) {
        const struct handlers_node *name = &root->items[2 * i];
        size_t s = strcmp(name->text, sections[0]) == 0 ? 0 : 1;
        if (strcmp(name->text, sections[s]) != 0) {
            const char *nearest = text_nearest(name->text, sections, 2);
            if (nearest)
                return handlers_fail(l, name, "unknown section \"%s\"; did you mean \"%s\"?",
                                     name->text, nearest);
            return handlers_fail(l, name,
                                 "unknown section \"%s\"; tags belong below handlers:", name->text);
        }
        found[s] = name + 1;
    }
    if (!found[1])
        return handlers_fail(l, root,
                             "there is no section handlers:; add it, with the tags below it");
    LOCAL_BY(handlers_item_done) struct handler defaults = {0};
    handlers_keys_init(&defaults);
    int rc = found[0] ? read_defaults(l, found[0], &defaults) : 0;
    if (rc == 0)
        rc = read_handlers(l, found[1], &defaults, ret);
    return rc;
}

static int parse(struct handlers_loader *l, const char *text, size_t len, struct handlers **ret)
{
    struct handlers *h = mem_zero(1, sizeof *h);
    LOCAL_BY(handlers_yaml_done) struct handlers_node root = {0};

    h->path = conf_file_absolute(l->file);
    h->digest = text_hash(TEXT_HASH_INIT, text, len);
    l->dir = conf_file_directory(h->path);
    int rc = handlers_yaml_parse(l->file, text, len, &root, l->err);
    if (rc == 0)
        rc = read_root(l, &root, h);
    if (rc == 0) {
        *ret = h;
        h = NULL;
    }
    free(l->dir);
    handlers_free(h);
    return rc;
}

int handlers_load_text(const char *path, struct buf *ret_text, struct handlers **ret,
                       struct err *err)
{
    struct handlers_loader l = {.file = path, .accounts = true, .err = err};
    int rc = conf_file_read(path, "handlers file", HANDLERS_LOAD_TEXT_MAX, ret_text, err);

    return rc == 0 ? parse(&l, ret_text->data, ret_text->len, ret) : rc;
}

int handlers_load(const char *path, struct handlers **ret, struct err *err)
{
    BUF_LOCAL struct buf text = BUF_INIT;
    int rc = handlers_load_text(path, &text, ret, err);

    return rc;
}

int handlers_load_again(const char *path, const char *text, size_t len, struct handlers **ret,
                        struct err *err)
{
    struct handlers_loader l = {.file = path, .err = err};

    return parse(&l, text, len, ret);
}
