/*
 * trouble.c - see trouble.h. Invariant: a failure that repeats costs the server and the log little.
 */
#include "poller/trouble.h"

#include "base/log.h"
#include "base/retry.h"

#include <string.h>
#include <sys/param.h>

/* The first pause outlasts a hiccup; the last is short against the lease, and for an operator
 * who has just started the server. */
#define BACKOFF_MIN_US INT64_C(100000)
#define BACKOFF_MAX_US INT64_C(5000000)
/* For records: a table that another session has locked costs each try a second, in which no task is
 * claimed. */
#define RECORD_MIN_US INT64_C(5000000)
#define RECORD_MAX_US INT64_C(80000000)

/* Random, so that many pollers do not come back at once. */
static int64_t back_off(int64_t *backoff_us, int64_t min_us, int64_t max_us, int64_t now_us)
{
    *backoff_us = retry_pause(*backoff_us, min_us, max_us);
    return now_us + *backoff_us / 2 + (int64_t)(context_random() % (uint64_t)*backoff_us);
}

/* Short enough for several tries of a renewal, which is due when a third of the lease is over. */
static int64_t soon(const struct context *ctx, int64_t *backoff_us, int64_t now_us)
{
    return back_off(backoff_us, BACKOFF_MIN_US, MIN(BACKOFF_MAX_US, context_lease_us(ctx) / 8),
                    now_us);
}

void trouble_failed(struct trouble *t, const struct context *ctx, enum trouble_use use,
                    const char *duty, const char *what, const struct err *err, int64_t now_us)
{
    bool news = strcmp(t->said.text, err->text) != 0 || now_us >= t->said_us + TROUBLE_AGAIN_US;

    log_event(news ? LOG_ERROR : LOG_DEBUG, what, "duty=%s error=%s", duty, log_quote(err->text));
    if (news) {
        t->said = *err;
        t->said_us = now_us;
        t->open = true;
    }
    t->retry_us = use == TROUBLE_RECORD
                      ? back_off(&t->backoff_us, RECORD_MIN_US, RECORD_MAX_US, now_us)
                      : soon(ctx, &t->backoff_us, now_us);
}

void trouble_goes_on(struct trouble *t)
{
    t->retry_us = t->backoff_us = 0;
}

void trouble_over(struct trouble *t, const char *duty)
{
    if (t->open)
        log_event(LOG_INFO, "works again", "duty=%s", duty);
    t->open = false;
    t->retry_us = t->backoff_us = t->since_us = 0;
}

void trouble_outage(struct outage *o, const struct context *ctx, const char *what,
                    const struct err *err, int64_t now_us)
{
    unsigned kind = 1u << -err->code;

    if (now_us >= o->said_us + TROUBLE_AGAIN_US)
        o->said = 0;
    if (!o->said)
        o->said_us = now_us;
    log_event(o->said & kind ? LOG_DEBUG : LOG_ERROR, what, "error=%s", log_quote(err->text));
    o->said |= kind;
    o->last = *err;
    if (!o->since_us)
        o->since_us = now_us;
    db_close(ctx->db);
    o->retry_us = soon(ctx, &o->backoff_us, now_us);
}

void trouble_outage_over(struct outage *o)
{
    o->since_us = 0;
    o->said = 0;
}
