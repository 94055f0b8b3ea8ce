/*
 * look.c - see look.h. Invariant: a tag that cannot be claimed (paused, at its limit, resting)
 * costs the others no more than its line in the look at all tags, and a claim that takes nothing.
 * The cases are in test/data/looks.tbl.
 */
#include "poller/look.h"

#include "base/mem.h"
#include "base/when.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/param.h>

/* Ids are looked at again for this long, because they are not committed in their order. */
#define NEWS_TURN_US INT64_C(1000000)
/* A poller that lost a race, or whose claim was rolled back, steps aside for a random time: about
 * as long as the other one's claim takes. */
#define LOST_RACE_US 4000
#define DEADLOCK_US 20000
#define STEP_ASIDE_US 1000
/* After a wake-up, up to this many tags are claimed before the look at all of them: it costs a
 * statement each, and most often one of them is the right tag. */
#define WOKEN_TAGS 2
/* A tag with slow rows pauses for so many times as long as its claim took. */
#define PAUSE_PART 3
#define PAUSE_MOST_US INT64_C(30000000)

void look_init(struct look *l, const struct look_settings *s, const struct dbclock *clock)
{
    *l = (struct look){
        .set = *s, .clock = clock, .shares = 1, .stale = true, .pace = {.poll_us = s->poll_us[1]}};
}

void look_set(struct look *l, const struct look_settings *s)
{
    l->set = *s;
    l->pace.poll_us = MIN(MAX(l->pace.poll_us, s->poll_us[0]), s->poll_us[1]);
}

void look_free(struct look *l)
{
    free(l->tags);
    l->tags = NULL;
    l->tag_count = l->tag_cap = 0;
}

void look_forget_tags(struct look *l)
{
    l->tag_count = 0;
}

void look_add_tag(struct look *l, struct look_tag *t)
{
    MEM_ROOM(l->tags, l->tag_count, l->tag_cap);
    look_turn_add(&l->turn, l->tags, l->tag_count, t);
    l->tags[l->tag_count++] = t;
}

void look_set_shares(struct look *l, unsigned shares, int64_t write_us)
{
    l->shares = shares;
    l->write_us = write_us;
}

static uint32_t want(const struct look *l, const struct look_tag *t)
{
    return look_turn_want(&l->turn, t, l->set.slots, l->running);
}

/* --- when --- */

/* The steady time from which tasks of the tag are to be claimed, as far as is known. */
static int64_t due_us(const struct look *l, const struct look_tag *t)
{
    if (t->more)
        return 0;
    if (t->next_at == TASK_TIME_NONE || !l->clock->known)
        return NEVER_US;
    return dbclock_reached_us(l->clock, t->next_at - look_tag_early_ms(t, &l->pace, l->set.once));
}

static bool asks_singly(const struct look *l)
{
    return look_pace_asks_singly(&l->pace, l->tag_count);
}

static int64_t all_every_us(const struct look *l)
{
    return look_pace_every_us(&l->pace, l->tag_count, l->pace.poll_us);
}

static bool all_is_rare(const struct look *l)
{
    return all_every_us(l) > l->pace.poll_us;
}

int64_t look_when(const struct look *l)
{
    int64_t next = l->stale ? 0 : l->polled_us + l->pace.poll_us;

    for (size_t i = 0; i < l->tag_count; i++) {
        const struct look_tag *t = l->tags[i];
        int64_t at = due_us(l, t);

        if (t->ask)
            return 0;
        if (at == NEVER_US)
            continue;
        at = MAX(at, look_tag_held_us(t));
        if (at < next)
            next = want(l, t) > 0 ? at : MIN(next, MAX(at, look_turn_free_us(&l->turn)));
    }
    return next;
}

/* --- the steps of a round --- */

static void enter(struct look *l, enum look_stage stage)
{
    l->stage = stage;
    l->stage_us = -1;
    l->next = 0;
    l->turn.stage++;
    l->again = false;
}

/* A dear look comes after the claims of tasks known to be due, unless one of these claims fails: it
 * may fail every time, and due tasks of other tags would never be seen. */
static void begin_round(struct look *l, int64_t now_us)
{
    bool told = l->stale || l->wake != LOOK_NOT_WOKEN;

    for (size_t i = 0; i < l->tag_count; i++)
        l->tags[i]->expected = told || due_us(l, l->tags[i]) <= now_us;
    l->all_due = l->wake != LOOK_WOKEN && (l->stale || now_us >= l->all_us + all_every_us(l));
    l->saw = l->found = false;
    look_turn_begin(&l->turn, now_us);
    enter(l, l->all_due && look_pace_is_dear(&l->pace) && !l->claim_failed ? LOOK_CLAIM_KNOWN
                                                                           : LOOK_FIND);
}

/* Finds due tasks by a look at all tags, or, while these are rare, among new tasks. */
static bool next_find(const struct look *l, struct look_step *s)
{
    if (l->all_due) /* a pass has nothing to lose: it waits */
        *s = (struct look_step){.what = LOOK_AT_ALL,
                                .limit_ms = l->set.once ? 0 : look_pace_limit_ms(&l->pace)};
    else if (all_is_rare(l) && l->stage_us >= l->news_us + l->pace.poll_us)
        *s = (struct look_step){.what = LOOK_AT_NEWS, .above_id = l->news_ids[1]};
    else
        return false;
    return true;
}

/* The claims that answer a wake-up come before a look at all tags. They need not find out when the
 * next task is due, which would cost the start of the task a quarter of a millisecond. */
static bool look_follows(const struct look *l)
{
    return l->wake == LOOK_WOKEN && l->stale;
}

static bool claim_step(struct look *l, struct look_tag *t, size_t count, uint32_t processes,
                       bool all, struct look_step *s)
{
    l->tag = t;
    l->wanted = count;
    l->processes = processes;
    l->all = all;
    *s = (struct look_step){.what = LOOK_CLAIM,
                            .tag = t,
                            .count = count,
                            .processes = processes,
                            .all_shares = all,
                            .next = !t->more && !l->set.once && !look_follows(l)};
    return true;
}

static bool is_due(const void *arg, const struct look_tag *t)
{
    const struct look *l = arg;

    return l->stage_us >= look_tag_held_us(t) && due_us(l, t) <= l->stage_us;
}

static bool next_claim(struct look *l, struct look_step *s)
{
    if (l->again) {
        l->again = false;
        return claim_step(l, l->tag, 1, 1, true, s);
    }
    struct look_tag *t = look_turn_next(&l->turn, l->tags, l->tag_count, &l->next, l->set.slots,
                                        l->running, is_due, l);
    if (t)
        return claim_step(l, t, look_tag_tasks(t, want(l, t), l->set.claim_batch), want(l, t),
                          l->set.once || l->shares <= 1, s);
    look_turn_over(&l->turn, l->tag_count);
    return false;
}

/* Asks tags whose last due task was claimed, and all tags if looking at them together is rare. */
static bool next_ask(struct look *l, struct look_step *s)
{
    while (l->next < l->tag_count) {
        struct look_tag *t = l->tags[l->next++];

        if (t->ask || (l->ask_all && !t->more)) {
            *s = (struct look_step){.what = LOOK_AT_TAG, .tag = t};
            return true;
        }
    }
    return false;
}

/* What a pass waits for: due tasks put off by a lock, for a lease; a batch that starts soon. */
static bool puts_off(const struct look *l, int64_t now_us)
{
    for (size_t i = 0; i < l->tag_count; i++) {
        const struct look_tag *t = l->tags[i];

        if (look_tag_starts_soon(t, now_us) ||
            (t->put_off_us && now_us - t->put_off_us < l->set.lease_us && due_us(l, t) <= now_us))
            return true;
    }
    return false;
}

static void next_wake(struct look *l)
{
    l->wake = l->wake == LOOK_WOKEN ? LOOK_WOKEN_LAST : LOOK_NOT_WOKEN;
}

static void polled(struct look *l, int64_t now_us)
{
    l->polled_us = now_us;
    look_pace_polled(&l->pace, l->set.poll_us, now_us);
}

static void begin_asking(struct look *l, int64_t now_us)
{
    next_wake(l);
    l->empty = l->set.once && l->saw && !l->found && !puts_off(l, now_us);
    l->ask_all = now_us >= l->polled_us + l->pace.poll_us;
    if (l->ask_all)
        polled(l, now_us);
    l->ask_all &= asks_singly(l);
    enter(l, LOOK_ASK);
}

struct look_step look_next(struct look *l, int64_t now_us)
{
    struct look_step s = {.what = LOOK_END};

    if (l->stage == LOOK_IDLE)
        begin_round(l, now_us);
    for (;;) {
        if (l->stage_us < 0)
            l->stage_us = now_us;
        if (l->stage == LOOK_CLAIM_KNOWN) {
            if (next_claim(l, &s))
                return s;
            enter(l, LOOK_FIND);
        } else if (l->stage == LOOK_FIND) {
            bool is_step = next_find(l, &s);
            enter(l, LOOK_CLAIM_FOUND);
            if (is_step)
                return s;
        } else if (l->stage == LOOK_CLAIM_FOUND) {
            if (next_claim(l, &s))
                return s;
            begin_asking(l, now_us);
        } else {
            if (!next_ask(l, &s))
                l->stage = LOOK_IDLE;
            return s;
        }
    }
}

void look_end_round(struct look *l)
{
    if (l->stage == LOOK_CLAIM_KNOWN || l->stage == LOOK_CLAIM_FOUND)
        look_turn_end(&l->turn, l->next);
    if (l->stage != LOOK_ASK)
        next_wake(l);
    l->stage = LOOK_IDLE;
}

/* --- what the steps brought --- */

void look_saw_all(struct look *l, int64_t sent_us, int64_t now_us)
{
    look_pace_saw_all(&l->pace, now_us - sent_us);
    l->all_us = now_us;
    polled(l, now_us);
    l->stale = false;
    l->seen_all = l->saw = true;
}

/* Earlier looks still hold. If there was none, another one is made at once. */
bool look_gave_up(struct look *l, int64_t limit, int64_t sent_us, int64_t now_us)
{
    if (!limit || now_us - sent_us < limit * 1000)
        return false;
    look_pace_gave_up(&l->pace, limit, now_us - sent_us);
    l->all_us = now_us;
    polled(l, now_us);
    l->stale = !l->seen_all;
    return true;
}

int64_t look_at(const struct look *l, int64_t now_us)
{
    return l->clock->known ? dbclock_at(l->clock, now_us) : 0;
}

void look_saw_news(struct look *l, uint64_t greatest_id, int64_t sent_us, int64_t now_us)
{
    l->news_us = now_us;
    look_pace_polled(&l->pace, l->set.poll_us, now_us);
    l->pace.news_cost_us = now_us - sent_us;
    if (now_us >= l->news_turn_us + NEWS_TURN_US) {
        l->news_turn_us = now_us;
        l->news_ids[1] = l->news_ids[0];
    }
    if (greatest_id > l->news_ids[0])
        l->news_ids[0] = greatest_id;
}

void look_came_back(struct look *l)
{
    l->news_ids[0] = l->news_ids[1] = 0;
}

void look_saw_tag(struct look *l, struct look_tag *t, const int64_t next_at[TASK_LEVELS],
                  int64_t sent_us, int64_t now_us)
{
    assert(sent_us <= now_us);
    l->pace.tag_cost_us = now_us - sent_us;
    look_tag_saw_none(t, look_at(l, now_us));
    for (int level = 0; level < TASK_LEVELS; level++)
        if (next_at[level] != TASK_TIME_NONE)
            look_tag_saw(t, (enum task_level)level, next_at[level], look_at(l, now_us));
}

/* Draws conclusions for the next claim. If this one brought nothing although a task was due, that
 * task is in another poller's share, or the tag is paused or full, and another claim would bring
 * nothing either: the tag is held for a poll, but not beyond the next task that we may take. */
static void learn(struct look *l, struct look_tag *t, const struct look_claim *c, int64_t now_us)
{
    size_t seen = c->seen - c->bad;
    bool had_more = t->more;
    int64_t way_us = look_tag_give_way_ms(t, c->turn_ms, c->won && c->left_over, now_us) * 1000;

    t->hold.because = c->held;
    t->hold.alone = c->alone;
    t->hold.won = c->won > 0;
    t->hold.vain = seen || had_more ? 0 : t->hold.vain + 1;
    l->any_full |= c->held == LIMIT_RUNNING;
    t->more = c->seen == l->wanted || c->left;
    if (!c->again) /* it leaves all out */
        look_tag_passed(t, c->won_of, c->drained);
    t->fit = c->left ? 2 * (uint32_t)c->won / l->processes + 1 : 0;
    t->wary = c->started_before;
    t->next_at = c->next_known ? c->next_at : TASK_TIME_NONE;
    t->paced = c->paced;
    t->more |= c->again || (c->limit_at && c->held); /* likely */
    if (c->again)
        t->hold.until_us = 0;
    else if (c->limit_at && c->held)
        look_tag_hold(l->tags, l->set.once ? 0 : l->tag_count, t,
                      dbclock_reached_us(l->clock, MIN(c->limit_at, WHEN_AT_MAX)) + way_us, c->won,
                      l->set.hold_us, now_us);
    else if (seen == 0 && (!had_more || c->held))
        t->hold.until_us = l->wake == LOOK_WOKEN ? 0 : MIN(now_us + l->set.hold_us, due_us(l, t));
    else if (seen > 0 && c->won == 0)
        t->hold.until_us = now_us + STEP_ASIDE_US + (int64_t)(c->random % LOST_RACE_US);
    else if (!t->more && l->set.once)
        l->stale = true; /* is there anything left? */
    else if (!t->more)
        t->ask = !c->next_known && !look_follows(l);
}

/* Whether rows of another tag were changed quickly meanwhile: the server is not slow. */
static bool others_are_quick(const struct look *l, const struct look_tag *t)
{
    for (size_t i = 0; i < l->tag_count; i++) {
        const struct look_tag *o = l->tags[i];

        if (o != t && o->claims.times + o->results.times == 0 &&
            MAX(o->claims.at_us, o->results.at_us) > t->slow_us)
            return true;
    }
    return false;
}

/* A tag whose rows take long, time and again, leaves most of the time to others, but in a pass. */
void look_changed(struct look *l, struct look_tag *t, struct look_cost *c, size_t rows,
                  int64_t took_us, int64_t now_us)
{
    if (c == &t->results) {
        look_pace_took(&l->pace.result_us, rows, took_us);
        look_tag_leave(l->tags, l->set.once ? 0 : l->tag_count, t, l->set.hold_us, now_us);
    }
    if (look_tag_changed(t, c, rows, took_us - (c == &t->results ? 3 : 1) * l->write_us, now_us) &&
        !l->set.once && others_are_quick(l, t))
        t->pause_until_us = now_us + MIN(PAUSE_PART * took_us, PAUSE_MOST_US);
}

/* A wake-up may be about a task in the share of another host, which was not woken: one such task is
 * taken, unless there are own ones. All pollers woken with us would compete for more. */
void look_claimed(struct look *l, struct look_tag *t, const struct look_claim *c, int64_t now_us)
{
    l->claim_failed = false;
    t->put_off_us = 0;
    look_turn_took(&l->turn, t, MIN((c->won + t->batch - 1) / t->batch, l->processes),
                   c->held != LIMIT_OPEN, l->set.slots, l->running);
    look_pace_took(&l->pace.claim_us, c->seen, c->cost_us + now_us - c->answered_us);
    if (c->held == LIMIT_RATE)
        look_pace_rated(&l->pace, c->took_us, 8 * l->running > 5 * l->set.slots, now_us);
    if (c->won && !t->expected)
        look_pace_surprised(&l->pace, l->set.poll_us, now_us);
    if (c->next_known) /* a tag that was slow to answer once is not asked again to find out */
        l->pace.tag_cost_us = MIN(l->pace.tag_cost_us, c->cost_us);
    if (!c->bad)
        look_changed(l, t, &t->claims, c->seen - c->left,
                     now_us - c->answered_us - c->more_writes * l->write_us, now_us);
    learn(l, t, c, now_us);
    if (l->all && c->won && c->won == c->seen &&
        !c->some_aside) /* all that was due is taken, or all before the last of each level */
        look_tag_took_all(t, c->last, c->next_known ? c->next_at : TASK_TIME_NONE, c->next_known,
                          look_at(l, now_us));
    if (c->seen > c->bad || c->again) {
        l->found = true;
    } else if (!l->all && l->wake != LOOK_NOT_WOKEN) {
        t->hold.until_us = 0;
        l->again = true;
    }
}

bool look_claim_failed(struct look *l, struct look_tag *t, enum look_failure why, int64_t sent_us,
                       int64_t now_us, uint64_t random)
{
    if (!t->put_off_us && why != LOOK_REFUSED)
        t->put_off_us = sent_us;
    /* another claim went on in its place; the other tags need not wait while we step aside */
    if (why == LOOK_DEADLOCK) {
        t->hold.until_us = now_us + STEP_ASIDE_US + (int64_t)(random % DEADLOCK_US);
        return true;
    }
    if (why == LOOK_LIMIT_LOCKED) {
        look_tag_limit_locked(t, now_us, random);
        return true;
    }
    if (why == LOOK_REFUSED) /* it may have taken longer than read_timeout */
        look_changed(l, t, &t->claims, l->wanted, now_us - sent_us, now_us);
    look_turn_took(&l->turn, t, 0, false, l->set.slots, l->running); /* it may fail every time */
    l->claim_failed = true;
    look_end_round(l);
    return false;
}

/* --- what happens between rounds --- */

/* Tasks of ours have ended: tags at their limit are asked again at once. */
static void make_room(struct look *l)
{
    for (size_t i = 0; l->any_full && i < l->tag_count; i++) {
        struct look_tag *t = l->tags[i];

        if (t->hold.because == LIMIT_RUNNING) {
            t->hold = (struct look_hold){.because = LIMIT_OPEN};
            t->ask = !t->more && t->next_at == TASK_TIME_NONE;
        }
    }
    l->any_full = false;
}

void look_settled(struct look *l, bool back, bool idle)
{
    make_room(l);
    if (l->set.once && (back || idle)) { /* due again at once, or added by the last handler */
        l->empty = false;
        l->stale = true;
    }
}

void look_reaped(struct look *l)
{
    l->empty = false;
    l->stale = true;
}

void look_limits_changed(struct look *l)
{
    look_tag_lift(l->tags, l->tag_count, true);
}

/* Tags that are held back are asked again, too: the wake-up may be about one of them. */
int64_t look_woken(struct look *l, int64_t now_us)
{
    look_tag_lift(l->tags, l->tag_count, false);
    if (l->wake == LOOK_WOKEN_LAST && l->stale) /* the look for the last one must not be put off */
        return look_pace_woken(&l->pace, now_us, l->pace.all_cost_us[0]);
    if (all_is_rare(l)) { /* one round that asks, one that takes */
        l->wake = LOOK_WOKEN;
        l->polled_us = now_us - l->pace.poll_us;
        l->news_us = 0;
        return look_pace_woken(
            &l->pace, now_us,
            l->pace.news_cost_us +
                (asks_singly(l) ? l->pace.tag_cost_us * (int64_t)l->tag_count : 0));
    }
    l->stale = true;
    if (l->tag_count == 0 || l->tag_count > WOKEN_TAGS) {
        l->wake = LOOK_WOKEN_LAST;
        return look_pace_woken(&l->pace, now_us, l->pace.all_cost_us[0]);
    }
    /* a claim of each tag first: a round trip less for the task that the wake-up is about */
    l->wake = LOOK_WOKEN;
    for (size_t i = 0; i < l->tag_count; i++)
        l->tags[i]->next_at = 0;
    return look_pace_woken(&l->pace, now_us, 2 * l->pace.all_cost_us[0]);
}

uint32_t look_running(const struct look *l)
{
    return l->running;
}

void look_job_queued(struct look *l, struct look_tag *t)
{
    look_turn_count(&l->turn, t, 1, 0);
}

void look_job_started(struct look *l, struct look_tag *t)
{
    look_turn_started(&l->turn, t, l->set.slots, l->running++);
}

void look_job_gone(struct look *l, struct look_tag *t, bool started)
{
    look_turn_count(&l->turn, t, started ? 0 : -1, started ? -1 : 0);
    l->running -= started;
}

bool look_is_empty(const struct look *l)
{
    return l->empty;
}
