/*
 * served.h - records in the database, for operators, which handlers this dqd has, which tags
 * rest here, and which are refused or slow: a duty.
 */
#ifndef DQ_POLLER_SERVED_H
#define DQ_POLLER_SERVED_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/tags.h"
#include "runner/link.h"

#include <stdbool.h>
#include <stdint.h>

/* What becomes of a handler's processes that stay. */
struct served_kept {
    struct message_kept told; /* without the text */
    char *text;               /* NULL: nothing */
};

struct served {
    const struct context *ctx;
    struct tag_set *tags;
    int64_t look_us;          /* when to see whether the handlers are there; 0: now */
    int64_t rests_us;         /* no rests are written before */
    bool clean;               /* at the end, look for what nobody refers to any more */
    int64_t retry_us;         /* after a failure: nothing before */
    bool refused;             /* the server refuses; that was logged */
    struct served_kept *kept; /* of each handler */
    size_t kept_count, kept_cap;
};

void served_init(struct served *s, const struct context *ctx, struct tag_set *tags);
/* Records what becomes of processes that stay. */
void served_kept(struct served *s, const struct message_kept *m);
/* The handlers were replaced: records the new ones. */
void served_handlers_changed(struct served *s);

/* The duty. Asks the database: one statement, unless something is to be written. 0, or a negative
 * code with err if the connection broke. Other failures are logged, and cost nothing but the
 * record. */
int64_t served_next(const struct served *s);
int served_run(struct served *s, struct err *err);
/* At the end, after registry_leave: deletes what nobody refers to any more. stays: this dqd was
 * there for long, and is not followed by another one. */
void served_leave(struct served *s, bool stays);

#endif
