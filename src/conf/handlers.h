/*
 * handlers.h - which command runs a tag's tasks, and how: the YAML file named by [dqd] handlers.
 *
 * Format: dq-handlers(5). Every message is "FILE:LINE:COLUMN: ..." (1-based). Unknown keys are
 * errors with the nearest name; duplicates, aliases, anchors, merge keys and tags (!x) are refused;
 * size (1 MiB) and depth (8) are bounded.
 */
#ifndef DQ_CONF_HANDLERS_H
#define DQ_CONF_HANDLERS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/retry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HANDLERS_TEXT_MAX ((size_t)1024 * 1024)

enum handler_expiry { HANDLER_EXPIRY_RETRY, HANDLER_EXPIRY_FAIL };

#define HANDLERS_MAX_RUNNING 8 /* default of max_running */

struct handler {
    char *name; /* exact tag, or a glob when it contains * or ? */
    bool is_glob;
    char *run;   /* a shell line; NULL when argv is given */
    char **argv; /* exec'd directly, NULL-terminated; NULL when run is given */
    char *shell; /* absolute path, default /bin/sh: started as SHELL -c RUN */
    /* 1: one task a process, body on stdin; more: up to so many, JSON lines */
    int batch;
    int64_t timeout_ms;    /* of one process; default 60 s */
    int64_t kill_grace_ms; /* from TERM to KILL; default 5 s */
    struct retry_policy retry;
    int max_running;        /* processes of one tag on this host; default HANDLERS_MAX_RUNNING */
    int global_max_running; /* running tasks of one tag on all hosts; 0: no limit */
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
    unsigned line; /* where it stands in the file */
};

struct handlers {
    char *path;
    uint64_t digest; /* of the file's bytes: two equal digests mean the same table */
    struct handler *items;
    size_t count;
};

/* Reads and checks the whole file, owner and mode included (conf_open_trusted). Accounts named by
 * `user` must exist. A relative `cwd` or a `run` list whose program is a relative path with a slash
 * is resolved against the file's directory. May wait for the file system and the account database;
 * may run in a thread. ERR_CONFIG. */
int handlers_load(const char *path, struct handlers **ret, struct err *err)
    __attribute__((warn_unused_result));
int handlers_load_text(const char *path, struct buf *ret_text, struct handlers **ret,
                       struct err *err)
    __attribute__((warn_unused_result)); /* ret_text gets what was read, also on failure */
/* The same table once more, of the text that handlers_load_text got from that path. Asks neither
 * the file system nor for accounts. */
int handlers_parse(const char *path, const char *text, size_t len, struct handlers **ret,
                   struct err *err) __attribute__((warn_unused_result));
void handlers_free(struct handlers *h);

/* The handler of a tag: its exact name, else the matching glob with the most literal characters (a
 * tie: the first in the file). Index into items, or -1. */
int handlers_match(const struct handlers *h, const char *tag);

/* Every key that `defaults` and a handler may have, NULL-terminated; the manual and the sample are
 * checked against it. */
extern const char *const handlers_keys[];

#endif
