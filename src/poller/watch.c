/*
 * watch.c - see watch.h. Invariant: the runner is not blamed for a silence during which this
 * process did not run itself.
 */
#include "poller/watch.h"

#include "base/log.h"

#include <sys/param.h>

/* A tick later than this means that we were stopped ourselves. */
#define STALL_US INT64_C(1000000)
/* A runner that is silent for longer is taken for dead: far more than any machine is busy for, and
 * soon enough for a half of most leases to be left. */
#define PING_LIMIT_US INT64_C(10000000)
/* A handlers file takes milliseconds to read. */
#define RELOAD_LIMIT_US INT64_C(10000000)

static int64_t limit_us(const struct context *ctx)
{
    return MIN(context_lease_us(ctx) / 2, PING_LIMIT_US);
}

void watch_init(struct watch *w, int64_t now_us)
{
    *w = (struct watch){.ping_sent_us = now_us, .ticked_us = now_us};
}

static void kill_runner(struct link *link)
{
    pid_t pid = link_pid(link);
    bool killed = link_kill(link);

    log_event(LOG_ERROR,
              killed ? "the runner does not respond; killing it"
                     : "the runner does not respond, and dqd has no right to kill it",
              "pid=%d", (int)pid);
    if (!killed)
        link_give_up(link);
}

/* The runner goes on meanwhile: only the new table waits. */
static void warn_reload(struct watch *w, const struct context *ctx, int64_t now_us)
{
    if (!w->reload_us || now_us - w->reload_us < RELOAD_LIMIT_US)
        return;
    log_event(LOG_WARN, "still waiting for the handlers file; the old handlers stay in effect",
              "file=%s", log_quote(ctx->conf->dqd.handlers));
    w->reload_us = 0;
}

void watch_reload(struct watch *w, int64_t now_us)
{
    w->reload_us = now_us;
}

void watch_reloaded(struct watch *w)
{
    w->reload_us = 0;
}

void watch_run(struct watch *w, const struct context *ctx, bool jobs, int64_t now_us)
{
    int64_t silent_us = now_us - w->ping_sent_us;
    bool stalled = now_us - w->ticked_us > STALL_US;

    w->ticked_us = now_us;
    warn_reload(w, ctx, now_us);
    if (ctx->runner_gone || !jobs)
        return;
    if (stalled) {
        w->ping_sent_us = now_us;
    } else if (w->ping_answered == w->ping_sent) {
        if (silent_us > limit_us(ctx) / 3) {
            w->ping_sent_us = now_us;
            link_send_ping(ctx->link, ++w->ping_sent);
        }
    } else if (silent_us > limit_us(ctx)) {
        kill_runner(ctx->link);
        w->ping_sent_us = now_us;
    }
}

int64_t watch_next(const struct watch *w, const struct context *ctx, bool jobs)
{
    bool answered = w->ping_answered == w->ping_sent;

    if (ctx->runner_gone || !jobs)
        return NEVER_US;
    return w->ping_sent_us + (answered ? limit_us(ctx) / 3 : limit_us(ctx)) + 1000;
}

void watch_answered(struct watch *w, uint64_t ping)
{
    w->ping_answered = ping;
}
