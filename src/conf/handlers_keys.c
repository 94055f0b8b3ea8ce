/*
 * handlers_keys.c - what each key of a handler means: one setter and one row of HANDLER_KEYS for
 * each key.
 *
 * Invariant: a setter that returns 0 has replaced the whole value (env: each variable given) and
 * left nothing half set that handlers_free would not free; this file has every limit of the manual.
 */
#include "conf/handlers_keys.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "conf/conf.h"
#include "conf/conf_file.h"

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OUTPUT_MAX (1024 * 1024)

struct key {
    const char *name;
    int (*set)(const struct handlers_loader *l, const struct key *key,
               const struct handlers_node *value, struct handler *h);
    bool is_text;     /* its value is one, which is not empty */
    size_t offset;    /* of the field in struct handler */
    int64_t min, max; /* of numbers and durations (ms) */
};

#define KEY_ROW(name, set, member, min, max)                                                       \
    {#name, set, false, offsetof(struct handler, member), min, max},
#define KEY_TEXT(name, set, member, min, max)                                                      \
    {#name, set, true, offsetof(struct handler, member), min, max},

static void *field(struct handler *h, const struct key *key)
{
    return (char *)h + key->offset;
}

static const struct key *find_key(const struct key *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static int set_key(const struct handlers_loader *l, const struct key *key,
                   const struct handlers_node *value, struct handler *h)
{
    const char *text;
    int rc = key->is_text ? handlers_want_text(l, key->name, value, &text) : 0;
    return rc ? rc : key->set(l, key, value, h);
}

static int set_int(const struct handlers_loader *l, const struct key *key,
                   const struct handlers_node *value, struct handler *h)
{
    return handlers_want_number(l, key->name, value, key->min, key->max, field(h, key));
}

static int set_duration(const struct handlers_loader *l, const struct key *key,
                        const struct handlers_node *value, struct handler *h)
{
    return handlers_want_duration(l, key->name, value, key->min, key->max, field(h, key));
}

static int set_run(const struct handlers_loader *l, const struct key *key,
                   const struct handlers_node *value, struct handler *h)
{
    const char *text;
    int rc;
    if (value->kind != HANDLERS_NODE_LIST) {
        rc = handlers_want_text(l, key->name, value, &text);
        if (rc == 0)
            h->run = mem_strdup(text);
        return rc;
    }
    if (value->count == 0)
        return handlers_fail(
            l, value,
            "run is an empty list; its first element is the program: [/usr/bin/env, ...]");
    h->argv = mem_zero(value->count + 1, sizeof *h->argv);
    for (size_t i = 0; i < value->count; i++) {
        const struct handlers_node *item = &value->items[i];
        bool empty_word =
            i > 0 && item->kind == HANDLERS_NODE_SCALAR && !item->is_null && *item->text == '\0';
        if (!empty_word && (rc = handlers_want_text(l, "an element of run", item, &text)) != 0)
            return rc;
        h->argv[i] =
            i == 0 && strchr(text, '/') ? conf_file_resolve(l->dir, text) : mem_strdup(item->text);
    }
    return 0;
}

static int set_path(const struct handlers_loader *l, const struct key *key,
                    const struct handlers_node *value, struct handler *h)
{
    char **slot = field(h, key);
    free(*slot);
    *slot = conf_file_resolve(l->dir, value->text);
    return 0;
}

static int set_shell(const struct handlers_loader *l, const struct key *key,
                     const struct handlers_node *value, struct handler *h)
{
    if (*value->text != '/')
        return handlers_fail(l, value, "%s: \"%s\" must be an absolute path, such as /bin/bash",
                             key->name, value->text);
    return set_path(l, key, value, h);
}

/* If the look-up fails, the account is assumed to exist: the start of a handler will report it. */
static bool there_is_account(const char *name)
{
    struct passwd entry, *found = NULL;
    size_t size = 1024;
    MEM_LOCAL char *memory = NULL;
    int rc;

    do {
        memory = mem_resize(memory, size *= 2, 1);
        rc = getpwnam_r(name, &entry, memory, size, &found);
    } while (rc == ERANGE && size < ((size_t)1 << 20));
    return found || (rc != 0 && rc != ENOENT && rc != ESRCH && rc != EPERM && rc != EBADF);
}

static int set_user(const struct handlers_loader *l, const struct key *key,
                    const struct handlers_node *value, struct handler *h)
{
    if (l->accounts && !there_is_account(value->text))
        return handlers_fail(
            l, value, "%s: there is no account \"%s\" on this host; create it or name another",
            key->name, value->text);
    free(h->user);
    h->user = mem_strdup(value->text);
    return 0;
}

static int set_retry(const struct handlers_loader *l, const struct key *key,
                     const struct handlers_node *value, struct handler *h)
{
    h->retry.steps = 0;
    if (value->kind == HANDLERS_NODE_SCALAR && strcmp(value->text, "never") == 0)
        return 0;
    if (value->kind != HANDLERS_NODE_LIST)
        return handlers_fail(l, value,
                             "retry must be a list of durations, such as [5s, 1m, 10m], or never");
    if (value->count > RETRY_STEPS_MAX)
        return handlers_fail(l, value, "retry has %zu steps, %d are allowed", value->count,
                             RETRY_STEPS_MAX);
    for (size_t i = 0; i < value->count; i++) {
        int rc = handlers_want_duration(l, key->name, &value->items[i], key->min, key->max,
                                        &h->retry.step_ms[i]);
        if (rc != 0)
            return rc;
    }
    h->retry.steps = value->count;
    return 0;
}

static int set_jitter(const struct handlers_loader *l, const struct key *key,
                      const struct handlers_node *value, struct handler *h)
{
    const char *text = value->text;
    size_t digits = strspn(text, "0123456789");
    if (strcmp(text, "auto") == 0) {
        h->retry.jitter_percent = RETRY_JITTER_AUTO;
        return 0;
    }
    if (digits == 0 || digits > 3 || strcmp(text + digits, "%") != 0 || atoi(text) > 100)
        return handlers_fail(l, value, "%s: \"%s\" is not a percentage; give 0%% to 100%%, or auto",
                             key->name, text);
    h->retry.jitter_percent = (unsigned)atoi(text);
    return 0;
}

/* Sets NAME=value; a variable that is there already gets the new value in its old place. */
static void put_env(struct handler *h, const char *name, const char *value)
{
    size_t count = 0, name_len = strlen(name);
    while (h->env[count] &&
           (strncmp(h->env[count], name, name_len) != 0 || h->env[count][name_len] != '='))
        count++;
    if (!h->env[count]) {
        h->env = mem_resize(h->env, count + 2, sizeof *h->env);
        h->env[count + 1] = NULL;
    }
    free(h->env[count]);
    h->env[count] = mem_printf("%s=%s", name, value);
}

static int set_env(const struct handlers_loader *l, const struct key *key,
                   const struct handlers_node *value, struct handler *h)
{
    if (value->kind != HANDLERS_NODE_MAP)
        return handlers_fail(l, value, "%s must be a mapping of variables, such as {NAME: value}",
                             key->name);
    for (size_t i = 0; i < value->count; i++) {
        const struct handlers_node *name = &value->items[2 * i], *text = &value->items[2 * i + 1];
        size_t len =
            strspn(name->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
        if (len == 0 || name->text[len] != '\0' || (name->text[0] >= '0' && name->text[0] <= '9'))
            return handlers_fail(
                l, name,
                "env: \"%s\" is not a variable name; use letters, digits and _, no digit first",
                name->text);
        if (strncmp(name->text, "DQ_", 3) == 0)
            return handlers_fail(
                l, name, "env: %s: names that begin with DQ_ are set by dqd; choose another",
                name->text);
        if (text->kind != HANDLERS_NODE_SCALAR)
            return handlers_fail(l, text, "env: the value of %s must be text", name->text);
        if (text->is_null)
            return handlers_fail(l, text, "env: %s has no value; for an empty one write \"\"",
                                 name->text);
        if (len + 1 + strlen(text->text) > HANDLERS_VALUE_MAX)
            return handlers_fail(l, text,
                                 "env: %s is longer than %d bytes, which no program can be given",
                                 name->text, HANDLERS_VALUE_MAX);
        put_env(h, name->text, text->text);
    }
    return 0;
}

static int set_umask(const struct handlers_loader *l, const struct key *key,
                     const struct handlers_node *value, struct handler *h)
{
    const char *text = value->text;
    size_t digits = strspn(text, "01234567");
    long mask = strtol(text, NULL, 8);
    if (digits == 0 || digits > 4 || text[digits] != '\0' || mask > 0777)
        return handlers_fail(l, value,
                             "%s: \"%s\" is not an octal mask; give 000 to 777, such as 027",
                             key->name, text);
    h->umask = (int)mask;
    return 0;
}

/* Digits and a unit; -1: it is neither. Without a unit it is bytes. */
static int64_t size_of(const char *text)
{
    static const char *const units[] = {"", "k", "m", "g"};
    size_t digits = strspn(text, "0123456789"), i = 0;
    while (i < 4 && strcasecmp(text + digits, units[i]) != 0)
        i++;
    return digits == 0 || digits > 9 || i == 4 ? -1 : atoll(text) << 10 * i;
}

static int set_output_limit(const struct handlers_loader *l, const struct key *key,
                            const struct handlers_node *value, struct handler *h)
{
    const char *text = value->text;
    int64_t bytes = size_of(text);
    if (bytes < 0)
        return handlers_fail(l, value,
                             "%s: \"%s\" is not a size; give bytes, or use k or m, such as 8k",
                             key->name, text);
    if (bytes > OUTPUT_MAX)
        return handlers_fail(l, value, "%s: %s is out of range; give 0 to 1m", key->name, text);
    h->output_limit = (size_t)bytes;
    return 0;
}

static int set_permanent_exit(const struct handlers_loader *l, const struct key *key,
                              const struct handlers_node *value, struct handler *h)
{
    if (value->kind != HANDLERS_NODE_LIST)
        return handlers_fail(l, value,
                             "%s must be a list of exit statuses, such as [64, 65]; [] for none",
                             key->name);
    memset(h->permanent_exit, 0, sizeof h->permanent_exit);
    for (size_t i = 0; i < value->count; i++) {
        int status = 0;
        const struct handlers_node *item = &value->items[i];
        if (item->kind == HANDLERS_NODE_SCALAR && strcmp(item->text, "0") == 0)
            return handlers_fail(l, item, "%s: 0 is success; remove it", key->name);
        int rc = handlers_want_number(l, key->name, item, 1, 255, &status);
        if (rc != 0)
            return rc;
        if (status == 126 || status == 127)
            return handlers_fail(
                l, item,
                "%s: %d says that the command could not be started, which gives the task back; remove it",
                key->name, status);
        h->permanent_exit[status] = true;
    }
    return 0;
}

static int set_on_lease_expiry(const struct handlers_loader *l, const struct key *key,
                               const struct handlers_node *value, struct handler *h)
{
    const char *text = value->text;
    if (strcmp(text, "retry") != 0 && strcmp(text, "fail") != 0)
        return handlers_fail(l, value, "%s: \"%s\" is not known; give retry or fail", key->name,
                             text);
    h->on_lease_expiry = *text == 'f' ? HANDLER_EXPIRY_FAIL : HANDLER_EXPIRY_RETRY;
    return 0;
}

/* Another tag, or the word for none. */
static int set_tag(const struct handlers_loader *l, const struct key *key,
                   const struct handlers_node *value, struct handler *h)
{
    const char *none = key->offset == offsetof(struct handler, limit) ? "own" : "never";
    char **slot = field(h, key);
    struct err why;
    if (task_check_tag(value->text, strlen(value->text), &why) != 0)
        return handlers_fail(l, value, "%s: %s", key->name, why.text);
    free(*slot);
    *slot = strcmp(value->text, none) == 0 ? NULL : mem_strdup(value->text);
    return 0;
}

static int set_memory(const struct handlers_loader *l, const struct key *key,
                      const struct handlers_node *value, struct handler *h)
{
    const char *text = value->text;
    if ((h->recycle.memory = text[strspn(text, "0123456789")] ? size_of(text) : 0) <= 0)
        return handlers_fail(l, value, "%s: \"%s\" is no size with a unit; give one such as 256m",
                             key->name, text);
    return 0;
}

/* A mapping of some of these keys. */
static int set_rows(const struct handlers_loader *l, const struct key *key,
                    const struct handlers_node *value, const struct key *rows, size_t count,
                    const char *like, struct handler *h)
{
    int rc = 0;
    if (value->kind != HANDLERS_NODE_MAP)
        return handlers_fail(l, value, "%s must be a mapping, such as %s", key->name, like);
    for (size_t i = 0; rc == 0 && i < value->count; i++) {
        const struct handlers_node *name = &value->items[2 * i];
        const struct key *row = find_key(rows, count, name->text);
        if (!row)
            return handlers_fail(l, name, "unknown key \"%s\" in %s; dq-handlers(5) lists the keys",
                                 name->text, key->name);
        rc = set_key(l, row, name + 1, h);
    }
    return rc;
}

static int set_recycle(const struct handlers_loader *l, const struct key *key,
                       const struct handlers_node *value, struct handler *h)
{
    /* clang-format off */
    static const struct key rows[] = {
        KEY_ROW(tasks, set_int, recycle.tasks, 1, 1000000000)
        KEY_ROW(age, set_duration, recycle.age_ms, 1000, 30 * WHEN_DAY)
        KEY_TEXT(memory, set_memory, recycle.memory, 0, 0)
        KEY_ROW(idle, set_duration, recycle.idle_ms, 1, 30 * WHEN_DAY)
    };
    /* clang-format on */
    return set_rows(l, key, value, rows, MEM_COUNT(rows), "{age: 1h, memory: 256m}", h);
}

/* {failures: 10, within: 1m, rest: 5m}, or never. */
static int set_breaker(const struct handlers_loader *l, const struct key *key,
                       const struct handlers_node *value, struct handler *h)
{
    /* clang-format off */
    static const struct key rows[] = {
        KEY_ROW(failures, set_int, breaker.failures, 1, 1000000)
        KEY_ROW(within, set_duration, breaker.within_ms, WHEN_MINUTE, WHEN_HOUR)
        KEY_ROW(rest, set_duration, breaker.rest_ms, WHEN_SECOND, WHEN_DAY)
    };
    /* clang-format on */
    h->breaker = (struct handler_breaker){0};
    if (value->kind == HANDLERS_NODE_SCALAR && strcmp(value->text, "never") == 0)
        return 0;
    h->breaker.within_ms = h->breaker.rest_ms = WHEN_MINUTE;
    int rc = set_rows(l, key, value, rows, MEM_COUNT(rows), "{failures: 10, rest: 5m}", h);
    return rc || h->breaker.failures
               ? rc
               : handlers_fail(l, value, "%s: failures is missing", key->name);
}

static int set_restart_on(const struct handlers_loader *l, const struct key *key,
                          const struct handlers_node *value, struct handler *h)
{
    const char *text;
    if (value->kind != HANDLERS_NODE_LIST)
        return handlers_fail(l, value, "%s must be a list of files", key->name);
    handlers_strings_free(h->restart_on);
    h->restart_on = mem_zero(value->count + 1, sizeof *h->restart_on);
    for (size_t i = 0; i < value->count; i++) {
        int rc = handlers_want_text(l, "an element of restart_on", &value->items[i], &text);
        if (rc != 0)
            return rc;
        h->restart_on[i] = conf_file_resolve(l->dir, text);
    }
    return 0;
}

/* name, setter (TEXT: of a value that is one text), field, min, max */
/* clang-format off */
#define HANDLER_KEYS(X, TEXT)                                         \
    X(run, set_run, run, 0, 0)                                        \
    X(batch, set_int, batch, 1, 5000)                                 \
    X(keep, set_int, keep, 0, CONF_SLOTS_MAX)                         \
    X(start_timeout, set_duration, start_timeout_ms, 10, WHEN_HOUR)   \
    X(recycle, set_recycle, recycle, 0, 0)                            \
    X(restart_on, set_restart_on, restart_on, 0, 0)                   \
    X(timeout, set_duration, timeout_ms, 10, 30 * WHEN_DAY)           \
    X(kill_grace, set_duration, kill_grace_ms, 0, WHEN_HOUR)          \
    X(retry, set_retry, retry, 0, WHEN_MAX_DURATION_MS)               \
    TEXT(jitter, set_jitter, retry, 0, 0)                             \
    X(expires, set_duration, expires_ms, 0, WHEN_MAX_DURATION_MS)     \
    X(max_running, set_int, max_running, 1, CONF_SLOTS_MAX)           \
    X(weight, set_int, weight, 1, 100)                                \
    X(global_max_running, set_int, global_max_running, 0, 1000000)    \
    TEXT(limit, set_tag, limit, 0, 0)                                 \
    X(breaker, set_breaker, breaker, 0, 0)                            \
    X(env, set_env, env, 0, 0)                                        \
    TEXT(cwd, set_path, cwd, 0, 0)                                    \
    TEXT(user, set_user, user, 0, 0)                                  \
    X(nice, set_int, nice, -20, 19)                                   \
    TEXT(umask, set_umask, umask, 0, 0)                               \
    TEXT(output_limit, set_output_limit, output_limit, 0, 0)          \
    X(permanent_exit_codes, set_permanent_exit, permanent_exit, 0, 0) \
    TEXT(shell, set_shell, shell, 0, 0)                               \
    TEXT(on_lease_expiry, set_on_lease_expiry, on_lease_expiry, 0, 0) \
    TEXT(on_failed, set_tag, on_failed, 0, 0)
/* clang-format on */
#define KEY_NAME(name, set, member, min, max) #name,

static const struct key keys[] = {HANDLER_KEYS(KEY_ROW, KEY_TEXT)};
#define KEY_COUNT (sizeof keys / sizeof keys[0])
const char *const handlers_keys[] = {HANDLER_KEYS(KEY_NAME, KEY_NAME) NULL};

void handlers_keys_init(struct handler *h)
{
    static const int permanent[] = {64, 65, 70, 76, 77, 78, 100, 112};
    *h = (struct handler){
        .batch = 1,
        .timeout_ms = 60000,
        .start_timeout_ms = 30000,
        .recycle = {.tasks = 1000, .age_ms = WHEN_HOUR, .idle_ms = 5 * WHEN_MINUTE},
        .kill_grace_ms = 5000,
        .retry = retry_default,
        .max_running = HANDLERS_MAX_RUNNING,
        .weight = HANDLERS_WEIGHT,
        .env = mem_zero(1, sizeof(char *)),
        .cwd = mem_strdup("/"),
        .umask = 022,
        .output_limit = 8 * 1024,
        .on_lease_expiry = HANDLER_EXPIRY_RETRY,
    };
    for (size_t i = 0; i < sizeof permanent / sizeof permanent[0]; i++)
        h->permanent_exit[permanent[i]] = true;
}

static int fail_unknown_key(const struct handlers_loader *l, const struct handlers_node *name,
                            const char *where)
{
    const char *nearest = text_nearest(name->text, handlers_keys, KEY_COUNT);
    if (nearest)
        return handlers_fail(l, name, "unknown key \"%s\" in %s; did you mean \"%s\"?", name->text,
                             where, nearest);
    return handlers_fail(l, name, "unknown key \"%s\" in %s; dq-handlers(5) lists the keys",
                         name->text, where);
}

int handlers_keys_read(const struct handlers_loader *l, const struct handlers_node *map,
                       bool is_default, struct handler *h)
{
    const struct handlers_node *shell = NULL, *keep = NULL;
    int rc;
    for (size_t i = 0; i < map->count; i++) {
        const struct handlers_node *name = &map->items[2 * i], *value = name + 1;
        const struct key *key = find_key(keys, KEY_COUNT, name->text);
        if (!key)
            return fail_unknown_key(l, name, is_default ? "defaults" : "a handler");
        if (is_default && key->set == set_run)
            return handlers_fail(l, name, "run has no default; it belongs to each handler");
        if (key->set == set_shell)
            shell = name;
        if (key->offset == offsetof(struct handler, keep))
            keep = value;
        if ((rc = set_key(l, key, value, h)) != 0)
            return rc;
    }
    if (shell && h->argv)
        return handlers_fail(
            l, shell,
            "shell has no effect on a run that is a list; remove it, or write run as one line");
    if (h->keep > h->max_running)
        return handlers_fail(l, keep ? keep : map,
                             "keep: %d is above max_running, %d; raise that, or lower keep",
                             h->keep, h->max_running);
    if (h->keep && !is_default)
        h->max_running = h->keep;
    return 0;
}
