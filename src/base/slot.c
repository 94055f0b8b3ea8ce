/*
 * slot.c - see slot.h. Invariant: the acts of a plan, and then its next slot, are in the order of
 * time, and each slot from the former next one on is in one of them.
 */
#include "base/slot.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define COUNT(names) (sizeof(names) / sizeof(names)[0])

const char *const slot_catch_up_names[] = {"skip", "latest", "all", NULL};
const char *const slot_overlap_names[] = {"skip", "one", "allow", "replace", NULL};
static const char *const kinds[] = {"cron", "every", "gap"};
static const char *const decisions[] = {
    [SLOT_RAN] = "ran",
    [SLOT_LATE] = "late",
    [SLOT_SKIPPED_OVERLAP] = "skipped-overlap",
    [SLOT_SKIPPED_MISSED] = "skipped-missed",
    [SLOT_SKIPPED_PAUSED] = "skipped-paused",
    [SLOT_REFUSED] = "refused",
    [SLOT_BY_HAND] = "by-hand",
};

static const char *name_of(const char *const names[], size_t count, int number)
{
    return number >= 0 && (size_t)number < count ? names[number] : "unknown";
}

const char *slot_catch_up_name(int number)
{
    return name_of(slot_catch_up_names, COUNT(slot_catch_up_names) - 1, number);
}

const char *slot_overlap_name(int number)
{
    return name_of(slot_overlap_names, COUNT(slot_overlap_names) - 1, number);
}

const char *slot_decision_name(int number)
{
    return name_of(decisions, COUNT(decisions), number);
}

const char *slot_kind_name(int number)
{
    return name_of(kinds, COUNT(kinds), number);
}

bool slot_runs(enum slot_decision decision)
{
    return decision == SLOT_RAN || decision == SLOT_LATE || decision == SLOT_BY_HAND;
}

void slot_put_key(struct buf *b, const char *name, int64_t slot_at)
{
    char text[WHEN_TEXT_SIZE];
    const size_t seconds = strlen("2026-11-23T07:00:00");

    when_format_utc(text, slot_at);
    if (!strcmp(text + seconds, ".000Z"))
        strcpy(text + seconds, "Z");
    buf_printf(b, "%s@%s", name, text);
}

const char *slot_in_key(const char *key, size_t *ret_name)
{
    const char *at = key ? strrchr(key, '@') : NULL;

    if (at)
        *ret_name = (size_t)(at - key);
    return at ? at + 1 : NULL;
}

int64_t slot_offset_ms(const char *name, int64_t spread_ms)
{
    return spread_ms > 0
               ? (int64_t)(text_hash(TEXT_HASH_INIT, name, strlen(name)) % (uint64_t)spread_ms)
               : 0;
}

/* ---- the decision ---- */

/* Slots that one call decides. More are missed at once only after months, or of seconds. */
#define SLOTS_MOST 100000
/* Over how long `all` spreads what it catches up: over a period, but not longer. */
#define CATCH_UP_OVER_MS WHEN_HOUR

struct deciding {
    const struct slot_ask *ask;
    struct slot_plan *plan;
    struct slot_run last;      /* as it is behind the acts so far */
    size_t missed, missed_all; /* slots of this call that nobody took: so far, and all */
    bool current, more;        /* others are due; some are left for another call */
};

static bool lives(const struct slot_run *r, int64_t at)
{
    return r->life == SLOT_RUNS ||
           (r->life == SLOT_WAITS && (r->until_at == TASK_TIME_NONE || r->until_at > at));
}

static struct slot_act *add(struct slot_plan *p, int64_t at, enum slot_decision decision)
{
    MEM_ROOM(p->acts, p->count, p->cap);
    p->acts[p->count] =
        (struct slot_act){.at = at, .slots = 1, .decision = decision, .expires_at = TASK_TIME_NONE};
    return &p->acts[p->count++];
}

static void skip(struct slot_plan *p, int64_t at, enum slot_decision decision)
{
    struct slot_act *before = p->count ? &p->acts[p->count - 1] : NULL;

    p->missed += decision != SLOT_SKIPPED_PAUSED;
    if (before && before->decision == decision)
        before->slots++;
    else
        add(p, at, decision);
}

static void run(struct deciding *d, int64_t at, int64_t next_at)
{
    const struct slot_ask *a = d->ask;
    struct slot_plan *p = d->plan;
    struct slot_act *act = add(p, at, a->now_at - at > SLOT_MISSED_MS ? SLOT_LATE : SLOT_RAN);

    act->missed = p->missed;
    act->due_at = at + a->offset_ms;
    if (next_at != TASK_TIME_NONE && next_at > a->now_at)
        act->expires_at = next_at + a->offset_ms;
    p->missed = 0;
    p->last_at = at;
    d->last = (struct slot_run){.life = SLOT_WAITS, .until_at = act->expires_at};
}

/* The n-th of those that `all` catches up together: they run whatever has become of the others. */
static void catch_up(struct deciding *d, int64_t at, size_t n, size_t of)
{
    run(d, at, TASK_TIME_NONE);
    if (n)
        d->plan->acts[d->plan->count - 1].due_at =
            d->ask->now_at + MIN(timetable_period_ms(d->ask->timetable, at), CATCH_UP_OVER_MS) *
                                 (int64_t)n / (int64_t)of;
}

static void run_unless_overlap(struct deciding *d, int64_t at, int64_t next_at)
{
    const bool still = lives(&d->last, at), replace = d->ask->overlap == SLOT_OVERLAP_REPLACE;
    const bool replaced = replace && next_at != TASK_TIME_NONE && next_at <= d->ask->now_at;

    if (still && replace && !replaced && d->plan->last_at == TASK_TIME_NONE) {
        d->plan->cancels = true;
    } else if (replaced || (still && d->ask->overlap != SLOT_OVERLAP_ALLOW &&
                            !(d->ask->overlap == SLOT_OVERLAP_ONE && d->last.life == SLOT_RUNS))) {
        skip(d->plan, at, SLOT_SKIPPED_OVERLAP);
        return;
    }
    run(d, at, next_at);
}

static int64_t within_ms(const struct slot_ask *a, int64_t at)
{
    return a->within_ms ? a->within_ms
           : a->catch_up == SLOT_CATCH_UP_LATEST
               ? MIN(timetable_period_ms(a->timetable, at), WHEN_DAY)
               : INT64_MAX;
}

static void decide_missed(struct deciding *d, int64_t at, int64_t next_at)
{
    const struct slot_ask *a = d->ask;
    const size_t left = d->missed_all - d->missed++, all = MIN(d->missed_all, SLOT_CATCH_UP_MOST);
    const bool wanted = a->catch_up == SLOT_CATCH_UP_ALL
                            ? left <= all
                            : a->catch_up == SLOT_CATCH_UP_LATEST && left == 1 && !d->current;

    /* a period takes some time to find, and there may be many of them */
    if (d->more || !wanted || a->now_at - at > within_ms(a, at))
        skip(d->plan, at, SLOT_SKIPPED_MISSED);
    else if (a->catch_up == SLOT_CATCH_UP_ALL)
        catch_up(d, at, all - left, all);
    else
        run_unless_overlap(d, at, next_at);
}

/* False: it is ahead, and left until its time. */
static bool decide_slot(struct deciding *d, int64_t at, int64_t next_at)
{
    const struct slot_ask *a = d->ask;
    const bool free = d->last.life == SLOT_NO_RUN || d->last.life == SLOT_ENDED ||
                      a->overlap == SLOT_OVERLAP_ALLOW;

    if (at > a->now_at && (a->paused || !free))
        return false;
    if (a->paused)
        skip(d->plan, at, SLOT_SKIPPED_PAUSED);
    else if (a->now_at - at > SLOT_MISSED_MS)
        decide_missed(d, at, next_at);
    else
        run_unless_overlap(d, at, next_at);
    return true;
}

/* Those that are missed, up to the most that are decided. */
static void count_missed(struct deciding *d)
{
    int64_t at = d->ask->next_at;

    for (size_t i = 0; i < SLOTS_MOST && at != TASK_TIME_NONE && at <= d->ask->now_at; i++) {
        d->current = d->ask->now_at - at <= SLOT_MISSED_MS;
        d->missed_all += !d->current;
        if (!timetable_next(d->ask->timetable, at, &at, NULL))
            at = TASK_TIME_NONE;
    }
    d->more = at != TASK_TIME_NONE && at <= d->ask->now_at;
}

static void decide_slots(struct deciding *d)
{
    struct slot_plan *p = d->plan;

    if (!d->ask->paused)
        count_missed(d);
    for (size_t i = 0; i < SLOTS_MOST && p->next_at != TASK_TIME_NONE &&
                       p->next_at <= d->ask->now_at + SLOT_AHEAD_MS;
         i++) {
        int64_t behind_at = TASK_TIME_NONE;

        if (!timetable_next(d->ask->timetable, p->next_at, &behind_at, NULL))
            behind_at = TASK_TIME_NONE;
        if (!decide_slot(d, p->next_at, behind_at))
            break;
        p->next_at = behind_at;
    }
}

/* As long as its last run lives, a gap is looked at again after a gap: the run cannot have ended so
 * early that this is too late. */
static void decide_gap(struct deciding *d)
{
    const struct slot_ask *a = d->ask;
    const int64_t gap_ms = timetable_period_ms(a->timetable, a->now_at);
    int64_t at = a->next_at;

    if (a->next_at > a->now_at + SLOT_AHEAD_MS)
        return;
    if (a->paused || lives(&a->last, a->now_at)) {
        d->plan->next_at = MAX(a->now_at, a->next_at) + gap_ms;
        return;
    }
    if (a->last.life == SLOT_ENDED)
        at = MAX(MIN(a->last.ended_at, a->now_at) + gap_ms, a->from_at);
    d->plan->next_at = at;
    if (a->to_at != TASK_TIME_NONE && at > a->to_at) {
        d->plan->next_at = TASK_TIME_NONE;
    } else if (at <= a->now_at + SLOT_AHEAD_MS) {
        run(d, at, TASK_TIME_NONE);
        d->plan->next_at = MAX(a->now_at, at) + gap_ms;
    }
}

void slot_decide(const struct slot_ask *a, struct slot_plan *ret)
{
    struct deciding d = {.ask = a, .plan = ret, .last = a->last};

    *ret =
        (struct slot_plan){.next_at = a->next_at, .last_at = TASK_TIME_NONE, .missed = a->missed};
    if (a->kind == TIMETABLE_GAP)
        decide_gap(&d);
    else
        decide_slots(&d);
}

void slot_plan_done(struct slot_plan *p)
{
    free(p->acts);
    *p = (struct slot_plan){0};
}
