/*
 * registry.c - telling the others that this poller lives, and learning its share of the work.
 */
#include "poller/state.h"

#include "base/log.h"
#include "base/when.h"
#include "store/poller_store.h"

/* Silent for so many heartbeats: dead. */
#define STALE_BEATS 3

int64_t registry_next(const struct poller *p)
{
    return p->beat_us ? p->beat_us + p->conf->dqd.heartbeat_ms * 1000 : 0;
}

int registry_beat(struct poller *p, struct err *err)
{
    unsigned share = 0, shares = 1;
    int rc = poller_store_beat(p->db, &p->owner, poller_mode_name(p->o->mode), p->slots, (int)p->started,
                               STALE_BEATS * p->conf->dqd.heartbeat_ms, &share, &shares, err);

    if (rc < 0)
        return rc;
    p->beat_us = when_steady_us();
    if (shares != p->shares || share != p->share)
        log_event(LOG_DEBUG, "share of the work", "share=%u of=%u", share, shares);
    p->share = share;
    p->shares = shares;
    return 0;
}

void registry_leave(struct poller *p)
{
    struct err err = {0};

    if (p->beat_us && db_connected(p->db) && poller_store_leave(p->db, &p->owner, &err) < 0)
        log_event(LOG_DEBUG, "could not leave the list of pollers", "error=%s", log_quote(err.text));
}
