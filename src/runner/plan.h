/*
 * plan.h - a handlers table made ready to start processes from: programs, arguments, environments and accounts are worked out
 * when the table is read, so that a start looks nothing up.
 */
#ifndef DQ_RUNNER_PLAN_H
#define DQ_RUNNER_PLAN_H

#include "base/err.h"
#include "conf/handlers.h"
#include "runner/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How one handler is started. */
struct plan {
    const struct handler *handler;
    const char **programs; /* see struct child_spec; strings owned */
    const char **argv;     /* strings of the handler */
    char **env;            /* base and handler's own; strings owned; NULL-terminated */
    size_t env_count;
    const struct child_account *account; /* NULL: stay */
    struct err trouble;                  /* code != 0: cannot be started, and why */
};

struct table {
    const struct handlers *handlers;
    struct plan *plans; /* one a handler */
    struct child_account *accounts;
    size_t account_count;
    unsigned users;         /* jobs that point into it */
    struct handlers *owned; /* freed with it; NULL: somebody else's */
    struct table *next;
};

/* handlers must outlive the table. default_user: account of handlers without `user:`, NULL or "": the
 * runner's own. Asks the account database, and may block on that. */
struct table *table_new(const struct handlers *handlers, const char *default_user);
void table_free(struct table *t);

#endif
