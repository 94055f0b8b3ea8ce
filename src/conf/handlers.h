/*
 * handlers.h - the table of handlers: which command runs the tasks of a tag, and how.
 *
 * handlers_load.h reads it from the YAML file named by [dqd] handlers; dq-handlers(5) is its
 * manual.
 */
#ifndef DQ_CONF_HANDLERS_H
#define DQ_CONF_HANDLERS_H

#include "base/retry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum handler_expiry { HANDLER_EXPIRY_RETRY, HANDLER_EXPIRY_FAIL };

#define HANDLERS_MAX_RUNNING 8 /* default of max_running */
#define HANDLERS_WEIGHT 10

/* When a process that stays is replaced; 0: never for that. */
struct handler_recycle {
    int tasks;       /* default 1000 */
    int64_t age_ms;  /* default 1 h, up to a tenth less */
    int64_t memory;  /* bytes */
    int64_t idle_ms; /* default 5 min; then it ends without being replaced */
};

/* When to stop starting tasks of a limit, because too many fail. */
struct handler_breaker {
    int failures;      /* so many within this time, and at least half of all; 0: never */
    int64_t within_ms; /* whole minutes are counted */
    int64_t rest_ms;   /* for so long, then one task tries */
};

struct handler {
    char *name; /* exact tag, or a glob when it contains * or ? */
    bool is_glob;
    char *run;   /* a shell line; NULL when argv is given */
    char **argv; /* exec'd directly, NULL-terminated; NULL when run is given */
    char *shell; /* absolute path, started as SHELL -c RUN; NULL: /bin/sh, where run needs one */
    /* 1: one task per process, body on stdin; more: up to this many, as JSON lines */
    int batch;
    int keep; /* up to this many processes stay, and max_running is not above that; 0: none does */
    int64_t start_timeout_ms; /* of one that stays, until it is ready; default 30 s */
    struct handler_recycle recycle;
    char **restart_on;     /* absolute paths, NULL-terminated; NULL: none */
    int64_t timeout_ms;    /* of one process; default 60 s */
    int64_t kill_grace_ms; /* from TERM to KILL; default 5 s */
    struct retry_policy retry;
    int64_t expires_ms;     /* a task is not started so long after it is due; 0: no limit */
    int max_running;        /* processes of one tag on this host; default HANDLERS_MAX_RUNNING */
    int weight;             /* of its tags among others, when slots are short */
    int global_max_running; /* running tasks under its limit on all hosts; 0: no limit */
    char *limit;            /* name of the limit that several tags share; NULL: that of each tag */
    struct handler_breaker breaker;
    /* "NAME=value", NULL-terminated, in addition to the base environment */
    char **env;
    char *cwd;  /* absolute; default / */
    char *user; /* account to run as; NULL: dqd's own. Needs root */
    int nice;   /* added to dqd's; -20..19, default 0 */
    int umask;  /* default 022 */
    /* bytes of output tail kept per attempt; default 8 KiB, at most 1 MiB */
    size_t output_limit;
    /* exit statuses that are never retried; default 64 65 70 76 77 78 100 112 */
    bool permanent_exit[256];
    enum handler_expiry on_lease_expiry;
    char *on_failed; /* tag of the task that is added when one has failed for good; NULL: none */
    unsigned line;   /* of the file */
};

struct handlers {
    char *path;
    uint64_t digest; /* of the file's bytes: two equal digests mean the same table */
    struct handler *items;
    size_t count;
};

void handlers_free(struct handlers *h); /* NULL is fine */
/* Frees what a handler points to, but not the handler. */
void handlers_item_done(struct handler *h);

/* Of NULL-terminated lists. NULL is fine; its copy is empty. */
char **handlers_strings_copy(char *const *strings);
void handlers_strings_free(char **strings);

/* The handler of a tag: its exact name, else the matching glob with the most literal characters (a
 * tie: the first in the file). Index into items, or -1. */
int handlers_match(const struct handlers *h, const char *tag);

/* The name of the limit that a tag is under, here. */
const char *handlers_limit(const struct handlers *h, const char *tag);
/* Whether a handler has that `limit`: a tag of that name is not alone under it. */
bool handlers_share(const struct handlers *h, const char *limit);
/* The breaker of a handler's limit: its own, or that of another one with this `limit`; NULL: there
 * is none. */
const struct handler_breaker *handlers_breaker(const struct handlers *h, const struct handler *own,
                                               const char *limit);

/* Each handler, from *at = 0 on, whose on_failed is a tag that no handler here serves; NULL: that
 * was all. */
const struct handler *handlers_unfollowed(const struct handlers *h, size_t *at);

/* How many slots of a dqd are kept for tags that have nothing running: the last quarter, at least
 * one if there are two. */
int handlers_slots_kept(int slots);

/* A digest of every setting that a handler ends up with, whichever way and wherever in the file it
 * was given. The values of `env` are left out: they may be secrets, and a digest can be guessed
 * at. */
uint64_t handlers_item_digest(const struct handler *h);

#endif
