/*
 * look_turn.h - which tag is claimed next. Tags take turns to be the first one. If handlers differ
 * in weight, the first one is that which has had the fewest slots for its weight: when slots are
 * short, whoever is first takes them. Tags under one limit are claimed in the order of their last
 * turns, whatever others do. Pure, as is look.h.
 */
#ifndef DQ_POLLER_LOOK_TURN_H
#define DQ_POLLER_LOOK_TURN_H

#include "poller/look_tag.h"

/* Init with {0}. */
struct look_turn {
    size_t first;   /* the tag that is asked first, unless weights decide */
    size_t last;    /* so many of a stage were asked up to the last that was claimed */
    bool weighted;  /* not all weights are the same */
    uint32_t stage; /* each tag is claimed once in it */
    uint64_t turns; /* so many have been had */
    /* slots of claims since then whose jobs have not started, as far as the runner has reported */
    int64_t since_us;
    uint32_t claimed;
    uint32_t elsewhere; /* jobs of all tags that ending dqds of this host run */
    uint32_t kept;      /* by weights: of the slots that are kept, those that are in use */
    uint32_t waiting;   /* tags that may start something and have claimed nothing for it */
    /* what the last one had had two turns before its turn came: a tag that had less did not want
     * more, or could not get one of the kept slots, and has no claim to make up for that */
    uint64_t had;
};
/* t joins these tags. */
void look_turn_add(struct look_turn *w, struct look_tag *const *tags, size_t count,
                   const struct look_tag *t);

void look_turn_begin(struct look_turn *w, int64_t now_us); /* a round */

/* For how many starts it is to be claimed, while so many jobs run. If others wait for slots, it
 * claims ahead for those only that it gets now: each one that it leaves would go to what it has
 * claimed, and never to them. */
uint32_t look_turn_want(const struct look_turn *w, const struct look_tag *t, uint32_t slots,
                        uint32_t running);

typedef bool look_turn_due(const void *arg, const struct look_tag *t);

/* The next tag of the stage that is due and wants something; NULL: there is none. *next: how many
 * have been asked, from 0. */
struct look_tag *look_turn_next(struct look_turn *w, struct look_tag *const *tags, size_t count,
                                size_t *next, uint32_t slots, uint32_t running, look_turn_due *due,
                                const void *arg);
/* A stage is over in which so many were asked. */
void look_turn_end(struct look_turn *w, size_t asked);
/* A stage is over in which all were asked: the one behind the last that was claimed, if any was, is
 * first next time. */
void look_turn_over(struct look_turn *w, size_t count);
/* It was claimed for so many starts. refused: its limit allows no more; if it allowed none, the tag
 * has not had its turn among those under the limit. */
void look_turn_took(struct look_turn *w, struct look_tag *t, size_t claimed, bool refused,
                    uint32_t slots, uint32_t running);
/* When slots that were claimed, and whose jobs have not started, count as free again. */
int64_t look_turn_free_us(const struct look_turn *w);
/* What ending dqds of this host still run: they started it in our place, so it counts as if it ran
 * here. These are all tags that have or had such tasks, in so many processes together, which is
 * what counts for the slots. How many a batch needs is not known: each tag gets all that may be its
 * own. */
struct look_elsewhere {
    struct look_tag *tag;
    uint64_t tasks; /* 0: none any more */
};
void look_turn_elsewhere(struct look_turn *w, const struct look_elsewhere *e, size_t count,
                         uint64_t processes);
/* So many of its jobs are queued and run now, more or less. */
void look_turn_count(struct look_turn *w, struct look_tag *t, int queued, int running);
/* One that was queued has started, beside so many. */
void look_turn_started(struct look_turn *w, struct look_tag *t, uint32_t slots, uint32_t running);

#endif
