/*
 * look_pace.h - what looks have cost, and how often they may be made because of it. Pure, as is
 * look.h; the times are microseconds.
 */
#ifndef DQ_POLLER_LOOK_PACE_H
#define DQ_POLLER_LOOK_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tasks are claimed this long before their time: more than a claim usually takes, and if claims and
 * results take long, as long as these. No longer, because a task that is cancelled in that time
 * already counts as running. */
#define LOOK_EARLY_MS 5
#define LOOK_EARLY_MOST_MS 50

struct look_pace {          /* initialize with {0}, but for poll_us */
    int64_t all_cost_us[2]; /* of the last two looks at all tags, the newest first; 0: not made */
    int64_t limit_ms;       /* for the next one */
    int64_t news_cost_us;   /* of the last look at new tasks */
    int64_t tag_cost_us;    /* of asking one tag; 0: none was asked */
    int64_t poll_us;        /* between two looks, as long as they are cheap */
    int64_t surprise_us;    /* when a task was found last that nobody had announced */
    int64_t claim_us;  /* what one of few tasks takes: about the longest of the last thousand */
    int64_t result_us; /* the same of results */
    int64_t paid_us;   /* the time for looks after wake-ups is used up until then */
    /* the part of LOOK_RATED_US that claims under a rate have taken lately, when that was measured,
     * and how far they reserve starts ahead because of it */
    int64_t rated_us, rated_at_us, horizon_ms;
    int64_t limited_us[2]; /* what the last claims under a limit have taken */
};

/* A look at all tags took this long; or the server gave it up at its limit, after this long. */
void look_pace_saw_all(struct look_pace *p, int64_t cost_us);
void look_pace_gave_up(struct look_pace *p, int64_t limit_ms, int64_t cost_us);
/* How long the next look at all tags may take; 0: as long as it needs. */
int64_t look_pace_limit_ms(const struct look_pace *p);

/* Whether due tasks must not wait for a look at all tags. */
bool look_pace_is_dear(const struct look_pace *p);
/* Whether the tags that have a handler are asked one by one between two looks at all. */
bool look_pace_asks_singly(const struct look_pace *p, size_t tags);
/* The pause between two looks at all tags; poll_us, or longer if they take long. */
int64_t look_pace_every_us(const struct look_pace *p, size_t tags, int64_t poll_us);

/* A look was made, or one has found a task that nobody had announced. Such a task waits for a look,
 * so the pause between two looks is an eighth of the time since the last one, within range_us. */
void look_pace_polled(struct look_pace *p, const int64_t range_us[2], int64_t now_us);
void look_pace_surprised(struct look_pace *p, const int64_t range_us[2], int64_t now_us);

/* A claim, or recording results, took this long: the field to be updated. */
void look_pace_took(int64_t *slow_us, size_t rows, int64_t took_us);
/* How long before their time tasks are claimed. Results may be recorded when that is due. */
int64_t look_pace_early_ms(const struct look_pace *p);

/* A claim under a rate took this long, all in all. Each reserves the starts of some time, longer if
 * such claims take most of the time: if they are many, or the database is far away. full: most
 * slots are taken. Tasks that wait for their start take the room of others. */
#define LOOK_RATED_US INT64_C(250000)
void look_pace_rated(struct look_pace *p, int64_t took_us, bool full, int64_t now_us);
int64_t look_pace_horizon_ms(const struct look_pace *p);
/* A claim under a limit has won tasks and took this long. */
void look_pace_limited(struct look_pace *p, int64_t took_us);
int64_t look_pace_limited_us(const struct look_pace *p); /* the shorter one of the last two times */
/* How long after such a claim has read its limit its tasks can start, if that is long, else 0.
 * Starts that are reserved before that are lost. At most a second. */
int64_t look_pace_lead_ms(const struct look_pace *p);

/* Looks that cost this much follow a wake-up. Returns when the next one may be reported. */
int64_t look_pace_woken(struct look_pace *p, int64_t now_us, int64_t cost_us);

#endif
