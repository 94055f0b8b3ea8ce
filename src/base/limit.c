/*
 * limit.c - see limit.h. The cases are in test/data/limits.tbl.
 */
#include "base/limit.h"
#include "base/hours.h"
#include "base/task.h"
#include "base/when.h"

#include <inttypes.h>
#include <sys/param.h>

static bool lasts(int64_t until_at, int64_t now_at)
{
    return until_at != TASK_TIME_NONE && until_at > now_at;
}

static struct limit_answer none(enum limit_why why, int64_t again_at)
{
    return (struct limit_answer){0, why, again_at};
}

/* Of one that is neither paused nor held, and open. */
static struct limit_answer room(const struct limit *l, uint64_t running, int64_t now_at,
                                int64_t horizon_ms)
{
    struct limit_answer a = {UINT64_MAX, LIMIT_OPEN, now_at};

    if (l->breaker && l->probed)
        return none(LIMIT_PROBED, INT64_MAX);
    if (l->running && running >= l->running)
        return none(LIMIT_RUNNING, INT64_MAX);
    if (l->running)
        a.may = l->running - running;
    if (l->breaker)
        a.may = 1;
    if (l->rate.count) {
        int64_t from_us = (now_at + l->lead_ms) * 1000;

        a.may = MIN(a.may, rate_may(&l->rate, l->next_us, from_us, from_us + horizon_ms * 1000));
        if (!a.may)
            return none(LIMIT_RATE, (rate_first(&l->rate, l->next_us, from_us) + 999) / 1000);
    }
    return a;
}

struct limit_answer limit_ask(const struct limit *l, uint64_t running, int64_t now_at,
                              int64_t horizon_ms)
{
    if (lasts(l->paused_until_at, now_at))
        return none(LIMIT_PAUSED, l->paused_until_at);
    if (lasts(l->held_until_at, now_at))
        return none(LIMIT_HELD, l->held_until_at);
    const int64_t from_at = now_at + l->lead_ms;
    if (l->hours && !hours_open(l->hours, now_at))
        return none(LIMIT_CLOSED, hours_next(l->hours, now_at));
    if (l->hours && !hours_open(l->hours, from_at))
        return none(LIMIT_CLOSED, hours_next(l->hours, from_at));
    if (l->hours && !hours_open(l->hours, from_at + horizon_ms)) /* no start after they close */
        horizon_ms = hours_next(l->hours, from_at) - from_at - 1;
    return room(l, running, now_at, horizon_ms);
}

int64_t limit_since(const struct limit *l, int64_t now_at)
{
    const struct limit_answer a = limit_ask(l, 0, now_at, 0);
    int64_t since_at = MAX(l->paused_until_at, l->held_until_at);

    if (l->breaker) /* one task at a time tries */
        return INT64_MAX;
    /* a rate that is not full refuses for moments; something else keeps them waiting */
    if (a.why != LIMIT_OPEN && (a.why != LIMIT_RATE || l->rate_full))
        return a.again_at == INT64_MAX && a.why != LIMIT_PAUSED ? INT64_MIN : INT64_MAX;
    if (l->hours)
        since_at = MAX(since_at, hours_since(l->hours, now_at));
    if (l->rate_full)
        since_at = MAX(since_at, rate_since(&l->rate, l->next_us, now_at * 1000) / 1000);
    return since_at;
}

uint32_t limit_join(uint32_t a, uint32_t b)
{
    return a && b ? MAX(a, b) : 0;
}

/* A list that is drawn each second shows no part of one. */
static void put_pause(struct buf *b, const struct limit *l, int64_t again_at, int64_t now_at)
{
    char text[WHEN_TEXT_SIZE];

    if (again_at == INT64_MAX)
        buf_str(b, "paused until resumed");
    else
        buf_printf(
            b, "paused for %s",
            when_format_rough(text, MAX((again_at - now_at) / WHEN_SECOND, 1) * WHEN_SECOND));
    if (l->reason)
        buf_printf(b, ": %s", l->reason);
}

static void put_why(struct buf *b, const char *what, const char *reason, int64_t again_at,
                    int64_t now_at)
{
    char text[WHEN_TEXT_SIZE];

    if (again_at == INT64_MAX)
        buf_str(b, "held until it can be read");
    else
        buf_printf(
            b, "%s %s", what,
            when_format_rough(text, MAX((again_at - now_at) / WHEN_SECOND, 1) * WHEN_SECOND));
    if (reason)
        buf_printf(b, ": %s", reason);
}

static void put_rate(struct buf *b, const struct limit *l, int64_t wait_ms)
{
    char text[WHEN_TEXT_SIZE];

    buf_str(b, "the rate of ");
    rate_put(b, &l->rate);
    buf_printf(b, " is used up: the next start is in %s", when_format_rough(text, wait_ms));
}

void limit_put(struct buf *b, const struct limit *l, const struct limit_answer *a, int64_t now_at)
{
    if (l->name && a->why != LIMIT_OPEN && a->why != LIMIT_PAUSED && a->why != LIMIT_LOCKED)
        buf_printf(b, "limit %s: ", l->name);
    switch (a->why) {
    case LIMIT_OPEN:
        break;
    case LIMIT_PAUSED:
        put_pause(b, l, a->again_at, now_at);
        break;
    case LIMIT_HELD:
        put_why(b, l->breaker ? "resting for" : "held for", l->hold_reason, a->again_at, now_at);
        break;
    case LIMIT_PROBED:
        buf_str(b, "one task tries whether the others may follow");
        break;
    case LIMIT_CLOSED:
        buf_str(b, "closed until ");
        hours_put_opening(b, l->hours, now_at);
        break;
    case LIMIT_RUNNING:
        buf_printf(b, "global_max_running %" PRIu32 " is full", l->running);
        break;
    case LIMIT_RATE:
        put_rate(b, l, a->again_at - now_at);
        break;
    case LIMIT_LOCKED:
        buf_str(b, LIMIT_LOCKED_TEXT);
        break;
    }
}
