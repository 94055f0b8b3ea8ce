/*
 * duty.c - runs the duties, and deals with a database that is away. Invariant: after a failure no
 * statement is made before the time that was set for the next try, and if the server refuses one
 * duty's statement, none of that duty; results and leases are kept meanwhile.
 */
#include "poller/duty.h"

#include "base/log.h"
#include "base/when.h"
#include "store/db/db_connect.h"
#include "store/db/db_latest.h"
#include "store/row/settlement.h"
#include "store/schema/schema.h"

#include <sys/param.h>

/* A statement that was rolled back (a deadlock, say) is made again after about the time that the
 * other session's takes. */
#define ROLLED_BACK_MIN_US 1000
#define ROLLED_BACK_MORE_US 20000

/* A duty that takes longer than this is slow: a row with a long body takes about as long. */
#define SLOW_US INT64_C(20000)

void duty_init(struct duties *d, const struct look_settings *look, struct handlers *handlers,
               const char *const *globs, const char *mode, bool passes)
{
    struct context *ctx = &d->ctx;

    look_init(&d->look, look, &ctx->clock);
    /* one that ends by itself may end before all tags have had their turn */
    d->look.turn.first = (size_t)(context_random() % UINT16_MAX);
    tags_init(&d->tags, &d->look, globs, handlers);
    d->tags.passes = passes;
    minute_init(&d->minute, ctx);
    metrics_init(&d->metrics, ctx, &d->minute, &d->served);
    breaker_init(&d->breakers, ctx, &d->minute, &d->tags);
    d->holds = (struct holds){.ctx = ctx};
    settle_init(&d->results, ctx, &d->minute, &d->breakers, &d->holds);
    flight_init(&d->flight, ctx, &d->look, &d->results, &d->minute);
    d->handover = (struct handover){ctx, &d->flight};
    follow_init(&d->follow, ctx, &d->flight);
    lease_init(&d->leases, ctx, &d->flight, &d->results, &d->follow);
    registry_init(&d->registry, ctx, &d->look, &d->tags, mode, passes);
    served_init(&d->served, ctx, &d->tags);
    d->claims = (struct claims){.ctx = ctx,
                                .look = &d->look,
                                .tags = &d->tags,
                                .registry = &d->registry,
                                .handover = &d->handover,
                                .flight = &d->flight,
                                .results = &d->results,
                                .leases = &d->leases};
    d->withdrawals = (struct withdrawals){.ctx = ctx, .flight = &d->flight, .look = &d->look};
    upkeep_init(&d->upkeep, ctx, &d->look, &d->tags, &d->flight, &d->minute);
    schedule_init(&d->schedules, ctx, &d->registry);
}

void duty_free(struct duties *d)
{
    follow_free(&d->follow);
    flight_free(&d->flight);
    settle_free(&d->results);
    hold_free(&d->holds);
    breaker_free(&d->breakers);
    minute_free(&d->minute);
    upkeep_free(&d->upkeep);
    claim_free(&d->claims);
    tags_free(&d->tags);
    look_free(&d->look);
}

/* --- one duty --- */

static int64_t settle_when(const struct duties *d)
{
    struct settle_load load = {.jobs = flight_count(&d->flight),
                               .running = look_running(&d->look),
                               .next_us =
                                   claim_in_doubt(&d->claims) ? NEVER_US : look_when(&d->look)};

    return settle_next(&d->results, &load);
}

static int settle(struct duties *d, struct err *err)
{
    bool back = false;
    int rc = settle_flush(&d->results, &back, err);

    if (rc < 0)
        return rc;
    look_settled(&d->look, back, flight_count(&d->flight) == 0);
    if (rc > 0)
        wakeup_ring(&d->wakeup);
    return 0;
}

static int judge(struct duties *d, struct err *err)
{
    bool closed = false;
    int rc = breaker_run(&d->breakers, &closed, err);

    if (closed)
        wakeup_ring(&d->wakeup);
    return rc;
}

static int beat(struct duties *d, struct err *err)
{
    int rc = registry_beat(&d->registry, err);

    if (rc == 0) {
        wakeup_listen(&d->wakeup, d->ctx.conf); /* the directory may have been removed */
        metrics_write(&d->metrics, look_running(&d->look));
        schedule_heard(&d->schedules);
    }
    return rc;
}

static int schedule(struct duties *d, struct err *err)
{
    bool added = false;
    int rc = schedule_run(&d->schedules, &added, err);

    if (added && d->ctx.once)
        look_reaped(&d->look);
    else if (added)
        wakeup_ring(&d->wakeup);
    return rc;
}

/* In the order of their urgency: leases keep what we have, even if the connection breaks at every
 * result; results free tasks and slots, and only then new work is taken. FOLLOW must be before
 * SETTLE (follow.h), and so must BREAKER, or another task would try, and HOLD, for which results
 * wait. Of d: the name, when it wants to run (NEVER_US: not at all), what it does, and its purpose.
 * Nothing waits until RETENTION deletes a row. */
/* clang-format off */
#define DUTIES(X)                                                                                \
    X(RECOVER, "recover", claim_recover_next(&d->claims),                                        \
      claim_recover(&d->claims, err), PROMISE)                                                   \
    X(RENEW, "renew", lease_renew_next(&d->leases), lease_renew(&d->leases, err), PROMISE)       \
    X(FOLLOW, "follow", follow_next(&d->follow), follow_run(&d->follow, err), RECORD)            \
    X(BREAKER, "breaker", breaker_next(&d->breakers), judge(d, err), RECORD)                     \
    X(HOLD, "hold", hold_next(&d->holds), hold_flush(&d->holds, err), PROMISE)                   \
    X(SETTLE, "settle", settle_when(d), settle(d, err), PROMISE)                                 \
    X(OUTPUT, "output", settle_has_outputs(&d->results) ? 0 : NEVER_US,                          \
      settle_flush_output(&d->results, err), RECORD)                                             \
    X(LOAD, "load", handover_next(&d->handover), handover_load(&d->handover, err), PROMISE)      \
    X(BEAT, "beat", registry_next(&d->registry), beat(d, err), PROMISE)                          \
    X(SCHEDULE, "schedule", schedule_next(&d->schedules), schedule(d, err), PROMISE)             \
    X(CLAIM, "claim", claim_next(&d->claims), claim_run(&d->claims, err), PROMISE)               \
    X(CHECK, "check", lease_check_next(&d->leases), lease_check(&d->leases, err), PROMISE)       \
    X(WITHDRAW, "withdraw", withdraw_next(&d->withdrawals),                                      \
      withdraw_run(&d->withdrawals, err), PROMISE)                                               \
    X(REAP, "reap", d->flight.renewing ? NEVER_US : upkeep_reap_next(&d->upkeep),                \
      upkeep_reap(&d->upkeep, err), PROMISE)                                                     \
    X(HARVEST, "harvest", schedule_harvest_next(&d->schedules),                                  \
      schedule_harvest(&d->schedules, err), RECORD)                                              \
    X(MINUTE, "minute", minute_next(&d->minute), minute_flush(&d->minute, err), RECORD)          \
    X(RETENTION, "retention", d->flight.renewing ? NEVER_US : upkeep_retention_next(&d->upkeep), \
      upkeep_retention(&d->upkeep, err), RECORD)                                                 \
    X(SERVED, "served", served_next(&d->served), served_run(&d->served, err), PROMISE)
/* clang-format on */

#define DUTY_NAME(NAME, ...) DUTY_##NAME,
enum duty { DUTIES(DUTY_NAME) DUTY_COUNT };
_Static_assert(DUTY_COUNT <= DUTY_MOST, "struct duties has room for all");

#define DUTY_FUNCTIONS(NAME, name, next, run, use)                                                 \
    static int64_t next_##NAME(const struct duties *d)                                             \
    {                                                                                              \
        return next;                                                                               \
    }                                                                                              \
    static int run_##NAME(struct duties *d, struct err *err)                                       \
    {                                                                                              \
        return run;                                                                                \
    }
DUTIES(DUTY_FUNCTIONS)

#define DUTY_ROW(NAME, name, next, run, use) {name, next_##NAME, run_##NAME, TROUBLE_##use},
static const struct {
    const char *name;
    int64_t (*next)(const struct duties *d);
    int (*run)(struct duties *d, struct err *err);
    enum trouble_use use;
} rows[DUTY_COUNT] = {DUTIES(DUTY_ROW)};

/* --- failures --- */

/* A pass does not wait until a right is granted or a disk has room: the next one will see. For
 * results it waits a lease. Outputs keep it from nothing. */
static bool pass_is_over(const struct duties *d, enum duty which, int64_t now_us)
{
    return d->ctx.once && flight_count(&d->flight) == 0 && which != DUTY_OUTPUT &&
           (settle_count(&d->results) == 0 ||
            now_us - d->troubles[which].since_us > context_lease_us(&d->ctx));
}

/* A pass logs beforehand why it is going to wait. */
static void trouble_begins(struct duties *d, enum duty which, int64_t now_us)
{
    char text[WHEN_TEXT_SIZE];

    d->troubles[which].since_us = now_us;
    if (d->ctx.once && settle_count(&d->results) && which == DUTY_SETTLE)
        log_event(
            LOG_WARN,
            "this pass waits until results can be recorded; otherwise their tasks run again when their leases end",
            "at_most=%s results=%zu", when_format_duration(text, d->ctx.conf->dqd.lease_ms),
            settle_count(&d->results));
}

/* 1: other duties may be tried now; 0: not now; negative: dqd must end, with err. */
static int statement_failed(struct duties *d, enum duty which, const struct err *err)
{
    int64_t now_us = when_steady_us();

    if (err->code == ERR_TRANSIENT) {
        log_event(LOG_DEBUG, "statement rolled back; retrying", "duty=%s error=%s",
                  rows[which].name, log_quote(err->text));
        d->outage.retry_us =
            now_us + ROLLED_BACK_MIN_US + (int64_t)(context_random() % ROLLED_BACK_MORE_US);
        return 0;
    }
    if (!db_connected(d->ctx.db)) {
        trouble_outage(&d->outage, &d->ctx, "lost the database; running handlers continue", err,
                       now_us);
        return 0;
    }
    if (!d->troubles[which].since_us)
        trouble_begins(d, which, now_us);
    if (pass_is_over(d, which, now_us))
        return err->code;
    trouble_failed(&d->troubles[which], &d->ctx, rows[which].use, rows[which].name,
                   which == DUTY_CLAIM ? "the server refused a statement; tasks stay pending"
                                       : "the server refused a statement; other duties continue",
                   err, now_us);
    /* what is put right may count for new sessions only: a right on the database, binlog_format */
    if (err->code == ERR_DENIED || err->code == ERR_CONFIG)
        db_close(d->ctx.db);
    return 1;
}

/* A connection alone does not mean that the database is back: a server that is read-only or has
 * lost its cluster accepts it, too. The heartbeat is a write. A server that refuses it for a reason
 * of its own, such as a missing right, is there. In a cluster it may not have applied yet what was
 * committed on the one before, such as the claims of what runs here: the heartbeat waits for that.
 */
static int prove_back(struct duties *d, struct err *err)
{
    int rc = db_latest_begin(d->ctx.db, err);

    if (rc == 0)
        rc = beat(d, err);
    db_latest_end(d->ctx.db);
    return db_connected(d->ctx.db) ? 0 : rc;
}

static int connect(struct duties *d, struct err *err)
{
    struct db *db = d->ctx.db;
    const bool news = !d->schema_known || d->outage.since_us;
    size_t packet;
    int rc = db_connect(db, err);

    if (rc == 0 && (rc = settlement_max_packet(db, &packet, err)) < 0)
        db_close(db);
    if (rc == 0 && !d->schema_known)
        rc = schema_check(db, err);
    if (rc == 0) {
        d->schema_known = true;
        rc = d->outage.since_us ? prove_back(d, err) : 0;
    }
    if (rc == 0) {
        log_event(news ? LOG_INFO : LOG_DEBUG,
                  d->outage.since_us ? "the database is back" : "connected", "server=%s",
                  log_quote(db_server(db)));
        if (d->outage.since_us)
            upkeep_outage_over(&d->upkeep, d->outage.since_us);
        look_came_back(&d->look);
        trouble_outage_over(&d->outage);
    }
    return rc;
}

/* A first connection that fails for good, or in a pass at all. */
static bool cannot_begin(const struct duties *d, int rc)
{
    return !d->schema_known && (d->ctx.once || (rc != ERR_UNAVAILABLE && rc != ERR_LOST &&
                                                rc != ERR_TRANSIENT && rc != ERR_LOCKED));
}

/* 1: statements can be made now; 0: not now; negative: dqd must end, with err. Connects when that
 * is due. */
static int database_ready(struct duties *d, struct err *err)
{
    int64_t now_us = when_steady_us();
    int rc;

    if (now_us < d->outage.retry_us)
        return 0;
    if (db_connected(d->ctx.db) || (rc = connect(d, err)) == 0)
        return 1;
    if (cannot_begin(d, rc))
        return rc;
    trouble_outage(&d->outage, &d->ctx, "the database is not available; retrying", err, now_us);
    return 0;
}

/* --- all duties --- */

static int64_t due_us(const struct duties *d, enum duty which)
{
    return MAX(rows[which].next(d), d->troubles[which].retry_us);
}

/* 1: the next duty may run; 0: none may for now; negative: dqd must end, with err. */
static int run_one(struct duties *d, enum duty which, struct err *err)
{
    int rc;

    link_push(d->ctx.link); /* renewed leases, for example: a statement may take long */
    rc = database_ready(d, err);
    if (rc <= 0)
        return rc;
    if (rows[which].run(d, err) < 0)
        return statement_failed(d, which, err);
    if (which == DUTY_SETTLE && d->troubles[which].since_us && settle_refused(&d->results))
        trouble_goes_on(&d->troubles[which]);
    else
        trouble_over(&d->troubles[which], rows[which].name);
    d->outage.backoff_us = d->outage.retry_us = 0;
    return 1;
}

static int run_if_due(struct duties *d, enum duty which, struct err *err)
{
    return due_us(d, which) <= when_steady_us() ? run_one(d, which, err) : 1;
}

void duty_take_wakeup(struct duties *d)
{
    if (wakeup_take(&d->wakeup, &d->look))
        registry_beat_soon(&d->registry);
}

/* Whether a result has a place under a limit until it is recorded. */
static bool keeps_a_place(const struct settle_results *q)
{
    for (size_t i = 0; i < q->count; i++) {
        const struct tag_state *t = q->items[i].tag;

        if (!q->items[i].again_us && tags_is_limited(t, tags_handler(t->set, t)))
            return true;
    }
    return false;
}

/* After a slow duty: what it has kept waiting goes before the rest, with which it may add up, and
 * so may the claim. The statements of a round of renewals are slow, too: the next one waits for its
 * turn. What has ended has its place under a limit until it is settled. */
static int catch_up(struct duties *d, enum duty slow, struct err *err)
{
    int rc = 1;

    d->take_reports(d->take_arg);
    duty_take_wakeup(d);
    if (slow != DUTY_RENEW && !d->flight.renewing)
        rc = run_if_due(d, DUTY_RENEW, err);
    if (rc <= 0 || slow == DUTY_CLAIM)
        return rc;
    if (slow > DUTY_SETTLE && keeps_a_place(&d->results))
        for (enum duty which = DUTY_FOLLOW; rc > 0 && which <= DUTY_SETTLE; which++)
            rc = run_if_due(d, which, err);
    if (rc > 0)
        rc = run_if_due(d, DUTY_CLAIM, err);
    return rc > 0 && !d->flight.renewing ? run_if_due(d, DUTY_RENEW, err) : rc;
}

int duty_run(struct duties *d, struct err *err)
{
    for (enum duty which = 0; which < DUTY_COUNT; which++) {
        int64_t now_us = when_steady_us();
        int rc;

        if (due_us(d, which) > now_us)
            continue;
        rc = run_one(d, which, err);
        if (rc > 0 && when_steady_us() - now_us > SLOW_US)
            rc = catch_up(d, which, err);
        if (rc <= 0)
            return rc;
    }
    return 0;
}

int64_t duty_next(const struct duties *d)
{
    int64_t next = NEVER_US;

    for (enum duty which = 0; which < DUTY_COUNT; which++)
        next = MIN(next, due_us(d, which));
    return MAX(next, d->outage.retry_us);
}

void duty_set_handlers(struct duties *d, struct handlers *handlers)
{
    tags_set_handlers(&d->tags, handlers);
    served_handlers_changed(&d->served);
}

bool duty_settled(const struct duties *d)
{
    return flight_count(&d->flight) == 0 && settle_count(&d->results) == 0 &&
           (!settle_has_outputs(&d->results) || d->troubles[DUTY_OUTPUT].since_us) &&
           !hold_waits(&d->holds) && !claim_in_doubt(&d->claims);
}

const struct err *duty_refused(const struct duties *d)
{
    for (enum duty which = 0; which < DUTY_COUNT; which++)
        if (d->troubles[which].since_us)
            return &d->troubles[which].said;
    return NULL;
}
