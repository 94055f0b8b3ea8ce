/*
 * duty.c - what the poller asks of the database, in which order, and what happens when there is
 * none. Invariant: after a failure no statement is made before the time that was set for the next
 * try, and where the server refuses one duty's statement, none of that duty; results and leases are
 * kept meanwhile.
 */
#include "poller/duty.h"

#include "base/log.h"
#include "base/when.h"
#include "poller/state.h"
#include "store/db_connect.h"
#include "store/schema.h"
#include "store/settlement.h"

#include <string.h>
#include <sys/param.h>

#define BACKOFF_MIN_US INT64_C(100000)
#define BACKOFF_MAX_US INT64_C(5000000)
#define SAY_AGAIN_US INT64_C(600000000) /* a trouble that lasts is not said at every try */

/* One duty of the poller: `next` tells when (microseconds, NEVER_US: not at all), `run` does it. */
struct duty {
    const char *name;
    int64_t (*next)(const struct poller *p);
    int (*run)(struct poller *p, struct err *err); /* asks the database */
};

/* In the order of their urgency: leases keep what we have, even where the connection breaks at
 * every result; results free tasks and slots, and only then new work is taken. */
static const struct duty duties[DUTY_COUNT] = {
    {"recover", claim_recover_next, claim_recover},
    {"renew", lease_renew_next, lease_renew},
    {"settle", settle_next, settle_flush},
    {"load", flight_next, flight_load},
    {"beat", registry_next, registry_beat},
    {"claim", claim_next, claim_run},
    {"check", lease_check_next, lease_check},
    {"reap", upkeep_reap_next, upkeep_reap},
    {"retention", upkeep_retention_next, upkeep_retention},
};

/* Never so long that a renewal, which is due when a third of the lease is over, would not get
 * several tries. */
static int64_t back_off(const struct poller *p, int64_t *backoff_us, int64_t now_us)
{
    int64_t most_us = MIN(BACKOFF_MAX_US, p->conf->dqd.lease_ms * 1000 / 8);

    *backoff_us = *backoff_us ? MIN(2 * *backoff_us, most_us) : BACKOFF_MIN_US;
    return now_us + *backoff_us / 2 + (int64_t)(poller_random() % (uint64_t)*backoff_us);
}

/* Each kind of failure is logged once, and every ten minutes while it lasts. */
static void database_away(struct poller *p, const char *what, const struct err *err, int64_t now_us)
{
    unsigned kind = 1u << -err->code;

    if (now_us >= p->troubles.away_said_us + SAY_AGAIN_US)
        p->troubles.away_said = 0;
    if (!p->troubles.away_said)
        p->troubles.away_said_us = now_us;
    log_event(p->troubles.away_said & kind ? LOG_DEBUG : LOG_ERROR, what, "error=%s",
              log_quote(err->text));
    p->troubles.away_said |= kind;
    p->troubles.away = *err;
    if (!p->troubles.away_us)
        p->troubles.away_us = now_us;
    db_close(p->db);
    p->troubles.retry_us = back_off(p, &p->troubles.backoff_us, now_us);
}

static void duty_failed(struct poller *p, size_t i, const struct err *err, int64_t now_us)
{
    struct duty_trouble *t = &p->troubles.duties[i];
    bool news = strcmp(t->said.text, err->text) != 0 || now_us >= t->said_us + SAY_AGAIN_US;

    log_event(news ? LOG_ERROR : LOG_DEBUG,
              duties[i].run == claim_run ? "the server refuses, tasks are left waiting"
                                         : "the server refuses, everything else goes on",
              "duty=%s error=%s", duties[i].name, log_quote(err->text));
    if (news) {
        t->said = *err;
        t->said_us = now_us;
        t->open = true;
    }
    t->retry_us = back_off(p, &t->backoff_us, now_us);
}

static void duty_worked(struct poller *p, size_t i)
{
    struct duty_trouble *t = &p->troubles.duties[i];

    if (t->open)
        log_event(LOG_INFO, "works again", "duty=%s", duties[i].name);
    t->open = false;
    t->retry_us = t->backoff_us = t->since_us = 0;
    p->troubles.backoff_us = p->troubles.retry_us = 0;
}

/* A pass does not wait until a right is granted or a disk has room: the next one will see. For
 * results it waits a lease. */
static bool pass_is_over(const struct poller *p, size_t i, int64_t now_us)
{
    return p->o->mode == POLLER_ONCE && p->flight.count == 0 &&
           (p->results.count == 0 ||
            now_us - p->troubles.duties[i].since_us > p->conf->dqd.lease_ms * 1000);
}

/* A pass says beforehand why it will stand. */
static void trouble_begins(struct poller *p, size_t i, int64_t now_us)
{
    char text[WHEN_TEXT_SIZE];

    p->troubles.duties[i].since_us = now_us;
    if (p->o->mode == POLLER_ONCE && p->results.count && duties[i].run == settle_flush)
        log_event(
            LOG_WARN,
            "this pass waits for results to be written down, else their tasks run again when their lease has ended",
            "at_most=%s results=%zu", when_format_duration(text, p->conf->dqd.lease_ms),
            p->results.count);
}

/* Whether other duties may be tried now. */
static bool statement_failed(struct poller *p, size_t i, const struct err *err)
{
    int64_t now_us = when_steady_us();

    if (err->code == ERR_TRANSIENT) {
        log_event(LOG_DEBUG, "statement rolled back, tried again", "duty=%s error=%s",
                  duties[i].name, log_quote(err->text));
        p->troubles.retry_us = now_us + 1000 + (int64_t)(poller_random() % 20000);
        return false;
    }
    if (!db_connected(p->db)) {
        database_away(p, "the database failed, running handlers go on", err, now_us);
        return false;
    }
    if (!p->troubles.duties[i].since_us)
        trouble_begins(p, i, now_us);
    if (pass_is_over(p, i, now_us)) {
        poller_end(p, err->code, err->text);
        return false;
    }
    duty_failed(p, i, err, now_us);
    return true;
}

/* A connection alone does not mean that the database is back: a server that is read-only or has
 * lost its cluster takes it, too. The heartbeat is a write. A server that refuses it for a reason
 * of its own, such as a missing right, is there. */
static int prove_back(struct poller *p, struct err *err)
{
    int rc = registry_beat(p, err);

    return db_connected(p->db) ? 0 : rc;
}

/* Whether statements can be made now. Connects when that is due. */
static bool database_ready(struct poller *p)
{
    int64_t now_us = when_steady_us();
    struct err err = {0};
    size_t packet;
    int rc;

    if (now_us < p->troubles.retry_us)
        return false;
    if (db_connected(p->db))
        return true;
    rc = db_connect(p->db, &err);
    if (rc == 0 && (rc = settlement_max_packet(p->db, &packet, &err)) < 0)
        db_close(p->db);
    if (rc == 0 && !p->troubles.schema_known)
        rc = schema_check(p->db, &err);
    if (rc == 0) {
        p->troubles.schema_known = true;
        rc = p->troubles.away_us ? prove_back(p, &err) : 0;
    }
    if (rc == 0) {
        log_event(LOG_INFO, p->troubles.away_us ? "the database is back" : "connected", "server=%s",
                  log_quote(db_server(p->db)));
        p->troubles.away_us = 0;
        p->troubles.away_said = 0;
        return true;
    }
    if (!p->troubles.schema_known &&
        (p->o->mode == POLLER_ONCE ||
         (rc != ERR_UNAVAILABLE && rc != ERR_LOST && rc != ERR_TRANSIENT && rc != ERR_LOCKED)))
        poller_end(p, rc, err.text);
    else
        database_away(p, "no database, tried again later", &err, now_us);
    return false;
}

static int64_t next_of(const struct poller *p, size_t i)
{
    return MAX(duties[i].next(p), p->troubles.duties[i].retry_us);
}

void duty_run(struct poller *p)
{
    for (size_t i = 0; i < DUTY_COUNT; i++) {
        struct err err = {0};

        if (p->phase == PHASE_END || next_of(p, i) > when_steady_us())
            continue;
        if (!database_ready(p))
            return;
        if (duties[i].run(p, &err) == 0)
            duty_worked(p, i);
        else if (!statement_failed(p, i, &err))
            return;
    }
}

int64_t duty_next(const struct poller *p)
{
    int64_t next = NEVER_US;

    for (size_t i = 0; i < DUTY_COUNT; i++)
        next = MIN(next, next_of(p, i));
    return MAX(next, p->troubles.retry_us);
}
