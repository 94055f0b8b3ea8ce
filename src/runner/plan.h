/*
 * plan.h - a handlers table made ready to start processes from.
 *
 * What needs the account database is looked up by whoever starts a handler first (launch.c),
 * because that database may not answer.
 */
#ifndef DQ_RUNNER_PLAN_H
#define DQ_RUNNER_PLAN_H

#include "base/err.h"
#include "conf/handlers.h"
#include "runner/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What follows from the handler's account. */
struct setup {
    struct child_account account;
    bool switches;         /* to that account */
    const char **programs; /* see struct child_spec; strings owned */
    char **env;            /* base and handler's own; strings owned; NULL-terminated */
    size_t env_count;
};

/* How one handler is started. */
struct plan {
    const struct handler *handler;
    const char *default_user;
    const char **argv;   /* strings of the handler */
    struct setup *setup; /* NULL: not looked up yet */
    unsigned hanging;    /* starts that have been taking long, not given up */
    unsigned given_up;   /* such as are not over though nobody waits for them */
};

struct table {
    const struct handlers *handlers;
    struct plan *plans;     /* one a handler */
    unsigned users;         /* jobs and starts that point into it */
    struct handlers *owned; /* freed with it; NULL: somebody else's */
    struct table *next;
};

/* Asks the account database, and may block on that; may be called by any thread. NULL with err
 * (ERR_SYSTEM) when there is no such account. */
struct setup *setup_new(const struct plan *p, struct err *err);
void setup_free(struct setup *s); /* NULL is fine */

/* handlers must outlive the table, and default_user, too: the account of handlers without `user:`,
 * NULL or "": the runner's own. */
struct table *table_new(const struct handlers *handlers, const char *default_user);
void table_free(struct table *t);

#endif
