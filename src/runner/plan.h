/*
 * plan.h - a handlers table, prepared for starting processes.
 *
 * Accounts are looked up at the first start of each handler (launch.c), because their database may
 * not answer.
 */
#ifndef DQ_RUNNER_PLAN_H
#define DQ_RUNNER_PLAN_H

#include "base/err.h"
#include "conf/handlers.h"
#include "runner/child.h"
#include "runner/contract.h"
#include "runner/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What follows from the handler's account. */
struct setup {
    struct child_account account;
    bool switches;         /* to that account, or stays */
    const char **programs; /* see struct child_spec; strings owned */
    char **env;            /* base and handler's own; strings owned; NULL-terminated */
    size_t env_count;
};

struct process;

/* The processes of a handler that stay: see keep.h. */
struct plan_kept {
    struct process *idle;
    int live;                 /* those that are not retired, starting ones too */
    int starting;             /* not ready yet */
    int elsewhere;            /* processes of ending dqds, as of queue_elsewhere */
    int waiting;              /* jobs of all tags, not processes */
    int retired;              /* they have got the end of file, and are still there */
    int ends;                 /* in a row, of processes that have read no task */
    uint64_t unused;          /* the mark of the last one that was replaced before its first job */
    int64_t weigh_at;         /* not before */
    struct message_kept tell; /* how many were replaced, and why the last one: heap memory */
    bool told;                /* that some live */
    char *why;                /* jobs cannot be started now: the reason; NULL: they can */
    int64_t why_at;
};

/* How one handler is started. */
struct plan {
    const struct handler *handler;
    const struct contract *contract;
    const char *default_user, *config;
    const char *const *argv; /* without a shell, if none is needed */
    char **words;            /* of a text that needs none, owned; NULL: it does, or it is a list */
    const char *shell[4];    /* SHELL -c RUN; of a list: NULL */
    struct setup *setup;     /* NULL: not looked up yet */
    struct plan_kept kept;
    int64_t start_us;  /* of the last job that was started */
    unsigned hanging;  /* starts that take long and were not given up */
    unsigned given_up; /* starts that were given up and are not over */
};

struct table {
    const struct handlers *handlers;
    struct plan *plans;     /* one per handler */
    bool weighted;          /* not all weights are the same */
    bool old;               /* another one is in use */
    unsigned users;         /* jobs and starts that point into it */
    struct handlers *owned; /* freed with it; NULL: the handlers belong to the caller */
    struct table *next;
};

/* Asks the account database, which may block; may be called by any thread. NULL: err says why
 * (ERR_SYSTEM), such as that there is no such account. */
struct setup *setup_new(const struct plan *p, struct err *err);
void setup_free(struct setup *s); /* NULL is fine */

/* handlers, default_user and config must outlive the table. default_user: the account of handlers
 * without `user:`; NULL or "": the runner's own. config: the file that DQ_CONFIG names for accounts
 * that may read it; NULL: none. */
struct table *table_new(const struct handlers *handlers, const char *default_user,
                        const char *config);
void table_free(struct table *t);

#endif
