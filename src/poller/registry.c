/*
 * registry.c - see registry.h. Invariant: while no heartbeat has succeeded, all work is our share.
 */
#include "poller/registry.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/fleet/ahead_store.h"
#include "store/fleet/event_store.h"
#include "store/fleet/poller_store.h"
#include "store/schema/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

/* A poller that misses this many heartbeats is dead: two may be lost to a slow statement and a
 * reconnect. */
#define STALE_BEATS 3
/* The same for passes: this many intervals of their timer, which is known from the second one on.
 * The limits are for timers of seconds, and for passes that are started by hand now and then. */
#define STALE_PASSES 3
#define PASS_MIN_MS WHEN_MINUTE
#define PASS_MAX_MS (7 * WHEN_DAY)
#define PASS_FIRST_MS (2 * WHEN_MINUTE) /* cron's interval, and how late it may be */
/* A heartbeat that is wanted soon is so long after the last one at least: any account of this host
 * can ask for it. */
#define SOON_US INT64_C(100000)
/* While ending dqds keep places taken: so long may one of these that is free stay empty. */
#define ELSEWHERE_US INT64_C(1000000)
/* Counting them reads all running tasks of the fleet: then so many times as long passes without. */
#define COUNT_REST 20

void registry_init(struct registry *r, struct context *ctx, struct look *look, struct tag_set *tags,
                   const char *mode, bool passes)
{
    *r = (struct registry){.ctx = ctx,
                           .look = look,
                           .tags = tags,
                           .mode = mode,
                           .passes = passes,
                           .since_pass_ms = -1,
                           .shares = 1};
}

int64_t registry_next_pass_ms(int64_t since_ms)
{
    if (since_ms < 0)
        return PASS_FIRST_MS;
    return MIN(MAX(STALE_PASSES * MIN(since_ms, PASS_MAX_MS), PASS_MIN_MS), PASS_MAX_MS);
}

unsigned registry_share(const struct registry *r)
{
    return r->share;
}

unsigned registry_shares(const struct registry *r)
{
    return r->shares;
}

static int64_t stale_us(const struct registry *r)
{
    return STALE_BEATS * r->ctx->conf->dqd.heartbeat_ms * 1000;
}

/* Jobs that have not started: others could not count them. */
static uint32_t queued(const struct registry *r)
{
    struct tag_state *t;
    uint32_t n = 0;

    for (size_t at = 0; (t = tags_each(r->tags, &at));)
        n += t->look.queued;
    return n;
}

int64_t registry_next(const struct registry *r)
{
    const int64_t every_us = r->ctx->conf->dqd.heartbeat_ms * 1000;
    const bool ends = r->ctx->ending && !r->said_end && !r->unheard;
    const bool counts = ends || (!r->ctx->ending && r->look->turn.elsewhere);
    const int64_t most_us = r->soon ? SOON_US : counts ? ELSEWHERE_US : every_us;

    if (!r->beat_us || (ends && (r->beat_us < r->ending_us || !queued(r))))
        return 0;
    return r->beat_us + MIN(most_us, every_us);
}

void registry_end(struct registry *r)
{
    r->ending_us = when_steady_us();
}

bool registry_has_ended(const struct registry *r, int64_t now_us)
{
    return r->said_end || (r->ending_us && now_us - r->ending_us >= stale_us(r));
}

void registry_beat_soon(struct registry *r)
{
    r->soon = true;
}

/* The globs of --tag, one a line; NULL: all tags. */
static const char *globs_of(const struct tag_set *tags, struct buf *b)
{
    for (const char *const *g = tags->globs; g && *g; g++)
        buf_printf(b, "%s%s", b->len ? "\n" : "", *g);
    return b->data;
}

/* For dq doctor. A pass knows it at its end, others with their second heartbeat. */
static int64_t clock_ahead_ms(const struct context *ctx)
{
    return ctx->clock.known ? when_host_wall() - dbclock_at(&ctx->clock, when_steady_us())
                            : POLLER_CLOCK_NONE;
}

/* ---- what the ending dqds of this host still run ---- */

struct ending {
    struct look_elsewhere *items;
    size_t count, cap;
};

static void put_ending(struct ending *e, struct tag_state *t, uint64_t tasks)
{
    MEM_ROOM(e->items, e->count, e->cap);
    e->items[e->count++] = (struct look_elsewhere){&t->look, tasks};
}

/* After the heartbeat, which has returned rc. If either fails, the next one counts again; what was
 * counted holds until the dqds that were counted may be dead. */
static int count_ending(struct registry *r, int rc, uint64_t processes, struct err *err)
{
    struct ending e = {.count = 0};
    struct poller_tasks *found = NULL;
    size_t count = 0;
    const int64_t begun_us = when_steady_us();
    struct tag_state *t;

    if (processes && begun_us < r->count_us)
        return 0;
    for (size_t at = 0; r->look->turn.elsewhere && (t = tags_each(r->tags, &at));)
        if (t->look.elsewhere)
            put_ending(&e, t, 0);
    if (processes)
        rc = poller_store_ending(r->ctx->db, &r->ctx->owner, &found, &count, err);
    for (size_t i = 0; i < count; i++)
        put_ending(&e, tags_named(r->tags, found[i].tag), found[i].tasks);
    poller_store_tasks_free(found, count);
    const int64_t now_us = when_steady_us();
    if (rc == 0)
        r->count_us = now_us + COUNT_REST * (now_us - begun_us);
    else
        processes = 0;
    const bool had = r->look->turn.elsewhere, holds = rc < 0 && now_us - r->count_us < stale_us(r);
    if (!holds) {
        look_turn_elsewhere(&r->look->turn, e.items, e.count, processes);
        tags_share_elsewhere(r->tags);
    }
    if (!had && r->look->turn.elsewhere)
        log_event(LOG_INFO,
                  "ending dqds of this host still run handlers; tasks that need their places wait",
                  "processes=%" PRIu32, r->look->turn.elsewhere);
    for (size_t i = 0; !holds && i < e.count; i++)
        link_send_elsewhere(r->ctx->link, tags_of(e.items[i].tag)->name, e.items[i].tag->elsewhere,
                            r->look->turn.elsewhere);
    free(e.items);
    return rc;
}

/* ---- the heartbeat ---- */

/* What it is, without what it does at the moment. */
static struct poller_say own(const struct registry *r, struct buf *globs)
{
    const struct handlers_table *table = tags_table(r->tags);

    return (struct poller_say){.mode = r->mode,
                               .slots = (int)r->ctx->slots,
                               .lease_ms = r->ctx->conf->dqd.lease_ms,
                               .serves = table->number,
                               .handlers_file = table->handlers->path,
                               .tags = globs_of(r->tags, globs),
                               .clock_ahead_ms = clock_ahead_ms(r->ctx),
                               .passes = r->passes};
}

static int say(struct registry *r, struct poller_share *ret, struct err *err)
{
    const struct context *ctx = r->ctx;
    BUF_LOCAL struct buf globs = BUF_INIT;
    struct poller_say say = own(r, &globs);

    say.slots = ctx->ending || !say.serves ? 0 : say.slots;
    say.running = (int)(look_running(r->look) + (ctx->quiet ? queued(r) : 0));
    say.stale_after_ms = stale_us(r) / 1000;
    say.handlers = r->tags->recorded;
    say.careful = r->unheard;
    int rc = poller_store_beat(ctx->db, &ctx->owner, &say, ret, err);

    r->said_end = rc == 0 && ctx->ending && !ret->unheard && !queued(r);
    if (ctx->ending)
        return rc;
    const int counted = count_ending(r, rc, rc < 0 ? 0 : ret->ending, err);
    if (rc < 0 || (counted < 0 && !db_connected(ctx->db)))
        return counted;
    if (counted < 0 && !r->uncounted)
        log_event(LOG_WARN, "cannot count what ending dqds of this host still run", "error=%s",
                  log_quote(err->text));
    r->uncounted = counted < 0;
    return 0;
}

/* ---- what dq_event says of dqds ---- */

/* Passes come and go; a resident dqd is expected to stay. */
static int record_own(const struct registry *r, const char *verb, struct err *err)
{
    const struct context *ctx = r->ctx;
    char text[80];

    if (r->passes)
        return 0;
    snprintf(text, sizeof text, "pid %" PRIu32 ", %" PRIu32 " slots, " PACKAGE_VERSION,
             ctx->owner.pid, ctx->slots);
    return event_store_add_own(ctx->db, &ctx->owner, verb, 0, text, err);
}

/* Others may have recorded it as lost meanwhile. */
static int record_back(struct registry *r, struct err *err)
{
    char text[80], silent[WHEN_TEXT_SIZE];

    snprintf(text, sizeof text, "pid %" PRIu32 ", was silent for %s", r->ctx->owner.pid,
             when_format_rough(silent, (r->beat_us - r->back_us) / 1000));
    int rc = event_store_add_own(r->ctx->db, &r->ctx->owner, "dqd-back", r->back_us, text, err);
    if (rc == 0 || db_connected(r->ctx->db))
        r->back_us = 0;
    return rc;
}

/* Only when this dqd begins or was silent, and when another one is gone: the rest of the time it
 * costs nothing. A record that the server refuses is not worth a heartbeat. */
static int record(struct registry *r, bool fewer, struct err *err)
{
    uint64_t lost = 0;
    int rc = 0;

    if (!r->recorded)
        rc = record_own(r, "dqd-start", err);
    if (rc == 0 && r->back_us)
        rc = record_back(r, err);
    if (rc == 0 && (!r->recorded || fewer))
        rc = event_store_add_lost(r->ctx->db, &r->ctx->owner, &lost, err);
    if (rc < 0 && !db_connected(r->ctx->db))
        return rc;
    if (rc < 0 && !r->unrecorded)
        log_event(LOG_WARN, "cannot write to dq_event, so dq events lacks starts and ends of dqds",
                  "error=%s", log_quote(err->text));
    r->unrecorded = rc < 0;
    r->recorded = true;
    if (lost)
        log_event(LOG_WARN, "another dqd has fallen silent without ending", "dqds=%" PRIu64, lost);
    return 0;
}

/* ---- the duty ---- */

/* From here on no statement but those that end what has been begun. */
static int check_schema(struct registry *r, struct err *err)
{
    int rc = schema_check(r->ctx->db, err);

    if (rc != ERR_CONFIG)
        return rc;
    r->ctx->ending = true;
    r->outgrown = *err;
    return 0;
}

/* Of a decision that a clock ahead has made, and of a clock that is behind, the clock of this host
 * says which it is: it must agree with the server's. It decides nothing else. */
static int correct(struct registry *r, const struct poller_share *s, struct err *err)
{
    const int64_t off_ms = when_host_wall() - s->now_us / 1000;
    struct ahead_store_done done;

    r->doubt |= s->now_us < r->now_us - WHEN_MINUTE * 1000;
    r->now_us = s->now_us;
    if ((!s->decided_ahead && !r->doubt) || llabs(off_ms) > WHEN_MINUTE)
        return 0;
    int rc = ahead_store_correct(r->ctx->db, &done, err);
    if (rc < 0 && db_connected(r->ctx->db) && !r->uncorrected)
        log_event(LOG_WARN, "cannot correct what was decided while the database's clock was ahead",
                  "error=%s", log_quote(err->text));
    r->uncorrected = rc < 0;
    if (rc < 0)
        return db_connected(r->ctx->db) ? 0 : rc; /* with the next heartbeat */
    r->doubt = false;
    r->soon = done.schedules + done.limits > 0;
    if (r->soon)
        log_event(LOG_WARN,
                  "what was decided while the database's clock was ahead holds nothing up any more",
                  "schedules=%" PRIu64 " limits=%" PRIu64 " names=%s", done.schedules, done.limits,
                  log_quote(done.names));
    return 0;
}

int registry_beat(struct registry *r, struct err *err)
{
    struct context *ctx = r->ctx;
    struct poller_share s;
    int64_t sent_us = when_steady_us();
    int rc = say(r, &s, err);

    if (rc == 0 && s.quiet && !ctx->quiet) { /* from now on, jobs that wait count as running */
        ctx->quiet = true;
        log_event(LOG_NOTE, "this dqd is quiet: it claims nothing, until dq unquiet", "%s", "");
        sent_us = when_steady_us();
        rc = say(r, &s, err);
    }
    if (rc < 0)
        return rc;
    if (!r->beat_us)
        r->since_pass_ms = s.since_pass_ms;
    int64_t now_us = when_steady_us();
    if (!r->passes && r->beat_us && !r->back_us && now_us - r->beat_us >= stale_us(r))
        r->back_us = r->beat_us;
    r->beat_us = now_us;
    r->soon = false;
    if (s.unheard != r->unheard)
        log_event(
            s.unheard ? LOG_WARN : LOG_INFO,
            s.unheard
                ? "cannot write the heartbeat, because another session has locked its row; other dqds may consider this one dead"
                : "the heartbeat can be written again",
            "%s", "");
    r->unheard = s.unheard;
    ctx->longest_lease_ms = s.longest_lease_ms;
    ctx->next_slot_at = s.slot_at;
    ctx->has_slots = s.slots;
    ctx->open_slots = s.open_slots;
    const int64_t ahead_us = ctx->clock.ahead_us;
    if (s.shares)
        dbclock_sample(&ctx->clock, sent_us, r->beat_us, s.now_us);
    if (s.limits != r->limits || ctx->clock.ahead_us != ahead_us)
        look_limits_changed(r->look);
    r->limits = s.limits;
    if (ctx->clock.ahead_us != ahead_us)
        log_event(
            LOG_WARN,
            "the database's clock was set ahead, or this is another server; no tasks are taken back until leases are renewed",
            "server=%s", log_quote(db_server(ctx->db)));
    if (!s.quiet && ctx->quiet)
        log_event(LOG_NOTE, "this dqd claims tasks again", "%s", "");
    ctx->quiet = s.quiet;
    const bool fewer = s.alive < r->alive;
    r->alive = s.alive;
    if (s.shares != r->shares || s.share != r->share)
        log_event(LOG_DEBUG, "share of the work", "share=%u of=%u", s.share, s.shares);
    r->share = s.share;
    r->shares = s.shares;
    look_set_shares(r->look, s.shares, now_us - sent_us);
    rc = correct(r, &s, err);
    if (rc < 0)
        return rc;
    if (s.schema_compat > schema_latest && !r->outgrown.code)
        return check_schema(r, err);
    return r->recorded && !fewer && !r->back_us ? 0 : record(r, fewer, err);
}

void registry_leave(struct registry *r)
{
    BUF_LOCAL struct buf globs = BUF_INIT;
    const struct poller_say say = own(r, &globs);
    struct err err = {0};
    int rc;

    if (!r->beat_us || !db_connected(r->ctx->db))
        return;
    if (r->passes)
        rc = poller_store_pass_ended(r->ctx->db, &r->ctx->owner, &say,
                                     registry_next_pass_ms(r->since_pass_ms), &err);
    else
        rc = poller_store_leave(r->ctx->db, &r->ctx->owner, &err);
    if (rc == 0)
        rc = record_own(r, "dqd-end", &err);
    if (rc < 0)
        log_event(LOG_DEBUG, "cannot remove this dqd from the list of pollers", "error=%s",
                  log_quote(err.text));
}
