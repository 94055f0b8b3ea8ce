/*
 * tags.h - the tags that the poller knows of.
 */
#ifndef DQ_POLLER_TAGS_H
#define DQ_POLLER_TAGS_H

#include "poller/aside.h"
#include "poller/look.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct poller;

/* What this poller knows of a tag. */
struct tag_state {
    struct look_tag look; /* the first, so that tags_of finds the rest */
    char *name;
    int handler;        /* index in the current table; -1: none, or left out by --tag */
    bool selected;      /* by --tag */
    int64_t seen_us;    /* last look that had it */
    int64_t warned_us;  /* last time the log said that it has no handler; 0: never */
    struct aside aside; /* due tasks whose rows could not be changed */
    int64_t careful_us; /* until then a claim looks for locked rows first */
    /* until then it brings no bodies: some body_size of this tag was a lie */
    int64_t bare_us;
    int64_t limit_since_us; /* since when its row of dq_tag is locked by somebody; 0: it is not */
    int64_t limit_said_us;  /* when that was logged; 0: it was not */
};

struct tag_set {
    struct tag_state **items; /* by name */
    size_t count, cap;
};

struct tag_state *tags_named(struct poller *p, const char *name); /* made when new; never NULL */
/* the handlers table has changed */
void tags_rematch(struct poller *p);
struct tag_state *tags_of(struct look_tag *t);
/* claims.peek has the next task of each tag */
void tags_take_all(struct poller *p, int64_t now_us);
void tags_take_news(struct poller *p, int64_t now_us); /* claims.peek has only some of the tasks */
void tags_rest(struct tag_state *t, const char *why);  /* its handler could not be started */
void tags_free(struct poller *p);

#endif
