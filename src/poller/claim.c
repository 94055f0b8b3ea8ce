/*
 * claim.c - asks the database what is due, and takes it, as look.c says. Invariant: what a claim
 * may have taken is either handed on or looked for again (claim_recover).
 */
#include "poller/claim.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "poller/care.h"
#include "poller/state.h"
#include "store/claim_store.h"
#include "store/peek_store.h"
#include "store/rows.h"

#include <inttypes.h>
#include <stdlib.h>

int64_t claim_next(const struct poller *p)
{
    return p->phase != PHASE_RUN || p->runner_gone || p->claims.recover ? NEVER_US
                                                                        : look_when(&p->look);
}

static int look_at_all(struct poller *p, int64_t limit_ms, struct err *err)
{
    int64_t sent_us = when_steady_us(), now_us;
    int rc = peek_store_all(p->db, limit_ms, &p->claims.peek, err);

    now_us = when_steady_us();
    if (rc == ERR_TRANSIENT && look_gave_up(&p->look, limit_ms, sent_us, now_us)) {
        log_event(LOG_DEBUG, "a look at all tags took too long and was given up",
                  "after_ms=%" PRId64, limit_ms);
        return 0;
    }
    if (rc < 0)
        return rc;
    if (p->claims.peek.now_us)
        dbclock_sample(&p->clock, sent_us, now_us, p->claims.peek.now_us);
    look_saw_all(&p->look, sent_us, now_us);
    tags_take_all(p, now_us);
    return 0;
}

static int look_at_news(struct poller *p, uint64_t id, struct err *err)
{
    int64_t sent_us = when_steady_us(), now_us;
    int rc = peek_store_news(p->db, &id, &p->claims.peek, err);

    if (rc < 0)
        return rc;
    now_us = when_steady_us();
    if (p->claims.peek.now_us)
        dbclock_sample(&p->clock, sent_us, now_us, p->claims.peek.now_us);
    look_saw_news(&p->look, id, sent_us, now_us);
    tags_take_news(p, now_us);
    return 0;
}

static int look_at_tag(struct poller *p, struct tag_state *t, struct err *err)
{
    int64_t sent_us = when_steady_us(), now_us, db_now_us = 0, next_at = TASK_TIME_NONE;
    int rc = peek_store_next(p->db, t->name, &t->look.floor, &db_now_us, &next_at, err);

    if (rc < 0)
        return rc;
    now_us = when_steady_us();
    if (db_now_us)
        dbclock_sample(&p->clock, sent_us, now_us, db_now_us);
    look_saw_tag(&p->look, &t->look, next_at, sent_us, now_us);
    return 0;
}

static bool started_before(const struct task_array *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].attempt > 1)
            return true;
    return false;
}

/* Claimed tasks whose lease was eaten up by a slow statement are not begun. */
static void take(struct poller *p, struct tag_state *t, struct task_array *won, int64_t sent_us)
{
    if (when_steady_us() - sent_us > p->conf->dqd.lease_ms * 1000 / 3) {
        log_event(LOG_WARN, "claim took too long, given back", "tag=%s tasks=%zu",
                  log_quote(t->name), won->count);
        flight_release(p, won, "the claim took a third of the lease");
    } else if (t->handler < 0 || p->phase != PHASE_RUN) {
        flight_release(p, won, t->handler < 0 ? "no handler" : "dqd ends");
    } else {
        flight_take(p, t, won, sent_us);
    }
}

/* Its UPDATE may have been done, whatever came after it. Returns 0 if the round goes on. */
static int claim_failed(struct poller *p, struct tag_state *t, int rc, int64_t sent_us,
                        struct err *err)
{
    bool limit = rc == ERR_LOCKED && t->look.limited;
    enum look_failure why = limit                 ? LOOK_LIMIT_LOCKED
                            : rc == ERR_TRANSIENT ? LOOK_DEADLOCK
                            : rc == ERR_LOCKED    ? LOOK_LOCKED
                                                  : LOOK_REFUSED;

    if (limit) {
        care_limit_locked(t, err);
    } else {
        if (!p->claims.recover) /* of several, the first one's leases end first */
            p->claims.sent_us = sent_us;
        p->claims.recover = true;
    }
    return look_claim_failed(&p->look, &t->look, why, sent_us, when_steady_us(), poller_random())
               ? 0
               : rc;
}

static void claim_worked(struct poller *p, struct tag_state *t, struct task_array *won, size_t seen,
                         const struct rows_faults *faults, int64_t sent_us)
{
    struct look_claim c = {.seen = seen,
                           .bad = faults->count,
                           .won = won->count,
                           .started_before = started_before(won),
                           .random = poller_random()};

    for (size_t i = 0; i < won->count; i++)
        aside_forget(&t->aside, won->items[i].id);
    care_limit_free(t);
    care_put_aside(t, faults, when_steady_us());
    if (won->lies)
        care_long_bodies(t, sent_us);
    c.some_aside = t->aside.count > 0;
    if (won->count)
        c.last = (struct claim_floor){won->items[won->count - 1].expected_at,
                                      won->items[won->count - 1].id};
    look_claimed(&p->look, &t->look, &c, when_steady_us());
}

static int claim(struct poller *p, const struct look_step *s, struct err *err)
{
    struct tag_state *t = tags_of(s->tag);
    const struct handler *h = &p->table->handlers->items[t->handler];
    struct task_array won = {0};
    struct claim_ask ask = {
        .tag = t->name,
        .limit = s->count,
        .early_ms = look_tag_early_ms(s->tag, p->o->mode == POLLER_ONCE),
        .floor = s->tag->floor,
        .share = p->registry.share,
        .shares = s->all_shares ? 1 : p->registry.shares,
        .steal_share =
            p->registry.shares > 1
                ? (p->registry.share + 1 + (unsigned)(poller_random() % (p->registry.shares - 1))) %
                      p->registry.shares
                : 0,
        .steal_far_end = poller_random() % 4 != 0,
        .steal_after_ms = p->conf->dqd.steal_after_ms,
        .max_attempts = retry_max_attempts(&h->retry),
        .lease_ms = p->conf->dqd.lease_ms,
        .global_limit = (uint32_t)h->global_max_running};
    struct rows_faults faults = {0};
    uint64_t *aside;
    size_t seen = 0, lost = 0;
    int64_t sent_us = when_steady_us();
    int rc;

    ask.aside_count = aside_ids(&t->aside, sent_us, &aside);
    ask.aside = aside;
    ask.skip_locked = t->aside.count >= ASIDE_MANY;
    ask.careful = sent_us < t->careful_us;
    ask.without_bodies = sent_us < t->bare_us;
    rc = claim_store_claim(p->db, &p->owner, &ask, &won, &seen, &lost, &faults, err);
    free(aside);
    if (rc < 0) {
        rc = claim_failed(p, t, rc, sent_us, err);
    } else {
        claim_worked(p, t, &won, seen, &faults, sent_us);
        if (won.count || lost)
            log_event(LOG_DEBUG, "claimed", "tag=%s tasks=%zu lost=%zu", log_quote(t->name),
                      won.count, lost);
        take(p, t, &won, sent_us);
    }
    rows_faults_done(&faults);
    task_array_done(&won);
    return rc;
}

/* What was taken starts while we go on asking. That the runner is gone is for the tick to find. */
static void hand_over(struct poller *p)
{
    struct err err;
    int rc = link_flush(p->link, &err);

    (void)rc;
}

static int do_step(struct poller *p, const struct look_step *s, struct err *err)
{
    switch (s->what) {
    case LOOK_AT_ALL:
        return look_at_all(p, s->limit_ms, err);
    case LOOK_AT_NEWS:
        return look_at_news(p, s->above_id, err);
    case LOOK_AT_TAG:
        return look_at_tag(p, tags_of(s->tag), err);
    case LOOK_CLAIM:
        return claim(p, s, err);
    case LOOK_END:
        break;
    }
    return 0;
}

int claim_run(struct poller *p, struct err *err)
{
    enum look_what last = LOOK_END;

    for (;;) {
        struct look_step s = look_next(&p->look, when_steady_us());
        int rc;

        if (last == LOOK_CLAIM && s.what != LOOK_CLAIM)
            hand_over(p);
        if (s.what == LOOK_END)
            return 0;
        rc = do_step(p, &s, err);
        if (rc < 0) {
            if (s.what != LOOK_CLAIM)
                look_failed(&p->look);
            return rc;
        }
        last = s.what;
    }
}

int64_t claim_recover_next(const struct poller *p)
{
    return p->claims.recover ? 0 : NEVER_US;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Ids that carry our token and that we know of: in flight, or ended and not settled yet. Sorted. */
static uint64_t *known_ids(const struct poller *p, size_t *ret_count)
{
    size_t n = p->results.count, at = 0;
    uint64_t *ids;

    for (size_t i = 0; i < p->flight.cap; i++)
        n += p->flight.jobs[i] ? p->flight.jobs[i]->count : 0;
    ids = mem_alloc((n + 1) * sizeof *ids);
    for (size_t i = 0; i < p->flight.cap; i++)
        for (uint32_t k = 0; p->flight.jobs[i] && k < p->flight.jobs[i]->count; k++)
            ids[at++] = p->flight.jobs[i]->flight[k].id;
    for (size_t i = 0; i < p->results.count; i++)
        ids[at++] = p->results.items[i].s.id;
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
    p->claims.recover = false;
    if (found.count)
        log_event(LOG_NOTE, "tasks found that a claim took whose answer was lost", "tasks=%zu",
                  found.count);
    for (size_t i = 0; i < found.count; i++) {
        struct task_array one = {0};
        struct tag_state *t = tags_named(p, found.items[i].tag);

        one.items = mem_alloc(sizeof *one.items);
        one.items[0] = found.items[i];
        one.count = one.cap = 1;
        task_init(&found.items[i]);
        take(p, t, &one, p->claims.sent_us);
    }
out:
    task_array_done(&found);
    return rc;
}
