/*
 * breaker.h - stops the tasks of a limit for a while if too many of them fail, and lets one at a
 * time try whether the others may follow: `breaker` of handlers. A duty. A tag without a breaker
 * costs nothing.
 */
#ifndef DQ_POLLER_BREAKER_H
#define DQ_POLLER_BREAKER_H

#include "poller/minute.h"
#include "poller/tags.h"
#include "store/row/settlement.h"

/* What the attempts of a limit that ended lately say. */
struct breaker_watch {
    char *limit;
    char *error;                 /* of the last one that failed; NULL: the last one worked */
    struct handler_breaker when; /* failures 0: none of this dqd's handlers has one */
    int64_t start_at;            /* of the one that tried: it began last; 0: none has */
    int64_t judge_us;            /* when counts that were written later than this are judged */
    bool judged;                 /* since the last of them ended */
};

/* What the attempts of a limit came to in some time. */
struct breaker_sum {
    uint64_t failures; /* processes that failed, and verdicts */
    uint64_t failed;   /* tasks: all that ended with such a process */
    uint64_t ended;    /* of these, and those that are done */
};

struct breakers {
    const struct context *ctx;
    const struct minute *minute;
    const struct tag_set *tags;
    struct breaker_watch *items;
    size_t count, cap;
    int64_t not_before_us; /* another session has locked a limit */
    int64_t locked_us;     /* for how long it was left alone last because of that */
};

/* What the tasks of a tag did in a minute. Pure. */
void breaker_add(struct breaker_sum *sum, const struct counts *c);
bool breaker_too_many(const struct breaker_sum *sum, const struct handler_breaker *when);

void breaker_init(struct breakers *b, const struct context *ctx, const struct minute *minute,
                  const struct tag_set *tags);
void breaker_free(struct breakers *b);

/* An attempt of the tag has ended. */
void breaker_ended(struct breakers *b, const struct tag_state *t, const struct settlement *s);

/* The duty: at once if a task has tried, otherwise when the counts of failures have been written.
 * *ret_closed: the tasks of a limit may start again. Asks the database. 0 or a negative code with
 * err. */
int64_t breaker_next(const struct breakers *b);
int breaker_run(struct breakers *b, bool *ret_closed, struct err *err);
/* At the end, after minute_leave: for the pass that follows. */
void breaker_leave(struct breakers *b);

#endif
