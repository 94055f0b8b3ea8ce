/*
 * look_pace.c - see look_pace.h. The longer looks take, the rarer they become, so that neither dqd
 * nor the server is busy with them.
 */
#include "poller/look_pace.h"

#include "base/rate.h"

#include <sys/param.h>

/* A look at all tags is dear if it takes this much longer than asking each tag that has a handler:
 * an idle dqd makes five a second, and may use one percent of a core. Then tags are asked one by
 * one, and due tasks do not wait for the look. */
#define DEAR_US 2000
/* Dear looks take one part in this many of the time: 0.2 percent, so that many pollers together do
 * not use up the server. */
#define DEAR_PART 500
/* If asking tags one by one takes as long, only news find due tasks otherwise: looks may take a
 * quarter of the time. */
#define FULL_PART 4
/* Looks are no further apart than this, however dear: they find what news and the tags' own looks
 * have missed. */
#define RARE_US INT64_C(10000000)
/* The first look at all tags is given up after this: until the server's statistics catch up with a
 * bulk insert, it reads every pending row. After one that was given up, the next may take four
 * times as long, and above the second limit as long as it needs. */
#define LIMIT_MS 100
#define LIMIT_MOST_MS 2000
/* The assumed cost of asking one tag, until one has been asked. */
#define TAG_GUESS_US 100
/* The part of the time since the last surprise that the next one may wait. */
#define SURPRISE_PART 8
/* Looks that are frequent because of that take one part in this many of the time. */
#define POLL_PART 20
/* More rows are a backlog, whose tasks are late already. */
#define FEW_ROWS 20
#define SLOW_FADES 1024
/* Looks for wake-ups are at least this far apart, which is less than a sender needs for its
 * statement, and take one part in this many of the time. Time not used in the last second may be
 * used later: a single look that takes long delays none. */
#define WOKEN_PAUSE_US INT64_C(2000)
#define WOKEN_PART 4
#define WOKEN_UNUSED_US INT64_C(1000000)
/* Starts under a rate are reserved so far ahead: twenty claims a second at most. No further,
 * because a dqd that dies wastes them. */
#define HORIZON_MS 100
#define HORIZON_MOST_MS (RATE_RESERVED_US / 1000)
/* Starts may be late by a little (handover.c), so a claim that takes less is as if it took no time.
 * Of one that takes longer, three quarters come after it has read the limit. */
#define LEAD_LESS_US 125000
#define LEAD_MOST_MS (HORIZON_MOST_MS / 2)

/* Of a look at all tags. Twice in a row: once is chance. */
static int64_t cost_us(const struct look_pace *p)
{
    return MIN(p->all_cost_us[0], p->all_cost_us[1]);
}

/* What it costs beyond asking each of them. */
static int64_t more_us(const struct look_pace *p, size_t tags)
{
    int64_t tag_us = p->tag_cost_us ? p->tag_cost_us : TAG_GUESS_US;

    return cost_us(p) - tag_us * (int64_t)tags;
}

void look_pace_saw_all(struct look_pace *p, int64_t cost_us)
{
    p->all_cost_us[1] = p->all_cost_us[0];
    p->all_cost_us[0] = cost_us;
    p->limit_ms = MAX(LIMIT_MS, cost_us * 4 / 1000);
}

void look_pace_gave_up(struct look_pace *p, int64_t limit_ms, int64_t cost_us)
{
    p->all_cost_us[0] = p->all_cost_us[1] = cost_us;
    p->limit_ms = limit_ms < LIMIT_MOST_MS ? 4 * limit_ms : 0;
}

int64_t look_pace_limit_ms(const struct look_pace *p)
{
    return p->all_cost_us[0] ? p->limit_ms : LIMIT_MS;
}

bool look_pace_is_dear(const struct look_pace *p)
{
    return p->all_cost_us[0] >= DEAR_US;
}

bool look_pace_asks_singly(const struct look_pace *p, size_t tags)
{
    return more_us(p, tags) >= DEAR_US;
}

/* A look at all tags takes long if there are very many, until the server's statistics catch up with
 * a bulk insert, and while a session holds an old snapshot, because then it passes over all tasks
 * that were drained. It is then made rarely; in between, tags are asked one by one, if they are
 * few, and new tasks are looked at. */
int64_t look_pace_every_us(const struct look_pace *p, size_t tags, int64_t poll_us)
{
    int64_t dear_us = more_us(p, tags);

    if (dear_us < DEAR_US)
        return MAX(poll_us, cost_us(p) * FULL_PART);
    return MAX(poll_us, MIN(dear_us * DEAR_PART, RARE_US));
}

void look_pace_polled(struct look_pace *p, const int64_t range_us[2], int64_t now_us)
{
    int64_t part_us = p->surprise_us ? (now_us - p->surprise_us) / SURPRISE_PART : INT64_MAX;
    int64_t least_us = MAX(range_us[0], cost_us(p) * POLL_PART);

    p->poll_us = MIN(MAX(part_us, least_us), range_us[1]);
}

void look_pace_surprised(struct look_pace *p, const int64_t range_us[2], int64_t now_us)
{
    p->surprise_us = now_us;
    look_pace_polled(p, range_us, now_us);
}

void look_pace_took(int64_t *slow_us, size_t rows, int64_t took_us)
{
    if (rows <= FEW_ROWS)
        *slow_us = MAX(MIN(took_us, LOOK_EARLY_MOST_MS * 1000), *slow_us - *slow_us / SLOW_FADES);
}

int64_t look_pace_early_ms(const struct look_pace *p)
{
    int64_t slow_ms = (p->claim_us + p->result_us) / 1000;

    return MAX(MIN(slow_ms, LOOK_EARLY_MOST_MS), LOOK_EARLY_MS);
}

void look_pace_rated(struct look_pace *p, int64_t took_us, bool full, int64_t now_us)
{
    const int64_t gone_us = MIN(now_us - p->rated_at_us, LOOK_RATED_US);
    const int64_t ms = look_pace_horizon_ms(p);

    p->rated_us += took_us - p->rated_us * gone_us / LOOK_RATED_US;
    p->rated_at_us = now_us;
    if (full || p->rated_us < LOOK_RATED_US / 4)
        p->horizon_ms = ms - ms / 16;
    else if (p->rated_us > LOOK_RATED_US / 2)
        p->horizon_ms = MIN(ms + ms / 8, HORIZON_MOST_MS);
}

/* Twice in a row: once is chance. */
int64_t look_pace_limited_us(const struct look_pace *p)
{
    return MIN(p->limited_us[0], p->limited_us[1]);
}

/* The next claim has to reserve starts before those of this one are used up. */
int64_t look_pace_horizon_ms(const struct look_pace *p)
{
    const int64_t ms = MAX(MAX(p->horizon_ms, HORIZON_MS), look_pace_limited_us(p) * 3 / 2000);

    return MIN(ms, HORIZON_MOST_MS - look_pace_lead_ms(p));
}

void look_pace_limited(struct look_pace *p, int64_t took_us)
{
    p->limited_us[1] = p->limited_us[0];
    p->limited_us[0] = took_us;
}

int64_t look_pace_lead_ms(const struct look_pace *p)
{
    return MIN(MAX(look_pace_limited_us(p) * 3 / 4 - LEAD_LESS_US, 0) / 1000, LEAD_MOST_MS);
}

int64_t look_pace_woken(struct look_pace *p, int64_t now_us, int64_t cost_us)
{
    p->paid_us = MAX(p->paid_us, now_us - WOKEN_UNUSED_US) + cost_us * WOKEN_PART;
    return MAX(p->paid_us, now_us + WOKEN_PAUSE_US);
}
