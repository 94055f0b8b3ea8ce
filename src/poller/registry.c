/*
 * registry.c - see registry.h. Invariant: while no heartbeat has succeeded, all work is our share.
 */
#include "poller/registry.h"

#include "base/log.h"
#include "base/when.h"
#include "store/poller_store.h"

/* A poller that misses this many heartbeats is dead: two may be lost to a slow statement and a
 * reconnect. */
#define STALE_BEATS 3

void registry_init(struct registry *r, struct context *ctx, struct look *look, const char *mode)
{
    *r = (struct registry){.ctx = ctx, .look = look, .mode = mode, .shares = 1};
}

unsigned registry_share(const struct registry *r)
{
    return r->share;
}

unsigned registry_shares(const struct registry *r)
{
    return r->shares;
}

int64_t registry_next(const struct registry *r)
{
    return r->beat_us ? r->beat_us + r->ctx->conf->dqd.heartbeat_ms * 1000 : 0;
}

int registry_beat(struct registry *r, struct err *err)
{
    struct context *ctx = r->ctx;
    struct poller_share s;
    int64_t sent_us = when_steady_us();
    int rc = poller_store_beat(ctx->db, &ctx->owner, r->mode, (int)ctx->slots,
                               (int)look_running(r->look),
                               STALE_BEATS * ctx->conf->dqd.heartbeat_ms, r->unheard, &s, err);

    if (rc < 0)
        return rc;
    r->beat_us = when_steady_us();
    if (s.unheard != r->unheard)
        log_event(
            s.unheard ? LOG_WARN : LOG_INFO,
            s.unheard
                ? "cannot write the heartbeat, because another session has locked its row; other dqds may consider this one dead"
                : "the heartbeat can be written again",
            "%s", "");
    r->unheard = s.unheard;
    if (s.shares)
        dbclock_sample(&ctx->clock, sent_us, r->beat_us, s.now_us);
    if (s.shares != r->shares || s.share != r->share)
        log_event(LOG_DEBUG, "share of the work", "share=%u of=%u", s.share, s.shares);
    r->share = s.share;
    r->shares = s.shares;
    look_set_shares(r->look, s.shares);
    return 0;
}

void registry_leave(struct registry *r)
{
    struct err err = {0};

    if (r->beat_us && db_connected(r->ctx->db) &&
        poller_store_leave(r->ctx->db, &r->ctx->owner, &err) < 0)
        log_event(LOG_DEBUG, "cannot remove this dqd from the list of pollers", "error=%s",
                  log_quote(err.text));
}
