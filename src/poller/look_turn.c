/*
 * look_turn.c - see look_turn.h. Invariant: a tag that may be claimed waits for the others no
 * longer than they need to get their part; no weight keeps it waiting for ever.
 */
#include "poller/look_turn.h"

#include "conf/handlers.h"

#include <sys/param.h>

#define SLOT UINT64_C(1000000) /* at weight 1 */
/* A slot of such tasks would be free for too much of the time if none waited for it. */
#define SHORT_US INT64_C(20000)

static uint64_t part(const struct look_turn *w, const struct look_tag *t)
{
    return MAX(t->had, w->had);
}

void look_turn_add(struct look_turn *w, struct look_tag *const *tags, size_t count,
                   const struct look_tag *t)
{
    w->weighted = count && (w->weighted || t->weight != tags[0]->weight);
}

uint32_t look_turn_want(const struct look_turn *w, const struct look_tag *t, uint32_t slots,
                        uint32_t running)
{
    const bool ahead = !w->weighted || t->mean_us < SHORT_US || part(w, t) <= w->least;

    return look_tag_want(t, slots, look_turn_others(w, t, slots, running), ahead && !w->elsewhere);
}

struct look_tag *look_turn_next(struct look_turn *w, struct look_tag *const *tags, size_t count,
                                size_t *next, uint32_t slots, uint32_t running, look_turn_due *due,
                                const void *arg)
{
    struct look_tag *best = NULL;

    w->least = UINT64_MAX;
    for (size_t i = 0; i < count && w->weighted; i++)
        if (tags[i]->queued + tags[i]->running < tags[i]->max_running && due(arg, tags[i]))
            w->least = MIN(w->least, part(w, tags[i]));
    for (size_t i = w->weighted ? 0 : *next; i < count && (!best || w->weighted); i++) {
        struct look_tag *t = tags[(w->first + i) % count];

        *next = MAX(*next, i + 1);
        if (t->turn_stage != w->stage && (!best || part(w, t) < part(w, best)) && due(arg, t) &&
            look_turn_want(w, t, slots, running) > 0)
            best = t;
    }
    if (best) {
        w->last = *next;
        best->turn_stage = w->stage;
        w->had = part(w, best);
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
    look_turn_end(w, w->last && w->last < count ? w->last : 1);
}

/* Slots that were claimed in this round count, or each tag would claim the same ones. What has
 * waited for longer may be unable to start, and leaves its slots to others, unless weights decide:
 * who comes later would claim them, too. But a tag that runs nothing gets one slot of those that
 * are kept for such tags, which is what the runner starts, whoever waits for one. */
uint32_t look_turn_others(const struct look_turn *w, const struct look_tag *t, uint32_t slots,
                          uint32_t running)
{
    const uint32_t kept = (uint32_t)handlers_slots_kept((int)slots);
    running += w->elsewhere;
    const uint32_t taken =
        w->weighted ? w->taken - look_tag_taken(t) : running - t->running + w->claimed;

    if (t->queued || t->running || taken + kept < slots)
        return taken;
    return MAX(slots - 1, w->weighted ? running + w->firsts : taken);
}

static void move(struct look_turn *w, struct look_tag *t, uint32_t queued, uint32_t running,
                 uint32_t elsewhere)
{
    w->taken -= look_tag_taken(t);
    w->firsts -= t->queued && !t->running;
    w->elsewhere += elsewhere;
    t->elsewhere += elsewhere;
    t->queued += queued;
    t->running += running;
    w->firsts += t->queued && !t->running;
    w->taken += look_tag_taken(t);
}

void look_turn_count(struct look_turn *w, struct look_tag *t, int queued, int running)
{
    w->claimed -= MIN(w->claimed, (uint32_t)MAX(running, 0));
    move(w, t, (uint32_t)queued, (uint32_t)running, 0);
}

static uint64_t at_least(const struct look_elsewhere *e)
{
    const uint32_t batch = MAX(e->tag->batch, 1);

    return e->tasks / batch + (e->tasks % batch > 0);
}

void look_turn_elsewhere(struct look_turn *w, const struct look_elsewhere *e, size_t count,
                         uint64_t processes)
{
    for (size_t i = 0; i < count; i++)
        processes -= MIN(processes, at_least(&e[i]));
    for (size_t i = 0; i < count; i++) {
        uint32_t more = (uint32_t)MIN(e[i].tasks, at_least(&e[i]) + processes);

        more -= e[i].tag->elsewhere;
        move(w, e[i].tag, 0, more, more);
    }
}

void look_turn_took(struct look_turn *w, struct look_tag *t, size_t slots, uint32_t at_once)
{
    w->taken -= look_tag_taken(t);
    t->at_once = at_once;
    w->taken += look_tag_taken(t);
    w->claimed += (uint32_t)MIN(slots, at_once);
    t->had = part(w, t) + slots * SLOT / t->weight;
}
