/*
 * limit.h - how many tasks of a tag may start now, and if none, why: what is stored for the tag,
 * what runs, and the time decide. Pure, but for the text. claim_find.c asks the server itself
 * whether a tag is paused, so that a claim needs no statement for that.
 */
#ifndef DQ_BASE_LIMIT_H
#define DQ_BASE_LIMIT_H

#include "base/buf.h"
#include "base/rate.h"

#include <stdint.h>

struct hours;

/* What is stored for a tag. */
struct limit {
    const char *name;        /* of the limit; NULL: that of the tag */
    uint32_t running;        /* tasks that may run at a time, on all hosts; 0: any number */
    int64_t paused_until_at; /* INT64_MAX: until resumed; TASK_TIME_NONE: not paused */
    const char *reason;      /* of the pause; NULL: none */
    struct rate rate;
    bool rate_full;            /* the last claim wanted more than it lets start */
    int64_t next_us;           /* see rate.h: microseconds; INT64_MIN: none has started yet */
    const struct hours *hours; /* in which tasks may start; NULL: always */
    int64_t held_until_at;     /* TASK_TIME_NONE: not held */
    const char *hold_reason;   /* NULL: none */
    bool probed;               /* its breaker's rest is over, and a task has begun since and runs */
    uint32_t breaker;          /* how often in a row it has opened; 0: it is closed */
    int64_t lead_ms;           /* who asks cannot start any sooner than that after now */
};
/* Of a tag without a limit. */
#define LIMIT_NONE                                                                                 \
    .paused_until_at = TASK_TIME_NONE, .held_until_at = TASK_TIME_NONE, .next_us = INT64_MIN

/* In the order in which they count. */
enum limit_why {
    LIMIT_OPEN,
    LIMIT_PAUSED,
    LIMIT_HELD,
    LIMIT_PROBED, /* a breaker lets one task try whether the others may follow, and it runs */
    LIMIT_CLOSED, /* by its hours */
    LIMIT_RUNNING,
    LIMIT_RATE,
    /* that is not known, as another session has locked the row; never an answer of limit_ask */
    LIMIT_LOCKED
};

struct limit_answer {
    uint64_t may; /* tasks that may start; UINT64_MAX: any number */
    enum limit_why why;
    /* when to look again; INT64_MAX: when a task ends, or the tag is resumed */
    int64_t again_at;
};
/* running: tasks under the limit that run, on all hosts. horizon_ms: starts may be reserved so far
 * ahead of now. */
struct limit_answer limit_ask(const struct limit *l, uint64_t running, int64_t now_at,
                              int64_t horizon_ms);

/* Since when a task under it that is due may start; INT64_MAX: none may. INT64_MIN: always, or
 * never, which no time ends. A task is late from then on. */
int64_t limit_since(const struct limit *l, int64_t now_at);

/* Appends the reason, as every program words it; nothing for LIMIT_OPEN. */
void limit_put(struct buf *b, const struct limit *l, const struct limit_answer *a, int64_t now_at);

/* Of one tag, as two dqds have it: what holds for both together. The greater one; 0: none. */
uint32_t limit_join(uint32_t a, uint32_t b);

#define LIMIT_LOCKED_TEXT                                                                          \
    "another session has locked its tag's row of dq_limit, which guards its limit"

#endif
