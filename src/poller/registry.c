/*
 * registry.c - telling the others that this poller lives, and learning its share of the work.
 */
#include "poller/registry.h"

#include "base/log.h"
#include "base/when.h"
#include "poller/state.h"
#include "store/poller_store.h"

/* Silent for so many heartbeats: dead. */
#define STALE_BEATS 3

int64_t registry_next(const struct poller *p)
{
    return p->registry.beat_us ? p->registry.beat_us + p->conf->dqd.heartbeat_ms * 1000 : 0;
}

int registry_beat(struct poller *p, struct err *err)
{
    struct poller_share s;
    int64_t sent_us = when_steady_us();
    int rc = poller_store_beat(p->db, &p->owner, poller_mode_name(p->o->mode), p->slots,
                               (int)p->look.running, STALE_BEATS * p->conf->dqd.heartbeat_ms,
                               p->registry.unheard, &s, err);

    if (rc < 0)
        return rc;
    p->registry.beat_us = when_steady_us();
    if (s.unheard != p->registry.unheard)
        log_event(
            s.unheard ? LOG_WARN : LOG_INFO,
            s.unheard
                ? "the heartbeat cannot be written, its row is locked by somebody: others may take this dqd for dead"
                : "the heartbeat can be written again",
            "%s", "");
    p->registry.unheard = s.unheard;
    if (s.shares)
        dbclock_sample(&p->clock, sent_us, p->registry.beat_us, s.now_us);
    if (s.shares != p->registry.shares || s.share != p->registry.share)
        log_event(LOG_DEBUG, "share of the work", "share=%u of=%u", s.share, s.shares);
    p->registry.share = s.share;
    p->registry.shares = s.shares;
    look_set_shares(&p->look, s.shares);
    wakeup_listen(&p->wakeup, p->conf); /* the directory may have been removed */
    return 0;
}

void registry_leave(struct poller *p)
{
    struct err err = {0};

    if (p->registry.beat_us && db_connected(p->db) &&
        poller_store_leave(p->db, &p->owner, &err) < 0)
        log_event(LOG_DEBUG, "could not leave the list of pollers", "error=%s",
                  log_quote(err.text));
}
