/*
 * duty.c - what the poller asks of the database, in which order, and what happens when there is none. Invariant: after a failure no
 * statement is made before the time that was set for the next try; results and leases are kept meanwhile.
 */
#include "poller/state.h"

#include "base/log.h"
#include "base/when.h"
#include "store/schema.h"

#define BACKOFF_MIN_US INT64_C(100000)
#define BACKOFF_MAX_US INT64_C(5000000)

/* One duty of the poller: `next` tells when (microseconds, NEVER_US: not at all), `run` does it. */
struct duty {
    const char *name;
    int64_t (*next)(const struct poller *p);
    int (*run)(struct poller *p, struct err *err); /* asks the database; an error puts all duties off */
};

/* In the order of their urgency: results free tasks and slots, leases keep them, and only then new work is taken. */
static const struct duty duties[] = {
    {"recover", claim_recover_next, claim_recover},
    {"settle", settle_next, settle_flush},
    {"renew", lease_renew_next, lease_renew},
    {"load", flight_next, flight_load},
    {"beat", registry_next, registry_beat},
    {"claim", claim_next, claim_run},
    {"check", lease_check_next, lease_check},
    {"reap", upkeep_reap_next, upkeep_reap},
    {"retention", upkeep_retention_next, upkeep_retention},
};
#define DUTIES (sizeof duties / sizeof duties[0])

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void back_off(struct poller *p, int64_t now_us)
{
    p->backoff_us = p->backoff_us ? earlier(2 * p->backoff_us, BACKOFF_MAX_US) : BACKOFF_MIN_US;
    p->db_retry_us = now_us + p->backoff_us / 2 + (int64_t)(poller_random() % (uint64_t)p->backoff_us);
}

static void statement_failed(struct poller *p, const char *duty, const struct err *err)
{
    int64_t now_us = when_steady_us();

    if (err->code == ERR_TRANSIENT) {
        log_event(LOG_DEBUG, "statement rolled back, tried again", "duty=%s error=%s", duty, log_quote(err->text));
        p->db_retry_us = now_us + 1000 + (int64_t)(poller_random() % 20000);
        return;
    }
    if (p->o->mode == POLLER_ONCE && p->job_count == 0 && (err->code == ERR_DENIED || err->code == ERR_CONFIG)) {
        poller_end(p, err->code, err->text); /* a pass does not wait for a right to be granted: the next one will see */
        return;
    }
    if (err->code == ERR_LOST || err->code == ERR_UNAVAILABLE)
        db_close(p->db);
    if (p->backoff_us == 0 || (err->code != ERR_LOST && err->code != ERR_UNAVAILABLE))
        log_event(LOG_ERROR, "the database failed, running handlers go on", "duty=%s error=%s", duty, log_quote(err->text));
    back_off(p, now_us);
}

/* Whether statements can be made now. Connects when that is due. */
static bool database_ready(struct poller *p)
{
    int64_t now_us = when_steady_us();
    struct err err = {0};
    int rc;

    if (now_us < p->db_retry_us)
        return false;
    if (db_connected(p->db))
        return true;
    rc = db_connect(p->db, &err);
    if (rc == 0 && !p->schema_known)
        rc = schema_check(p->db, &err);
    if (rc == 0) {
        p->schema_known = true;
        log_event(LOG_INFO, p->away_us ? "the database is back" : "connected", "server=%s", log_quote(db_server(p->db)));
        p->away_us = 0;
        return true;
    }
    if (!p->away_us)
        p->away_us = now_us;
    if (!p->schema_known && (p->o->mode == POLLER_ONCE || (rc != ERR_UNAVAILABLE && rc != ERR_LOST && rc != ERR_TRANSIENT))) {
        poller_end(p, rc, err.text);
        return false;
    }
    log_event(p->backoff_us ? LOG_DEBUG : LOG_ERROR, "no database, tried again later", "error=%s", log_quote(err.text));
    db_close(p->db);
    back_off(p, now_us);
    return false;
}

void duty_run(struct poller *p)
{
    for (size_t i = 0; i < DUTIES; i++) {
        struct err err = {0};

        if (p->phase == PHASE_END || duties[i].next(p) > when_steady_us())
            continue;
        if (!database_ready(p))
            return;
        if (duties[i].run(p, &err) < 0) {
            statement_failed(p, duties[i].name, &err);
            return;
        }
        p->backoff_us = 0;
        p->db_retry_us = 0;
    }
}

int64_t duty_next(const struct poller *p)
{
    int64_t next = NEVER_US;

    for (size_t i = 0; i < DUTIES; i++)
        next = earlier(next, duties[i].next(p));
    return next == NEVER_US || next > p->db_retry_us ? next : p->db_retry_us;
}
