/*
 * claim.c - looking what is due and taking it. Invariant: a tag is asked for no more than its handler and the slots can take soon,
 * and a tag that cannot be claimed (no handler, paused, at its limit, resting) costs the others no more than its line in the peek
 * and a claim that takes nothing.
 */
#include "poller/state.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/claim_store.h"
#include "store/peek_store.h"
#include "store/rows.h"

#include <inttypes.h>
#include <stdlib.h>

#define PEEK_DEAR_US 2000
#define PEEK_SHARE 500
#define PEEK_SHARE_FULL 4 /* where asking tags one by one is no way out, so that only news come between two peeks */
#define PEEK_LIMIT_MS 100 /* of the first peek, and the least; more after one that was given up */
#define PEEK_LIMIT_MOST_MS 2000
#define PEEK_RARE_US INT64_C(10000000)
#define NEWS_TURN_US INT64_C(1000000) /* ids are looked at again for so long: they are not committed in their order */
#define LOOK_GUESS_US 100             /* what it takes to ask one tag, before one was asked */
#define WOKEN_TAGS 2

static int64_t poll_us(const struct poller *p)
{
    return p->conf->dqd.poll_interval_ms * 1000;
}

/* The steady time from which on tasks of the tag are to be claimed, as far as is known. */
static int64_t due_us(const struct poller *p, const struct tag_state *t)
{
    if (t->more)
        return 0;
    if (t->handler < 0 || t->next_at == TASK_TIME_NONE || !p->clock.known)
        return NEVER_US;
    return dbclock_reached_us(&p->clock, t->next_at - tags_early_ms(p, t));
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What a peek costs beyond asking each tag that has a handler. Twice in a row: once is chance. */
static int64_t peek_more_us(const struct poller *p)
{
    int64_t look_us = p->look_cost_us ? p->look_cost_us : LOOK_GUESS_US;

    return smaller(p->peek_cost_us[0], p->peek_cost_us[1]) - look_us * (int64_t)p->handled_count;
}

/* Tags are asked one by one, from their floor on, where that is much cheaper than a peek. */
static bool asks_singly(const struct poller *p)
{
    return peek_more_us(p) >= PEEK_DEAR_US;
}

/* A peek takes long with very many tags, until the server's statistics catch up with a bulk insert, and while some session holds an
 * old snapshot, for it passes over all that was drained. Then it is done seldom. Between two of them the tags that have a handler
 * are asked one by one, where these are few, and what was inserted is looked at (news): the peek only finds what both have missed.
 */
static int64_t peek_every_us(const struct poller *p)
{
    int64_t more_us = peek_more_us(p), cost_us = smaller(p->peek_cost_us[0], p->peek_cost_us[1]);

    if (more_us < PEEK_DEAR_US)
        return most(poll_us(p), cost_us * PEEK_SHARE_FULL);
    return most(poll_us(p), smaller(more_us * PEEK_SHARE, PEEK_RARE_US));
}

static bool peeks_are_rare(const struct poller *p)
{
    return peek_every_us(p) > poll_us(p);
}

int64_t claim_next(const struct poller *p)
{
    int64_t next;

    if (p->phase != PHASE_RUN || p->runner_gone || p->recover)
        return NEVER_US;
    next = p->peek_us ? p->look_us + poll_us(p) : 0;
    for (size_t i = 0; i < p->handled_count; i++) {
        const struct tag_state *t = p->handled[i];
        int64_t at = due_us(p, t);

        if (t->look)
            return 0;
        if (at == NEVER_US)
            continue;
        at = most(at, most(t->hold_until_us, t->rest_until_us));
        if (at < next && tags_want(p, t) > 0)
            next = at;
    }
    return next;
}

/* It took too long. What is known of the tags still holds; only if nothing is, another one is made at once. */
static void peek_given_up(struct poller *p, int64_t limit_ms, int64_t cost_us)
{
    log_event(LOG_DEBUG, "a look at all tags took too long and was given up", "after_ms=%" PRId64, limit_ms);
    p->peek_cost_us[0] = p->peek_cost_us[1] = cost_us;
    p->peek_limit_ms = limit_ms < PEEK_LIMIT_MOST_MS ? 4 * limit_ms : 0;
    p->look_us = when_steady_us();
    p->peek_us = p->peeked ? p->look_us : 0;
}

/* A pass has nothing to lose: it waits. */
static int64_t peek_limit_ms(const struct poller *p)
{
    if (p->o->mode == POLLER_ONCE)
        return 0;
    return p->peek_cost_us[0] ? p->peek_limit_ms : PEEK_LIMIT_MS;
}

static int peek(struct poller *p, bool *ret_done, struct err *err)
{
    int64_t sent_us = when_steady_us(), limit_ms = peek_limit_ms(p), now_us;
    int rc = peek_store_all(p->db, limit_ms, &p->peek, err);

    now_us = when_steady_us();
    if (rc == ERR_TRANSIENT && limit_ms && now_us - sent_us >= limit_ms * 1000) {
        peek_given_up(p, limit_ms, now_us - sent_us);
        return 0;
    }
    if (rc < 0)
        return rc;
    if (p->peek.now_us)
        dbclock_sample(&p->clock, sent_us, now_us, p->peek.now_us);
    p->peek_cost_us[1] = p->peek_cost_us[0];
    p->peek_cost_us[0] = now_us - sent_us;
    p->peek_limit_ms = most(PEEK_LIMIT_MS, p->peek_cost_us[0] * 4 / 1000);
    p->peek_us = p->look_us = now_us;
    p->peeked = *ret_done = true;
    tags_take_peek(p, now_us);
    return 0;
}

/* What was inserted in the last second or two. */
static int news(struct poller *p, struct err *err)
{
    int64_t sent_us = when_steady_us();
    uint64_t id = p->news_from[1];
    int rc = peek_store_news(p->db, &id, &p->peek, err);

    if (rc < 0)
        return rc;
    p->news_us = when_steady_us();
    p->news_cost_us = p->news_us - sent_us;
    if (p->peek.now_us)
        dbclock_sample(&p->clock, sent_us, p->news_us, p->peek.now_us);
    if (p->news_us >= p->news_turn_us + NEWS_TURN_US) {
        p->news_turn_us = p->news_us;
        p->news_from[1] = p->news_from[0];
    }
    if (id > p->news_from[0])
        p->news_from[0] = id;
    tags_take_news(p, p->news_us);
    return 0;
}

static int look(struct poller *p, struct tag_state *t, struct err *err)
{
    int64_t sent_us = when_steady_us(), db_now_us = 0, next_at = TASK_TIME_NONE;
    int rc = peek_store_next(p->db, t->name, &t->floor, &db_now_us, &next_at, err);

    if (rc < 0)
        return rc;
    p->look_cost_us = when_steady_us() - sent_us;
    if (db_now_us)
        dbclock_sample(&p->clock, sent_us, sent_us + p->look_cost_us, db_now_us);
    tags_take_next(p, t, next_at);
    return 0;
}

/* Asks the tags that are to be asked: after a claim that found their end, and all of them when peeks are rare. */
static int look_at_tags(struct poller *p, struct err *err)
{
    int64_t now_us = when_steady_us();
    bool all = now_us >= p->look_us + poll_us(p);
    int rc = 0;

    if (all)
        p->look_us = now_us;
    all = all && asks_singly(p);
    for (size_t i = 0; rc == 0 && i < p->handled_count; i++) {
        struct tag_state *t = p->handled[i];

        if (t->look || (all && !t->more))
            rc = look(p, t, err);
    }
    return rc;
}

static bool started_before(const struct task_array *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].attempt > 1)
            return true;
    return false;
}

/* What the claim's outcome says about the next one. seen: without the rows that could not be changed; full: with them it found all
 * that it asked for. */
static void learn(struct poller *p, struct tag_state *t, bool full, size_t seen, const struct task_array *won)
{
    int64_t now_us = when_steady_us();
    bool had_more = t->more;

    t->full = seen == 0 && p->table->handlers->items[t->handler].global_max_running > 0;
    p->any_full |= t->full;
    t->more = full;
    t->wary = started_before(won);
    if (!t->more)
        t->next_at = TASK_TIME_NONE;
    if (seen == 0 && !had_more)
        t->hold_until_us = p->woken_runs == 2 ? 0 : now_us + poll_us(p); /* another poller's share, or the limit is reached */
    else if (seen > 0 && won->count == 0)
        t->hold_until_us = now_us + 1000 + (int64_t)(poller_random() % 4000); /* lost the race: step aside */
    else if (!t->more && p->o->mode == POLLER_ONCE)
        p->peek_us = 0; /* is there anything left? */
    else if (!t->more)
        t->look = true; /* when is the next one due? */
}

/* Claimed tasks whose lease was eaten up by a slow statement are not begun. */
static void take(struct poller *p, struct tag_state *t, struct task_array *won, int64_t sent_us)
{
    if (when_steady_us() - sent_us > p->conf->dqd.lease_ms * 1000 / 3) {
        log_event(LOG_WARN, "claim took too long, given back", "tag=%s tasks=%zu", log_quote(t->name), won->count);
        flight_release(p, won, "the claim took a third of the lease");
    } else if (t->handler < 0 || p->phase != PHASE_RUN) {
        flight_release(p, won, t->handler < 0 ? "no handler" : "dqd ends");
    } else {
        flight_take(p, t, won, sent_us);
    }
}

/* all: of every share, else of our own first. */
static int claim_tag(struct poller *p, struct tag_state *t, size_t want, bool all, size_t *ret_seen, struct err *err)
{
    const struct handler *h = &p->table->handlers->items[t->handler];
    struct task_array won = {0};
    struct claim_ask ask = {.tag = t->name,
                            .limit = want,
                            .early_ms = tags_early_ms(p, t),
                            .floor = t->floor,
                            .share = p->share,
                            .shares = all ? 1 : p->shares,
                            .steal_share =
                                p->shares > 1 ? (p->share + 1 + (unsigned)(poller_random() % (p->shares - 1))) % p->shares : 0,
                            .steal_far_end = poller_random() % 4 != 0,
                            .steal_after_ms = p->conf->dqd.steal_after_ms,
                            .max_attempts = retry_max_attempts(&h->retry),
                            .lease_ms = p->conf->dqd.lease_ms,
                            .global_limit = (uint32_t)h->global_max_running};
    struct row_faults faults = {0};
    uint64_t *aside;
    size_t seen = 0, lost = 0;
    int64_t sent_us = when_steady_us();
    int rc;

    ask.aside_count = aside_ids(&t->aside, sent_us, &aside);
    ask.aside = aside;
    ask.skip_locked = t->aside.count >= ASIDE_MANY;
    ask.careful = sent_us < t->careful_us;
    ask.without_bodies = sent_us < t->bare_us;
    *ret_seen = 0;
    rc = claim_store_claim(p->db, &p->owner, &ask, &won, &seen, &lost, &faults, err);
    free(aside);
    if (rc < 0) {
        row_faults_done(&faults);
        task_array_done(&won);
        if (!t->put_off_us && (rc == ERR_LOCKED || rc == ERR_TRANSIENT))
            t->put_off_us = sent_us;
        if (rc == ERR_LOCKED && t->handler >= 0 && ask.global_limit) {
            care_limit_locked(t, err);
            return 0;
        }
        if (!p->recover) /* of several, the first one's leases end first */
            p->claim_sent_us = sent_us;
        p->recover = true; /* its UPDATE may have been done, whatever came after it */
        return rc;
    }
    t->put_off_us = 0;
    care_limit_free(t);
    *ret_seen = seen - faults.count;
    for (size_t i = 0; i < won.count; i++)
        aside_forget(&t->aside, won.items[i].id);
    care_put_aside(t, &faults, when_steady_us());
    row_faults_done(&faults);
    learn(p, t, seen == want, *ret_seen, &won);
    if (won.lies)
        care_long_bodies(t, sent_us);
    if (ask.shares == 1 && won.count && won.count == seen &&
        !t->aside.count) /* all that was due before the last of them is taken */
        tags_set_floor(p, t, (struct claim_floor){won.items[won.count - 1].expected_at, won.items[won.count - 1].id});
    if (won.count || lost)
        log_event(LOG_DEBUG, "claimed", "tag=%s tasks=%zu lost=%zu", log_quote(t->name), won.count, lost);
    take(p, t, &won, sent_us);
    return 0;
}

/* One tag's share of a run. What a wake is about may be in the share of another host, which was not told: one is taken, unless
 * there is something of our own. More would be fought for by all that were woken with us. */
static int claim_due(struct poller *p, struct tag_state *t, size_t want, size_t *ret_seen, struct err *err)
{
    bool all = p->o->mode == POLLER_ONCE || p->shares <= 1;
    int rc = claim_tag(p, t, want, all, ret_seen, err);

    if (rc < 0 || *ret_seen > 0 || all || p->woken_runs == 0)
        return rc;
    t->hold_until_us = 0;
    return claim_tag(p, t, 1, true, ret_seen, err);
}

/* What was taken starts while we go on asking. That the runner is gone is for the tick to find. */
static void hand_over(struct poller *p)
{
    struct err err;
    int rc = runner_flush(p->link, &err);

    (void)rc;
}

static int claim_tags(struct poller *p, bool *ret_seen_any, struct err *err)
{
    int64_t now_us = when_steady_us();

    for (size_t i = 0; i < p->handled_count; i++) {
        size_t turn = (p->tag_turn + i) % p->handled_count, seen = 0, want;
        struct tag_state *t = p->handled[turn];
        int rc;

        if (!tags_claimable(t, now_us) || due_us(p, t) > now_us)
            continue;
        want = tags_want(p, t);
        if (want == 0)
            continue;
        rc = claim_due(p, t, want, &seen, err);
        if (rc == ERR_TRANSIENT) { /* rolled back for another one's sake; the other tags need not wait for us to step aside */
            t->hold_until_us = when_steady_us() + 1000 + (int64_t)(poller_random() % 20000);
            continue;
        }
        if (rc < 0) {
            p->tag_turn = (turn + 1) % p->handled_count; /* the others first, next time */
            return rc;
        }
        *ret_seen_any |= seen > 0;
    }
    if (p->handled_count)
        p->tag_turn = (p->tag_turn + 1) % p->handled_count;
    return 0;
}

/* Looks what is due: by a peek, or, while these are rare, by what is new. What is known to be due does not wait for a dear peek. */
static int find_due(struct poller *p, bool *ret_peeked, bool *ret_seen_any, struct err *err)
{
    int64_t now_us = when_steady_us();
    bool wanted = p->woken_runs != 2 && (p->peek_us == 0 || now_us >= p->peek_us + peek_every_us(p));
    int rc = 0;

    if (wanted && p->peek_cost_us[0] >= PEEK_DEAR_US)
        rc = claim_tags(p, ret_seen_any, err);
    if (rc == 0 && wanted)
        return peek(p, ret_peeked, err);
    if (rc == 0 && peeks_are_rare(p) && now_us >= p->news_us + poll_us(p))
        rc = news(p, err);
    return rc;
}

/* Whether something is due that somebody's lock or a deadlock has put off. A pass waits for it, for a lease at most. */
static bool puts_off(const struct poller *p)
{
    int64_t now_us = when_steady_us(), lease_us = p->conf->dqd.lease_ms * 1000;

    for (size_t i = 0; i < p->handled_count; i++) {
        const struct tag_state *t = p->handled[i];

        if (t->put_off_us && now_us - t->put_off_us < lease_us && due_us(p, t) <= now_us)
            return true;
    }
    return false;
}

int claim_run(struct poller *p, struct err *err)
{
    bool peeked = false, seen_any = false;
    int rc = find_due(p, &peeked, &seen_any, err);

    if (rc == 0)
        rc = claim_tags(p, &seen_any, err);
    if (p->woken_runs)
        p->woken_runs--;
    if (rc < 0)
        return rc;
    p->pass_empty = peeked && !seen_any && p->o->mode == POLLER_ONCE && !puts_off(p);
    if (seen_any)
        hand_over(p);
    return look_at_tags(p, err);
}

int64_t claim_recover_next(const struct poller *p)
{
    return p->recover ? 0 : NEVER_US;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Ids that carry our token and that we know of: in flight, or ended and not settled yet. Sorted. */
static uint64_t *known_ids(const struct poller *p, size_t *ret_count)
{
    size_t n = p->result_count, at = 0;
    uint64_t *ids;

    for (size_t i = 0; i < p->job_cap; i++)
        n += p->jobs[i] ? p->jobs[i]->count : 0;
    ids = mem_alloc((n + 1) * sizeof *ids);
    for (size_t i = 0; i < p->job_cap; i++)
        for (uint32_t k = 0; p->jobs[i] && k < p->jobs[i]->count; k++)
            ids[at++] = p->jobs[i]->flight[k].id;
    for (size_t i = 0; i < p->result_count; i++)
        ids[at++] = p->results[i].s.id;
    qsort(ids, at, sizeof *ids, by_value);
    *ret_count = at;
    return ids;
}

int claim_recover(struct poller *p, struct err *err)
{
    struct task_array found = {0};
    size_t n;
    uint64_t *known = known_ids(p, &n);
    int rc = claim_store_recover(p->db, &p->owner, known, n, &found, err);

    free(known);
    if (rc < 0)
        goto out;
    p->recover = false;
    if (found.count)
        log_event(LOG_NOTE, "tasks found that a claim took whose answer was lost", "tasks=%zu", found.count);
    for (size_t i = 0; i < found.count; i++) {
        struct task_array one = {0};
        struct tag_state *t = tags_get(p, found.items[i].tag);

        one.items = mem_alloc(sizeof *one.items);
        one.items[0] = found.items[i];
        one.count = one.cap = 1;
        task_init(&found.items[i]);
        take(p, t, &one, p->claim_sent_us);
    }
out:
    task_array_done(&found);
    return rc;
}

/* What is held back is asked for again, too: it may be what became due just now. Where there are few tags, they are asked for what
 * is due before the peek is made: a round trip less for what the wake is most likely about. */
int64_t claim_wake(struct poller *p)
{
    for (size_t i = 0; i < p->handled_count; i++)
        p->handled[i]->hold_until_us = 0;
    if (p->woken_runs == 1 && p->peek_us == 0) /* the peek of the last wake is still to come: it must not be put off for ever */
        return p->peek_cost_us[0];
    if (peeks_are_rare(p)) {
        p->woken_runs = 2; /* one that looks, one that takes */
        p->look_us = when_steady_us() - poll_us(p);
        p->news_us = 0;
        return p->news_cost_us + (asks_singly(p) ? p->look_cost_us * (int64_t)p->handled_count : 0);
    }
    p->peek_us = 0;
    p->woken_runs = p->handled_count && p->handled_count <= WOKEN_TAGS ? 2 : 1;
    for (size_t i = 0; p->woken_runs == 2 && i < p->handled_count; i++)
        p->handled[i]->next_at = 0;
    return p->peek_cost_us[0] * p->woken_runs;
}
