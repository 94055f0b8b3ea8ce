/*
 * look_turn.c - see look_turn.h. Invariant: a tag that may be claimed waits for the others no
 * longer than they need to get their part; no weight keeps it waiting for ever.
 */
#include "poller/look_turn.h"

#include "conf/handlers.h"

#include <sys/param.h>

/* In a slot, a turn is a task, or the quick ones that are claimed ahead with it. */
#define TURN_US INT64_C(100000)
/* The runner starts what it can in less time, and on a busy host in a few times as much: by
 * weights, a tag that does not wait for it would take the slots of another one. */
#define START_US(w) ((w)->weighted ? 100000 : 20000)

static uint64_t part(const struct look_turn *w, const struct look_tag *t)
{
    return MAX(t->had, w->had);
}

/* What so many starts of it add to what it has had. */
static uint64_t cost(const struct look_tag *t, uint32_t starts)
{
    return starts * (uint64_t)MAX(t->mean_us, TURN_US) / t->weight;
}

void look_turn_add(struct look_turn *w, struct look_tag *const *tags, size_t count,
                   const struct look_tag *t)
{
    w->weighted = count && (w->weighted || t->weight != tags[0]->weight);
}

void look_turn_begin(struct look_turn *w, int64_t now_us)
{
    if (now_us < w->since_us + START_US(w))
        return;
    w->since_us = now_us;
    w->claimed = 0;
}

/* Those of the last quarter that no job has. */
static uint32_t kept(const struct look_turn *w, uint32_t slots)
{
    const uint32_t all = (uint32_t)handlers_slots_kept((int)slots);

    return all - MIN(all, w->kept);
}

/* The slots that other tags have. Slots that were claimed just now count, or each tag would claim
 * the same ones. What has waited for longer may be unable to start, and leaves its slots to
 * others. But a tag that runs nothing gets one slot of those that are kept for such tags, which is
 * what the runner starts. */
static uint32_t others(const struct look_turn *w, const struct look_tag *t, uint32_t slots,
                       uint32_t running)
{
    const uint32_t claimed = w->claimed - MIN(w->claimed, t->queued);
    const uint32_t taken = running + w->elsewhere - t->running + claimed;

    return t->queued || t->running || taken + kept(w, slots) < slots ? taken
                                                                     : MAX(slots - 1, taken);
}

/* What the runner starts of it. */
static uint32_t starts_of(const struct look_turn *w, const struct look_tag *t, uint32_t slots,
                          uint32_t running)
{
    const uint32_t taken = others(w, t, slots, running), gone = taken + kept(w, slots);

    return MIN(t->max_running, MAX(gone < slots ? slots - gone : 0, taken < slots));
}

/* One that has no job claims for the kept slots, too: what the runner does not start there, it
 * starts next. By weights, others may come first. */
uint32_t look_turn_want(const struct look_turn *w, const struct look_tag *t, uint32_t slots,
                        uint32_t running)
{
    const uint32_t taken = others(w, t, slots, running), quarter = kept(w, slots);
    const bool all = look_tag_is_idle(t) && (!w->weighted || taken + quarter >= slots);
    const uint32_t gone = taken + (all ? 0 : quarter);
    const uint32_t used = running + w->elsewhere + w->claimed + quarter;
    const uint32_t waiting = w->waiting - MIN(w->waiting, t->waits);

    return look_tag_want(t, slots - MIN(slots, gone), waiting && waiting + used >= slots);
}

int64_t look_turn_free_us(const struct look_turn *w)
{
    return w->claimed ? w->since_us + START_US(w) : INT64_MAX;
}

/* What look_turn_next asks of each tag. */
struct asks {
    const struct look_turn *w;
    uint32_t slots, running;
    look_turn_due *due;
    const void *arg;
};

static bool could_claim(const struct asks *a, const struct look_tag *t)
{
    return a->due(a->arg, t) && look_turn_want(a->w, t, a->slots, a->running) > 0;
}

static bool may_claim(const struct asks *a, const struct look_tag *t)
{
    return t->turn_stage != a->w->stage && could_claim(a, t);
}

/* Whether its turn is before that of o. The first tag under a limit may take all that this allows,
 * and which of them a stage meets first depends on what other tags do, maybe in time with the
 * limit. So these take turns of their own. */
static bool is_before(const struct look_turn *w, const struct look_tag *t, const struct look_tag *o)
{
    if (w->weighted && part(w, t) != part(w, o))
        return part(w, t) < part(w, o);
    return t->limit && t->limit == o->limit && t->turn < o->turn;
}

/* What is claimed in this place. If its tag was claimed in that of another one under its limit, one
 * of these is left. */
static struct look_tag *in_place(const struct asks *a, struct look_tag *const *tags, size_t count,
                                 size_t place)
{
    struct look_tag *t = tags[place], *best = may_claim(a, t) ? t : NULL;

    if (!t->limit || (!best && t->turn_stage != a->w->stage))
        return best;
    for (size_t i = (place + 1) % count; i != place; i = (i + 1) % count)
        if (tags[i]->limit == t->limit && (!best || is_before(a->w, tags[i], best)) &&
            may_claim(a, tags[i]))
            best = tags[i];
    return best;
}

struct look_tag *look_turn_next(struct look_turn *w, struct look_tag *const *tags, size_t count,
                                size_t *next, uint32_t slots, uint32_t running, look_turn_due *due,
                                const void *arg)
{
    const struct asks a = {w, slots, running, due, arg};
    struct look_tag *best = NULL;

    if (!*next)
        w->waiting = 0;
    for (size_t i = *next; i < count && !*next; i++) {
        tags[i]->waits =
            !tags[i]->queued && tags[i]->running < tags[i]->max_running && due(arg, tags[i]);
        w->waiting += tags[i]->waits;
    }
    for (size_t i = w->weighted ? 0 : *next; i < count && (!best || w->weighted); i++) {
        const size_t place = (w->first + i) % count;
        struct look_tag *t = tags[place];

        *next = MAX(*next, i + 1);
        if (!w->weighted)
            best = in_place(&a, tags, count, place);
        else if ((!best || is_before(w, t, best)) && could_claim(&a, t))
            best = t;
    }
    if (w->weighted && best && best->turn_stage == w->stage)
        best = NULL; /* a slot has become free since, which others would take from it */
    if (best) {
        w->last = *next;
        best->turn_stage = w->stage;
        w->had = MAX(w->had, part(w, best) - MIN(part(w, best), cost(best, 2)));
    }
    return best;
}

void look_turn_end(struct look_turn *w, size_t asked)
{
    w->first += asked;
    w->last = 0;
}

void look_turn_over(struct look_turn *w, size_t count)
{
    look_turn_end(w, w->last < count ? w->last : 1);
}

void look_turn_count(struct look_turn *w, struct look_tag *t, int queued, int running)
{
    w->claimed -= MIN(w->claimed, (uint32_t)MAX(-queued, 0));
    t->queued += (uint32_t)queued;
    t->running += (uint32_t)running;
    if (running) {
        w->kept -= t->kept;
        t->kept = false;
    }
}

void look_turn_started(struct look_turn *w, struct look_tag *t, uint32_t slots, uint32_t running)
{
    const bool uses =
        w->weighted && !t->running && running + w->elsewhere + kept(w, slots) >= slots;

    look_turn_count(w, t, -1, 1);
    w->kept += uses;
    t->kept = uses;
}

static uint64_t at_least(const struct look_elsewhere *e)
{
    const uint32_t batch = MAX(e->tag->batch, 1);

    return e->tasks / batch + (e->tasks % batch > 0);
}

void look_turn_elsewhere(struct look_turn *w, const struct look_elsewhere *e, size_t count,
                         uint64_t processes)
{
    uint64_t rest = processes, tasks = 0;

    for (size_t i = 0; i < count; i++) {
        rest -= MIN(rest, at_least(&e[i]));
        tasks += e[i].tasks;
    }
    processes = MIN(processes, tasks);
    w->elsewhere = (uint32_t)processes;
    for (size_t i = 0; i < count; i++) {
        uint32_t more = (uint32_t)MIN(MIN(e[i].tasks, processes), at_least(&e[i]) + rest);

        more -= e[i].tag->elsewhere;
        e[i].tag->elsewhere += more;
        e[i].tag->running += more;
    }
}

void look_turn_took(struct look_turn *w, struct look_tag *t, size_t claimed, bool refused,
                    uint32_t slots, uint32_t running)
{
    uint32_t starts = starts_of(w, t, slots, running);

    starts = MIN((uint32_t)claimed, starts - MIN(starts, t->running));
    w->claimed += starts;
    if (claimed > starts) { /* the runner has some of its jobs when it is its turn */
        w->waiting -= MIN(w->waiting, t->waits);
        t->waits = false;
    }
    t->had = part(w, t) + cost(t, starts);
    if (claimed || !refused)
        t->turn = ++w->turns;
}
