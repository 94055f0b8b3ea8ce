/*
 * registry.h - announces to other pollers that this one lives, and learns its share of the work: a
 * duty.
 */
#ifndef DQ_POLLER_REGISTRY_H
#define DQ_POLLER_REGISTRY_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/look.h"
#include "poller/tags.h"

#include <stdbool.h>
#include <stdint.h>

struct registry {
    struct context *ctx;
    struct look *look;
    struct tag_set *tags;
    const char *mode;
    bool passes; /* this dqd ends by itself, and another one is to follow */
    /* when this dqd began: since the last one of that kind did; -1: none did */
    int64_t since_pass_ms;
    int64_t beat_us;   /* the last heartbeat; 0: none */
    int64_t back_us;   /* the last one before a silence that dq_event does not have yet; 0: none */
    bool soon;         /* the next one is not to wait for its time */
    bool said_end;     /* the last one said that we start nothing any more, and had all that runs */
    int64_t ending_us; /* since when we begin nothing new; 0: we do */
    int64_t count_us;  /* what ending dqds of this host run is not counted before this time */
    unsigned share, shares, alive; /* as of poller_store.h */
    uint64_t limits;               /* as the last heartbeat found them */
    int64_t now_us;                /* the server's clock then */
    bool doubt;                    /* it was set back since by minutes, and nothing was corrected */
    bool uncorrected;              /* the log says that what it left cannot be corrected */
    bool unheard;                  /* another session has locked our row of dq_poller */
    bool recorded;                 /* dq_event has the start of this dqd */
    bool uncounted;                /* the log says that ending dqds cannot be counted */
    bool unrecorded;               /* the log says that dq_event cannot be written */
    struct err outgrown; /* code ERR_CONFIG: the tables are those of a newer dq; what to do */
};

/* mode: as dq pollers shows it; the caller's. */
void registry_init(struct registry *r, struct context *ctx, struct look *look, struct tag_set *tags,
                   const char *mode, bool passes);

/* This poller's share of the tasks, 0 to registry_shares - 1. Claims of other shares leave it
 * alone. Those of dqds that serve other tags do not: if only one differs, none is shared. */
unsigned registry_share(const struct registry *r);
unsigned registry_shares(const struct registry *r); /* 1 or more */

/* The duty: writes the heartbeat, counts the others, and notices if the tables no longer are those
 * of this program: then the context is ending, and outgrown set. Asks the database. 0 or a negative
 * code with err. */
int64_t registry_next(const struct registry *r);
int registry_beat(struct registry *r, struct err *err);
/* The handlers have changed, and the next heartbeat says so; or schedules or
 * limits, which it looks at. */
void registry_beat_soon(struct registry *r);
/* The context is ending: the next one says so at once, for others to take our share. */
void registry_end(struct registry *r);
/* Whether others know that, and count what we still run; or whether we have been unable to say so
 * for so long that they take us for dead. */
bool registry_has_ended(const struct registry *r, int64_t now_us);
/* At the end: takes this poller off the list, if it is on it and there is a connection. A pass
 * stays, as one that has ended. */
void registry_leave(struct registry *r);

/* How long after the end of a pass the next one counts as due, milliseconds: some passes later.
 * since_ms: as since_pass_ms above. Pure. */
int64_t registry_next_pass_ms(int64_t since_ms);

#endif
