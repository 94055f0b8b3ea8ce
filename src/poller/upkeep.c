/*
 * upkeep.c - what any poller does for all: takes back tasks whose owner is gone, deletes tasks that
 * have been finished for long enough, old counts and old events.
 */
#include "poller/upkeep.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "store/fleet/event_store.h"
#include "store/fleet/output_store.h"
#include "store/row/rows.h"
#include "store/work/expire_store.h"
#include "store/work/lease_store.h"
#include "store/work/retention_store.h"
#include "store/work/slot_record.h"
#include "store/work/slot_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

/* Tasks taken back at a time. */
#define REAP_MOST 500
/* Two seconds on top of a lease are not noticed. Together with a look for tasks, the query costs
 * little more than half as much, so it comes up to a second earlier with one, or later alone. */
#define REAP_EVERY_US INT64_C(2000000)
/* A look for ended leases that takes long is made less often: one part in this many of the time,
 * but at least this often. */
#define REAP_PART 500
#define REAP_RARE_US INT64_C(10000000)
/* A lease is renewed when a third of it is over, so a shorter outage ends none. After a longer one,
 * owners get some time to reconnect (trouble.c: 7.5 s at most) and to record how their tasks ended
 * meanwhile: these would be repeated for nothing. */
#define OUTAGE_LEASE_PART 3
#define OUTAGE_REST_US INT64_C(10000000)
/* A lease that is listed has ended, or is ahead of now by the longest lease and a minute. */
#define AHEAD_LEAST_MS INT64_C(30000)
/* A tag without handler here is left this long to pollers that have one, and know on_failed, but
 * not for ever. */
#define UNHANDLED_GRACE_MS INT64_C(300000)
/* Finished tasks are deleted in small steps, so that no lock is held for long, and claims have
 * their turn after SWEEP_STEPS of them. */
#define SWEEP_STEP 500
#define SWEEP_STEPS 20
#define SWEEP_AGAIN_US INT64_C(1000000)
/* If rows cannot be deleted, each is tried alone, in a transaction of its own. A sweep then stops
 * after this time, and goes on after a pause that leaves most of the time to claims. */
#define SWEEP_BAD_MS 20
#define SWEEP_BAD_PART 3
/* Then they are passed over for a while: a lock ends soon, but what a foreign key refuses may be
 * refused for ever. So the pause grows, from that of the sweeps or less to this. */
#define BAD_REST_US INT64_C(60000000)
#define BAD_REST_MOST_US (6 * INT64_C(3600000000))
#define RENEW_US INT64_C(3600000000)

void upkeep_init(struct upkeep *u, const struct context *ctx, struct look *look,
                 struct tag_set *tags, const struct flight *flight, struct minute *minute)
{
    *u =
        (struct upkeep){.ctx = ctx, .look = look, .tags = tags, .flight = flight, .minute = minute};
}

void upkeep_free(struct upkeep *u)
{
    aside_done(&u->aside);
    free(u->after);
    u->after = NULL;
    for (int s = 0; s < TASK_STATUS_COUNT; s++)
        retention_store_done(&u->places[s]);
}

static int64_t longest_lease_ms(const struct upkeep *u)
{
    return u->ctx->longest_lease_ms ? u->ctx->longest_lease_ms : WHEN_DAY;
}

/* If the server's clock was set ahead, leases have ended whose owners live, until they have renewed
 * them. A day is the longest lease there can be, and what counts for a dqd that does not say. */
int64_t upkeep_reap_next(const struct upkeep *u)
{
    int64_t ahead_us = u->ctx->clock.ahead_us, ms = u->ctx->longest_lease_ms, reap_us = u->reap_us;

    if (u->look->polled_us >= u->reap_early_us)
        reap_us = MIN(reap_us, u->look->polled_us);
    if (ahead_us)
        reap_us = MAX(reap_us,
                      ahead_us + MAX(ms < WHEN_DAY ? ms * 1000 : 0, context_lease_us(u->ctx)) / 2);
    return !u->ctx->ending && u->ctx->clock.known ? reap_us : NEVER_US;
}

void upkeep_outage_over(struct upkeep *u, int64_t since_us)
{
    int64_t now_us = when_steady_us(), lease_us = context_lease_us(u->ctx);

    if (now_us - since_us >= lease_us / OUTAGE_LEASE_PART)
        u->reap_us = u->reap_early_us = MAX(u->reap_us, now_us + MIN(OUTAGE_REST_US, lease_us / 2));
}

/* Whether we may end its lease, and how. Not if it has ended only because the server's clock was
 * set since we asked for it last, or because we were late to renew it: others may end that. */
static bool judge(const struct upkeep *u, const struct task *t, int64_t now_us, enum lease_end *ret)
{
    const struct dbclock *clock = &u->ctx->clock;
    const struct handler *h = tags_handler(u->tags, tags_named(u->tags, t->tag));
    int64_t now_at = dbclock_at(clock, now_us);
    bool last = t->max_attempts && t->attempt >= t->max_attempts;

    *ret =
        last || (h && h->on_lease_expiry == HANDLER_EXPIRY_FAIL) ? LEASE_GIVE_UP : LEASE_TAKE_BACK;
    if (t->lease_until_at > now_at + longest_lease_ms(u) + AHEAD_LEAST_MS)
        *ret = LEASE_CUT;
    else if (dbclock_is_before(clock, t->lease_until_at, now_us) ||
             (!h && t->lease_until_at >= now_at - UNHANDLED_GRACE_MS))
        return false;
    return !flight_keeps(u->flight, &(struct claim_ref){t->id, t->version});
}

/* The look passes over rows that old snapshots of other sessions keep. If that takes long (twice in
 * a row: once is chance), it is made seldom. */
static void plan_reap(struct upkeep *u, int64_t now_us, int64_t cost_us)
{
    int64_t dear_us = MIN(cost_us, u->reap_cost_us), wait_us = dear_us * REAP_PART;

    u->reap_cost_us = cost_us;
    u->reap_early_us = now_us + REAP_EVERY_US / 2 +
                       (int64_t)(context_random() % (REAP_EVERY_US / 2)) +
                       MIN(wait_us, REAP_RARE_US);
    u->reap_us = u->reap_early_us + REAP_EVERY_US / 2;
}

/* The tasks up to the last one of this tag would only be in the way of others: the next look begins
 * behind it. NULL: with the first tag. */
static void look_behind(struct upkeep *u, const char *tag)
{
    free(u->after);
    u->after = tag ? mem_strdup(tag) : NULL;
}

/* Keeps those that are ours to take back; ends[] is by their new place. Those whose bodies are too
 * long for one statement with the others are taken back at once afterwards. */
static void keep_judged(struct upkeep *u, struct task_array *l, enum lease_end *ends,
                        int64_t now_us)
{
    const char *left = NULL;
    size_t kept = 0, ahead = 0, bytes = 0;

    for (size_t i = 0; i < l->count; i++) {
        struct task *t = &l->items[i];

        if (!judge(u, t, now_us, &ends[kept])) {
            left = t->tag;
        } else if (!rows_take(&bytes,
                              rows_weight(rows_size(t->body_size, t->again_at != TASK_TIME_NONE),
                                          tags_named(u->tags, t->tag)->look.claims.row_us))) {
            u->reap_us = 0;
        } else {
            ahead += ends[kept] == LEASE_CUT;
            struct task swap = l->items[kept];

            l->items[kept++] = *t;
            *t = swap;
        }
    }
    look_behind(u, l->count == REAP_MOST ? left : NULL);
    if (ahead)
        log_event(LOG_WARN, "leases are too far ahead, as the server's clock was; they are cut",
                  "tasks=%zu", ahead);
    for (size_t i = kept; i < l->count; i++)
        task_done(&l->items[i]);
    l->count = kept;
}

static void count_taken(struct minute *m, const struct task_array *l, const enum lease_end *ends,
                        const bool *taken)
{
    for (size_t i = 0; i < l->count; i++)
        if (taken[i])
            minute_ended(m, l->items[i].tag,
                         ends[i] == LEASE_GIVE_UP ? TASK_GIVE_UP : TASK_TAKE_BACK, FAULT_EXCUSED,
                         -1);
}

static void log_taken(const struct task_array *l, const enum lease_end *ends, const bool *taken)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct task *t = &l->items[i];

        if (taken[i])
            log_fold(when_steady_us(), LOG_WARN, "lease ended; task taken back", t->tag, NULL,
                     "id=%" PRIu64 " tag=%s attempt=%u host=%s pid=%u then=%s", t->id,
                     log_quote(t->tag), t->attempt, log_quote(t->host), t->pid,
                     ends[i] == LEASE_GIVE_UP ? "failed" : "pending");
    }
}

static void log_left(struct upkeep *u, int64_t now_us)
{
    struct aside *a = &u->aside;

    if (aside_news(a, now_us))
        log_event(a->last.err.code == ERR_LOCKED ? LOG_WARN : LOG_ERROR,
                  "some tasks with expired leases cannot be taken back; others are not affected",
                  "tasks=%zu id=%" PRIu64 " error=%s", a->count, a->last.id,
                  log_quote(a->last.err.text));
    else if (aside_over(a))
        log_event(LOG_INFO, "all tasks with expired leases can be taken back again", "%s", "");
}

int upkeep_reap(struct upkeep *u, struct err *err)
{
    struct task_array expired = {0};
    struct rows_faults faults = {0};
    enum lease_end ends[REAP_MOST];
    const char *on_failed[REAP_MOST];
    bool taken[REAP_MOST] = {false}, careful = u->aside.count > 0;
    int64_t now_us = when_steady_us();
    uint64_t *aside;
    size_t aside_count = aside_ids(&u->aside, now_us, &aside);
    int rc = lease_store_expired(u->ctx->db, u->after, aside, aside_count, longest_lease_ms(u),
                                 u->aside.count >= ASIDE_MANY, REAP_MOST, &expired, err);

    free(aside);
    if (rc < 0)
        return rc;
    plan_reap(u, now_us, when_steady_us() - now_us);
    keep_judged(u, &expired, ends, when_steady_us());
    for (size_t i = 0; i < expired.count; i++) {
        const struct handler *h = tags_handler(u->tags, tags_named(u->tags, expired.items[i].tag));
        on_failed[i] = h && ends[i] == LEASE_GIVE_UP ? h->on_failed : NULL;
    }
    if (expired.count) {
        rc = lease_store_take_back(u->ctx->db, &expired, ends, on_failed, careful, taken, &faults,
                                   err);
        log_taken(&expired, ends, taken);
        count_taken(u->minute, &expired, ends, taken);
        for (size_t i = 0; i < expired.count; i++)
            if (taken[i])
                aside_forget(&u->aside, expired.items[i].id);
        aside_put(&u->aside, &faults, when_steady_us());
        if (faults.count < expired.count)
            look_reaped(u->look);
        else if (expired.count == REAP_MOST)
            look_behind(u, expired.items[REAP_MOST - 1].tag);
    }
    log_left(u, when_steady_us());
    rows_faults_done(&faults);
    task_array_done(&expired);
    return rc;
}

int64_t upkeep_retention_next(const struct upkeep *u)
{
    return u->ctx->ending ? NEVER_US : u->retention_us;
}

/* What cannot be deleted is logged when it is met first, until all tasks have been tried. */
static int sweep(struct upkeep *u, enum task_status status, int64_t age_ms, size_t *ret_deleted,
                 struct err *err)
{
    struct rows_faults faults = {0};
    bool begins = !u->places[status].faults;
    int rc = retention_store_expire(u->ctx->db, status, age_ms, SWEEP_STEP, &u->places[status],
                                    ret_deleted, &faults, err);

    if (faults.count && begins)
        log_event(LOG_WARN, "some old tasks cannot be deleted; others are not affected",
                  "tasks=%zu id=%" PRIu64 " error=%s", faults.count, faults.items[0].id,
                  log_quote(faults.items[0].err.text));
    rows_faults_done(&faults);
    return rc;
}

static int expire_counts(struct upkeep *u, bool *more, struct err *err)
{
    int64_t age_ms = u->ctx->conf->retention.counters_ms;
    bool left = age_ms > 0;
    int rc = 0;

    for (int step = 0; rc == 0 && left && step < SWEEP_STEPS; step++)
        rc = minute_store_expire(u->ctx->db, age_ms, SWEEP_STEP, &left, err);
    *more |= left;
    return rc;
}

static int expire_events(struct upkeep *u, bool *more, struct err *err)
{
    const struct conf_retention *r = &u->ctx->conf->retention;
    int rc = 0;

    for (int by_procedure = 0; rc == 0 && by_procedure < 2; by_procedure++) {
        int64_t age_ms = by_procedure && r->cancelled_ms > 0 ? r->cancelled_ms : r->events_ms;
        size_t deleted = age_ms > 0 ? SWEEP_STEP : 0;

        for (int step = 0; rc == 0 && deleted >= SWEEP_STEP && step < SWEEP_STEPS; step++)
            rc = event_store_expire(u->ctx->db, by_procedure, age_ms, SWEEP_STEP, &deleted, err);
        *more |= deleted >= SWEEP_STEP;
    }
    return rc;
}

/* If it is time, tasks that could not be deleted are tried again. */
static void look_at_bad(struct upkeep *u, enum task_status status)
{
    struct upkeep_bad *b = &u->bad[status];

    if (!u->places[status].tag && b->until_us && when_steady_us() >= b->until_us) {
        retention_store_forget(&u->places[status]);
        b->until_us = 0;
    }
}

static void rest_from_bad(struct upkeep *u, enum task_status status)
{
    const struct retention_place *place = &u->places[status];
    struct upkeep_bad *b = &u->bad[status];

    if (place->tag || b->until_us)
        return;
    const int64_t least_us = MIN(u->ctx->conf->retention.interval_ms * 1000, BAD_REST_US);
    b->pause_us = place->bad_count ? retry_pause(b->pause_us, least_us, BAD_REST_MOST_US) : 0;
    b->until_us = place->bad_count ? when_steady_us() + b->pause_us : 0;
}

/* *more: tasks are left, in steps for which there was no time. */
static int expire_tasks(struct upkeep *u, enum task_status status, int64_t age_ms, bool *more,
                        struct err *err)
{
    struct retention_place *place = &u->places[status];
    size_t deleted = 0;
    bool goes_on = true;
    int rc = 0;

    if (age_ms <= 0)
        return 0;
    look_at_bad(u, status);
    place->until = when_steady() + SWEEP_BAD_MS;
    for (int step = 0; rc == 0 && goes_on && step < SWEEP_STEPS; step++) {
        rc = sweep(u, status, age_ms, &deleted, err);
        goes_on = !place->cut && !place->late && (deleted >= SWEEP_STEP || (deleted && place->tag));
    }
    *more |= goes_on || place->tag;
    u->cut |= place->cut;
    u->late |= place->late;
    if (rc == 0)
        rest_from_bad(u, status);
    return rc;
}

static int expire_done(struct upkeep *u, bool *more, struct err *err)
{
    return expire_tasks(u, TASK_DONE, u->ctx->conf->retention.done_ms, more, err);
}

static int expire_failed(struct upkeep *u, bool *more, struct err *err)
{
    return expire_tasks(u, TASK_FAILED, u->ctx->conf->retention.failed_ms, more, err);
}

static int expire_cancelled(struct upkeep *u, bool *more, struct err *err)
{
    return expire_tasks(u, TASK_CANCELLED, u->ctx->conf->retention.cancelled_ms, more, err);
}

/* Those that no claim meets: of tags that are paused, full or not served here. */
static int expire_pending(struct upkeep *u, bool *more, struct err *err)
{
    struct tag_state *t;
    int rc = 0, steps = 0;

    while (rc == 0 && steps < SWEEP_STEPS && (t = tags_each(u->tags, &u->expire_at))) {
        const struct handler *h = tags_handler(u->tags, t);
        const struct claim_ask ask = {.tag = t->name,
                                      .expires_ms = h ? h->expires_ms : 0,
                                      .expired_ms = h ? 0 : UNHANDLED_GRACE_MS,
                                      .on_failed = h ? h->on_failed : NULL,
                                      .row_us = look_tag_row_us(&t->look)};
        struct rows_faults faults = {0};
        uint64_t count = 0, n = 0;

        for (int level = 0; rc == 0 && level < TASK_LEVELS && t->late_ms > 0; level++) {
            if (!(look_tag_levels(&t->look) & TASK_LEVEL_BIT(level)))
                continue;
            struct peek_floor *from = &t->expire_from[level];
            rc = expire_store_cancel(u->ctx->db, &ask, (enum task_level)level, SWEEP_STEP, from, &n,
                                     &faults, err);
            *more |= n > 0 && from->at;
            count += n;
            n = 0;
            steps++;
        }
        minute_expired(u->minute, t->name, count);
        rows_faults_done(&faults);
    }
    if (steps < SWEEP_STEPS)
        u->expire_at = 0;
    return rc;
}

static int expire_outputs(struct upkeep *u, bool *more, struct err *err)
{
    (void)more;
    return output_store_drop_left(u->ctx->db, err);
}

static int expire_slots(struct upkeep *u, bool *more, struct err *err)
{
    size_t deleted = u->ctx->has_slots ? SWEEP_STEP : 0;
    int rc = 0;

    for (int step = 0; rc == 0 && deleted >= SWEEP_STEP && step < SWEEP_STEPS; step++)
        rc = slot_record_expire(u->ctx->db, SWEEP_STEP, &deleted, err);
    *more |= deleted >= SWEEP_STEP;
    return rc;
}

/* Seldom: it reads all of them. */
static int renew_slots(struct upkeep *u, bool *more, struct err *err)
{
    bool others = false;

    if (u->ctx->next_slot_at == TASK_TIME_NONE || when_steady_us() < u->renew_us)
        return 0;
    int rc = slot_store_renew(u->ctx->db, &others, err);
    u->renew_us = others ? 0 : when_steady_us() + RENEW_US;
    *more |= others;
    return rc;
}

/* A part that fails does not keep the others from their turn. Those that would wait for the same
 * locked table do not wait one after the other: the next call begins behind the one that did. */
int upkeep_retention(struct upkeep *u, struct err *err)
{
    static int (*const parts[])(struct upkeep *, bool *, struct err *) = {
        expire_done,    expire_failed,  expire_cancelled, expire_counts, expire_events,
        expire_pending, expire_outputs, expire_slots,     renew_slots};
    int64_t began_us = when_steady_us(), now_us;
    bool more = false;
    int failed = 0;

    u->cut = u->late = false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct err why = {0};
        int rc = parts[u->part](u, &more, &why);

        u->part = (u->part + 1) % (sizeof parts / sizeof parts[0]);
        if (rc < 0 && !failed) {
            failed = rc;
            *err = why;
        }
        if (rc == ERR_LOCKED || (rc < 0 && !db_connected(u->ctx->db)))
            break;
    }
    if (failed)
        return failed;
    now_us = when_steady_us();
    u->retention_us = now_us + (u->cut    ? now_us - began_us
                                : u->late ? SWEEP_BAD_PART * (now_us - began_us)
                                : more    ? SWEEP_AGAIN_US
                                          : u->ctx->conf->retention.interval_ms * 1000);
    return 0;
}
