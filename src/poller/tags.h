/*
 * tags.h - the tags that the poller knows of, and the handlers that they have.
 */
#ifndef DQ_POLLER_TAGS_H
#define DQ_POLLER_TAGS_H

#include "conf/handlers.h"
#include "poller/aside.h"
#include "poller/handlers_table.h"
#include "poller/look.h"
#include "store/work/peek_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What this poller knows of a tag. */
struct tag_state {
    struct look_tag look; /* the first, so that tags_of finds the rest */
    char *name;
    char *rest_error; /* why it rests, or has rested; NULL: it has not */
    struct tag_set *set;
    int handler;        /* index in the current table; -1: none, or left out by --tag */
    bool selected;      /* by --tag */
    int64_t seen_us;    /* last look that had it */
    int64_t asked_us;   /* the last question of withdraw.c that had it */
    int64_t crowded_us; /* when withdraw.c last saw whether too many of its jobs wait: crowded */
    bool crowded;
    int64_t late_ms; /* how long its earliest task had been due at the last look at all tags */
    /* where upkeep looks for its expired tasks next */
    struct peek_floor expire_from[TASK_LEVELS];
    int64_t warned_us; /* last time the log said that it has no handler; 0: never */
    /* of care.c: */
    struct aside aside; /* due tasks whose rows could not be changed */
    bool slow_said;     /* the log has it that changing its rows takes long */
    int64_t refused_us; /* when its last claim was, as a whole; 0: it was not */
    struct err refusal; /* of that claim */
    int64_t bare_us;    /* until then a claim brings no bodies: some body_size was a lie */
    /* since when another session has locked its row of dq_limit; 0: it has not */
    int64_t limit_since_us;
    int64_t limit_said_us; /* when that was logged; 0: it was not */
    bool guarded;          /* that row says more than a pause, as the last claim has seen */
    bool probing;          /* by the breaker of its limit, one task runs at a time, if any */
};

struct tag_set {
    struct look *look;
    const char *const *globs;     /* --tag */
    bool passes;                  /* this dqd ends by itself, and another one is to follow */
    struct handlers_table *table; /* current */
    struct tag_state **items;     /* by name */
    size_t count, cap;
    int64_t looked_at;  /* the last look, on the database's clock */
    int64_t short_us;   /* when the host was last too short of something for a start; 0: never */
    uint64_t recorded;  /* the number of the handlers by which others know this dqd */
    bool rests_changed; /* rests, refusals or slow tags, since served.c recorded them */
    /* of care.c: */
    int64_t refused_us; /* when the last look for tasks of any tag was refused; 0: it was not */
    struct err refusal; /* of that look */
};

/* Takes the handlers over. globs: only tags that match one, NULL-terminated, the caller's; NULL:
 * all tags. Tags with a handler are reported to look. */
void tags_init(struct tag_set *set, struct look *look, const char *const *globs,
               struct handlers *handlers);
void tags_free(struct tag_set *set);

/* Replaces the handlers, which are taken over, and matches all tags with them. */
void tags_set_handlers(struct tag_set *set, struct handlers *handlers);
/* The current handlers; jobs keep the table that they were started from. */
struct handlers_table *tags_table(const struct tag_set *set);
/* NULL: none here. */
const struct handler *tags_handler(const struct tag_set *set, const struct tag_state *t);
/* The name of the limit that it is under, of its current handler. */
const char *tags_limit(const struct tag_state *t);
/* Whether --tag selects it. */
bool tags_selected(const struct tag_set *set, const char *name);
/* Whether its claims lock a limit, of dq_limit or of this handler. */
bool tags_is_limited(const struct tag_state *t, const struct handler *h);

/* The tag of that name, created if it is new; never NULL. Valid until the next tags_take_all, while
 * it has jobs or results also after that. */
struct tag_state *tags_named(struct tag_set *set, const char *name);
struct tag_state *tags_of(struct look_tag *t);
/* All tags, one per call: begin with *at = 0; NULL: that was all. */
struct tag_state *tags_each(const struct tag_set *set, size_t *at);
/* look_turn_elsewhere has counted by tag: the tags of a handler with keep share what all have. */
void tags_share_elsewhere(struct tag_set *set);
/* Whether some of its tasks were due at the last look and have not been claimed since. */
bool tags_is_due(const struct tag_set *set, const struct tag_state *t);

/* A look found the next task of each tag. Tags that have long been without tasks are forgotten. */
void tags_take_all(struct tag_set *set, const struct peek *peek, int64_t now_us);
/* A look found the next one of some of the tasks. */
void tags_take_news(struct tag_set *set, const struct peek *peek, int64_t now_us);
/* Its handler could not be started: the tag rests, or if code is ERR_TRANSIENT, waits for 0.5
 * to 5 s, because that is not its fault. Logged. */
void tags_rest(struct tag_state *t, int code, const char *why);

#endif
