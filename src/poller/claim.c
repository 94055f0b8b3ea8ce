/*
 * claim.c - asks the database what is due, and takes it, as look.c says. Invariant: what a claim
 * may have taken is either handed on or looked for again (claim_recover).
 */
#include "poller/claim.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "poller/care.h"
#include "store/row/rows.h"
#include "store/work/claim_store.h"
#include "store/work/expire_store.h"
#include "store/work/peek_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a rate could have started so long ago was left by whoever reserves its starts. */
#define LIMIT_LEFT_MS 100
/* What a claim under a limit writes besides the tasks: the limit, and COMMIT. */
#define LIMIT_WRITES 2
/* What a claim that took longer has won need not wait for the next claim. */
#define LONG_US 5000

void claim_free(struct claims *claims)
{
    peek_store_done(&claims->peek);
}

int64_t claim_next(const struct claims *claims)
{
    return claims->ctx->ending || claims->ctx->quiet || claims->recover ? NEVER_US
                                                                        : look_when(claims->look);
}

static int peek_at_all(struct claims *claims, int64_t limit_ms, struct err *err)
{
    int64_t sent_us = when_steady_us(), now_us;
    int rc = peek_store_all(claims->ctx->db, limit_ms, &claims->peek, err);

    now_us = when_steady_us();
    if (rc == ERR_TRANSIENT && look_gave_up(claims->look, limit_ms, sent_us, now_us)) {
        log_event(LOG_DEBUG, "a peek at all tags took too long and was given up",
                  "after_ms=%" PRId64, limit_ms);
        return 0;
    }
    if (rc < 0)
        return rc;
    if (claims->peek.now_us)
        dbclock_sample(&claims->ctx->clock, sent_us, now_us, claims->peek.now_us);
    look_saw_all(claims->look, sent_us, now_us);
    tags_take_all(claims->tags, &claims->peek, now_us);
    return 0;
}

static int look_at_news(struct claims *claims, uint64_t id, struct err *err)
{
    int64_t sent_us = when_steady_us(), now_us;
    int rc = peek_store_news(claims->ctx->db, &id, &claims->peek, err);

    if (rc < 0)
        return rc;
    now_us = when_steady_us();
    if (claims->peek.now_us)
        dbclock_sample(&claims->ctx->clock, sent_us, now_us, claims->peek.now_us);
    look_saw_news(claims->look, id, sent_us, now_us);
    tags_take_news(claims->tags, &claims->peek, now_us);
    return 0;
}

static int look_at_tag(struct claims *claims, struct tag_state *t, struct err *err)
{
    int64_t sent_us = when_steady_us(), now_us, db_now_us = 0, next_at[TASK_LEVELS];
    int rc = peek_store_next(claims->ctx->db, t->name, t->look.floor, &db_now_us, next_at, err);

    if (rc < 0)
        return rc;
    now_us = when_steady_us();
    if (db_now_us)
        dbclock_sample(&claims->ctx->clock, sent_us, now_us, db_now_us);
    look_saw_tag(claims->look, &t->look, next_at, sent_us, now_us);
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
static void take(struct claims *claims, struct tag_state *t, struct task_array *won,
                 int64_t sent_us)
{
    if (when_steady_us() - sent_us > context_renew_us(claims->ctx)) {
        log_event(LOG_WARN, "a claim took too long; its tasks are given back", "tag=%s tasks=%zu",
                  log_quote(t->name), won->count);
        flight_give_back(claims->flight, t, won, sent_us, "the claim took a third of the lease");
    } else if (t->handler < 0 || claims->ctx->ending) {
        flight_give_back(claims->flight, t, won, sent_us,
                         t->handler < 0 ? "no handler" : "dqd is stopping");
    } else {
        handover_take(claims->handover, tags_table(claims->tags), t, won, sent_us);
    }
}

/* Before the claim, which may have the version of a former attempt: if its answer were lost, the
 * one could not be told from the other. */
static void lose_overtaken(void *arg, struct task_array *found)
{
    struct claims *claims = arg;

    settle_overtaken(claims->results, found);
    claims->overtook |= lease_overtaken(claims->leases, found, NULL);
}

/* As if the rows were locked: they are claimed when their former attempts have ended. */
static void hold_overtaken(struct claims *claims, struct tag_state *t, struct task_array *won,
                           int64_t sent_us, struct rows_faults *faults)
{
    struct task_array back = {0};
    struct err err;

    settle_overtaken(claims->results, won);
    lease_overtaken(claims->leases, won, &back);
    err_set(&err, ERR_LOCKED, "its former attempt has not ended on this host");
    for (size_t i = 0; i < back.count; i++)
        rows_faults_add(faults, back.items[i].id, i, &err);
    flight_give_back(claims->flight, t, &back, sent_us, NULL);
}

/* Its UPDATE may have been done, whatever came after it. Returns 0 if the round goes on. */
static int claim_failed(struct claims *claims, struct tag_state *t, int rc,
                        const struct claim_seen *saw, int64_t sent_us, struct err *err)
{
    bool limit = saw->held == LIMIT_LOCKED;
    enum look_failure why = limit                 ? LOOK_LIMIT_LOCKED
                            : rc == ERR_TRANSIENT ? LOOK_DEADLOCK
                            : rc == ERR_LOCKED    ? LOOK_LOCKED
                                                  : LOOK_REFUSED;

    if (limit) {
        care_limit_locked(t, err);
    } else {
        if (!claims->recover) /* of several, the first one's leases end first */
            claims->sent_us = sent_us;
        claims->recover = true;
    }
    if (why == LOOK_REFUSED && db_connected(claims->ctx->db))
        care_refused(t, err);
    return look_claim_failed(claims->look, &t->look, why, sent_us, when_steady_us(),
                             context_random())
               ? 0
               : rc;
}

/* Starts of a rate are reserved by the dqd whose rank is the hash of the limit's name: a hundred do
 * not meet at each slot. Others come later, by so much at most. */
static int64_t turn_ms(const struct claims *claims, const struct tag_state *t, enum limit_why held)
{
    const char *name = tags_limit(t);
    const unsigned shares = registry_shares(claims->registry);

    return held != LIMIT_RATE || text_hash(TEXT_HASH_INIT, name, strlen(name)) % shares ==
                                     registry_share(claims->registry)
               ? 0
               : claims->ctx->conf->dqd.steal_after_ms;
}

static bool is_under(void *arg, const char *tag)
{
    struct claims *claims = arg;

    if (strcmp(handlers_limit(tags_table(claims->tags)->handlers, tag), claims->limit_name) != 0)
        return false;
    claims->others_run |= !tags_selected(claims->tags, tag);
    return true;
}

static void claim_worked(struct claims *claims, struct tag_state *t, struct task_array *won,
                         const struct claim_seen *saw, const struct rows_faults *faults,
                         int64_t sent_us)
{
    struct look_claim c = {.seen = saw->found + saw->expired,
                           .bad = faults->count,
                           .left = saw->left,
                           .won = won->count,
                           .held = saw->held,
                           .alone = saw->alone,
                           .limit_at = saw->limit_at,
                           .turn_ms = turn_ms(claims, t, saw->held),
                           .left_over = saw->left_ms >= LIMIT_LEFT_MS,
                           .paced = saw->paced,
                           .started_before = started_before(won),
                           .next_known = saw->next_known,
                           .next_at = saw->next_at,
                           .cost_us = saw->answered_us - saw->sent_us,
                           .took_us = when_steady_us() - sent_us,
                           .more_writes = t->guarded ? LIMIT_WRITES : 0,
                           .answered_us = saw->answered_us,
                           .random = context_random()};

    if (saw->now_us)
        dbclock_sample_twice(&claims->ctx->clock, saw->sent_us, saw->answered_us, saw->now_us,
                             saw->late_us);
    for (size_t i = 0; i < won->count; i++)
        aside_forget(&t->aside, won->items[i].id);
    memcpy(c.drained, saw->drained, sizeof c.drained);
    care_limit_free(t);
    care_put_aside(claims->ctx->db, t, faults, when_steady_us());
    if (won->lies)
        care_long_bodies(t, sent_us);
    c.some_aside = t->aside.count > 0;
    for (size_t i = 0; i < won->count; i++) {
        const struct task *w = &won->items[i];

        c.won_of[w->level]++;
        c.last[w->level] = (struct peek_floor){w->expected_at, w->id};
    }
    c.again = saw->guarded && !t->guarded && !won->count;
    t->guarded = saw->guarded;
    t->probing = saw->probing;
    if (saw->set_back)
        log_fold(when_steady_us(), LOG_WARN, "the server's clock was set back: a rate begins again",
                 t->name, NULL, "tag=%s", log_quote(t->name));
    if (c.won && tags_is_limited(t, tags_handler(claims->tags, t)))
        look_pace_limited(&claims->look->pace, c.took_us);
    look_tag_met(&t->look, saw->full, claims->others_run, c.won, when_steady_us());
    look_claimed(claims->look, &t->look, &c, when_steady_us());
    care_slow(t);
}

/* When the live tasks are on their way. Looks for others, too: a claim meets few if few may start.
 */
static int expire(struct claims *claims, struct tag_state *t, struct claim_ask *ask,
                  struct err *err)
{
    struct rows_faults faults = {0};
    uint64_t count = 0, n = 0;
    int rc = 0;

    for (int level = 0; rc == 0 && level < TASK_LEVELS; level++) {
        if (!(ask->levels & TASK_LEVEL_BIT(level)))
            continue;
        rc = expire_store_cancel(claims->ctx->db, ask, (enum task_level)level,
                                 (size_t)claims->ctx->conf->dqd.claim_batch, &ask->floor[level], &n,
                                 &faults, err);
        count += n;
        n = 0;
        ask->expired = NULL; /* those that the claim met are cancelled */
    }
    minute_expired(claims->flight->minute, t->name, count);
    if (faults.count)
        care_put_aside(claims->ctx->db, t, &faults, when_steady_us());
    if (count && ask->on_failed)
        look_reaped(claims->look); /* tasks were added */
    if (rc < 0)
        look_end_round(claims->look);
    rows_faults_done(&faults);
    return rc;
}

/* What is asked for, but for the rows to be left out. */
static struct claim_ask ask_of(struct claims *claims, const struct look_step *s)
{
    const struct tag_state *t = tags_of(s->tag);
    const unsigned share = registry_share(claims->registry);
    const unsigned shares = registry_shares(claims->registry);
    const struct handler *h = tags_handler(claims->tags, t);
    const bool limited = tags_is_limited(t, h);
    /* one dqd claims at a time under the lock: the urgent tasks of all shares come first */
    const bool whole = t->guarded && shares > 1;
    const char *limit_name =
        h->limit                                                                 ? h->limit
        : limited && handlers_share(tags_table(claims->tags)->handlers, t->name) ? t->name
                                                                                 : NULL;
    const bool at_once = h->batch > 1 && !limit_name; /* what may start now, as one batch */
    struct claim_ask ask = {
        .tag = t->name,
        .limit = s->count,
        .batch = (uint32_t)h->batch,
        .processes = s->processes,
        .early_ms = look_tag_early_ms(s->tag, &claims->look->pace, claims->ctx->once),
        .levels = look_tag_levels(s->tag),
        .share = share,
        .shares = s->all_shares || whole ? 1 : shares,
        .steal_share =
            shares > 1 ? (share + 1 + (unsigned)(context_random() % (shares - 1))) % shares : 0,
        .steal_far_end = context_random() % 4 != 0,
        .steal_after_ms = claims->ctx->conf->dqd.steal_after_ms,
        .max_attempts = retry_max_attempts(&h->retry),
        .expires_ms = h->expires_ms,
        .on_failed = h->on_failed,
        .lease_ms = claims->ctx->conf->dqd.lease_ms,
        .tag_limit = {.running = (uint32_t)h->global_max_running, LIMIT_NONE},
        .limit_name = limit_name,
        .guarded = t->guarded,
        .unsure = claims->ctx->once && !t->guarded,
        .doubtful = look_tag_is_doubtful(s->tag),
        .horizon_ms = at_once             ? 0
                      : claims->ctx->once ? LIMIT_PASS_MS
                                          : look_pace_horizon_ms(&claims->look->pace),
        .lead_ms = at_once ? 0 : look_pace_lead_ms(&claims->look->pace),
        .under = is_under,
        .under_arg = claims,
        .row_us = s->tag->claims.row_us,
        .next = s->next,
        .before = lose_overtaken,
        .before_arg = claims};

    if (!whole) /* those are of our share */
        memcpy(ask.floor, s->tag->floor, sizeof ask.floor);
    memcpy(ask.passed, s->tag->passed, sizeof ask.passed);
    ask.without_long = claims->flight->renewing;
    return ask;
}

static int claim(struct claims *claims, const struct look_step *s, struct err *err)
{
    struct tag_state *t = tags_of(s->tag);
    struct claim_ask ask = ask_of(claims, s);
    struct task_array won = {0};
    struct rows_faults faults = {0};
    struct claim_expired expired;
    uint64_t *aside;
    struct claim_seen saw;
    int64_t sent_us = when_steady_us();
    int rc;

    claims->overtook = claims->others_run = false;
    claims->limit_name = ask.limit_name ? ask.limit_name : t->name;
    ask.aside_count = aside_ids(&t->aside, sent_us, &aside);
    ask.aside = aside;
    ask.expired = &expired;
    ask.skip_locked = t->aside.count >= ASIDE_MANY;
    ask.unsure |= ask.skip_locked && !t->guarded;
    ask.without_bodies = sent_us < t->bare_us;
    rc = claim_store_claim(claims->ctx->db, &claims->ctx->owner, &ask, &won, &saw, &faults, err);
    if (rc < 0) {
        rc = claim_failed(claims, t, rc, &saw, sent_us, err);
    } else {
        if (claims->overtook)
            hold_overtaken(claims, t, &won, sent_us, &faults);
        claim_worked(claims, t, &won, &saw, &faults, sent_us);
        if (won.count || saw.lost)
            log_event(LOG_DEBUG, "claimed", "tag=%s tasks=%zu lost=%zu", log_quote(t->name),
                      won.count, saw.lost);
        take(claims, t, &won, sent_us);
        if (saw.expired) {
            link_push(claims->ctx->link);
            rc = expire(claims, t, &ask, err);
        }
    }
    free(aside);
    rows_faults_done(&faults);
    task_array_done(&won);
    return rc;
}

static int do_step(struct claims *claims, const struct look_step *s, struct err *err)
{
    switch (s->what) {
    case LOOK_AT_ALL:
        return peek_at_all(claims, s->limit_ms, err);
    case LOOK_AT_NEWS:
        return look_at_news(claims, s->above_id, err);
    case LOOK_AT_TAG:
        return look_at_tag(claims, tags_of(s->tag), err);
    case LOOK_CLAIM:
        return claim(claims, s, err);
    case LOOK_END:
        break;
    }
    return 0;
}

/* Not an outage, and nothing that ends by itself soon. */
static bool is_refusal(const struct claims *claims, int rc)
{
    return rc < 0 && rc != ERR_TRANSIENT && rc != ERR_LOCKED && db_connected(claims->ctx->db);
}

/* If the server refuses a look, no task of any tag can be claimed: others are told so of all tags,
 * as they are of one tag whose claim is refused. */
static void looked(struct claims *claims, int rc, const struct err *err)
{
    if (rc < 0)
        look_end_round(claims->look);
    if (rc == 0 || is_refusal(claims, rc))
        care_look_refused(claims->tags, rc < 0 ? err : NULL);
}

int claim_run(struct claims *claims, struct err *err)
{
    const int64_t began_us = when_steady_us();
    int64_t last_us = began_us;
    enum look_what last = LOOK_END;

    for (int64_t now_us = began_us;; now_us = when_steady_us()) {
        struct look_step s;
        int rc;

        if (now_us - began_us > LEASE_LOOK_US && lease_renew_next(claims->leases) <= now_us) {
            look_end_round(claims->look);
            return 0;
        }
        s = look_next(claims->look, now_us);

        if (last == LOOK_CLAIM && (s.what != LOOK_CLAIM || now_us - last_us > LONG_US))
            link_push(claims->ctx->link); /* what was taken starts while we go on asking */
        if (s.what == LOOK_END)
            return 0;
        rc = do_step(claims, &s, err);
        if (s.what != LOOK_CLAIM)
            looked(claims, rc, err);
        if (rc < 0)
            return rc;
        last = s.what;
        last_us = now_us;
    }
}

int64_t claim_recover_next(const struct claims *claims)
{
    return claims->recover ? 0 : NEVER_US;
}

bool claim_in_doubt(const struct claims *claims)
{
    return claims->recover;
}

/* Claims of ours that we know of: in flight, or ended and not settled yet. Sorted. */
static struct claim_ref *known_claims(const struct claims *claims, size_t *ret_count)
{
    size_t in_flight = flight_task_count(claims->flight),
           n = in_flight + settle_count(claims->results);
    struct claim_ref *refs = mem_alloc((n + 1) * sizeof *refs);

    flight_refs(claims->flight, refs);
    settle_claims(claims->results, refs + in_flight);
    qsort(refs, n, sizeof *refs, claim_ref_compare);
    *ret_count = n;
    return refs;
}

int claim_recover(struct claims *claims, struct err *err)
{
    struct task_array found = {0};
    size_t n;
    struct claim_ref *known = known_claims(claims, &n);
    int rc = claim_store_recover(claims->ctx->db, &claims->ctx->owner, known, n, &found, err);

    free(known);
    if (is_refusal(claims, rc)) /* until this has worked, nothing else is asked */
        care_look_refused(claims->tags, err);
    if (rc < 0)
        goto out;
    claims->recover = false;
    if (found.count)
        log_event(LOG_NOTE, "recovered tasks of a claim whose reply was lost", "tasks=%zu",
                  found.count);
    for (size_t i = 0; i < found.count; i++) {
        struct task_array one = {0};
        struct tag_state *t = tags_named(claims->tags, found.items[i].tag);
        struct rows_faults faults = {0};

        one.items = mem_alloc(sizeof *one.items);
        one.items[0] = found.items[i];
        one.count = one.cap = 1;
        task_init(&found.items[i]);
        hold_overtaken(claims, t, &one, claims->sent_us, &faults);
        if (faults.count)
            care_put_aside(claims->ctx->db, t, &faults, when_steady_us());
        rows_faults_done(&faults);
        if (t->guarded || t->look.paced) /* when it may start is not known any more */
            flight_give_back(claims->flight, t, &one, claims->sent_us, "its start was lost");
        else
            take(claims, t, &one, claims->sent_us);
    }
out:
    task_array_done(&found);
    return rc;
}
