/*
 * withdraw.c - see withdraw.h. Invariant: a task that waits here when its tag is paused, its limit
 * paused or held, or this dqd quiet, is given back within half a second (later if tasks of more
 * than TAGS_MOST tags wait); one whose handler has been started goes on.
 */
#include "poller/withdraw.h"

#include "base/mem.h"
#include "base/when.h"
#include "store/fleet/limit_store.h"

#include <stdlib.h>
#include <string.h>

/* Tasks that are quick wait for less, and are never asked for. */
#define WAITS_US INT64_C(200000)
/* Tags of one question; the others have theirs next time. */
#define TAGS_MOST 200

static void give_back(const struct context *ctx, struct flight *f, struct flight_job *j)
{
    if (j->state == JOB_SENT) {
        link_send_kill(ctx->link, j->number, MESSAGE_KILL_UNSTARTED);
    } else {
        flight_unhold(f, j);
        flight_give_back_job(f, j, NULL);
    }
}

void withdraw_limit(const struct context *ctx, struct flight *f, const char *limit)
{
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(f, &at));)
        if (j->state != JOB_STARTED && strcmp(flight_limit(j), limit) == 0)
            give_back(ctx, f, j);
}

int64_t withdraw_next(const struct withdrawals *w)
{
    const bool waits = !w->ctx->runner_gone && flight_count(w->flight) > look_running(w->look);

    return waits ? w->asked_us + WAITS_US : NEVER_US;
}

/* The tags of jobs that have waited for a while, each once, and behind each its limit. */
static size_t names_of(struct withdrawals *w, const char *names[2 * TAGS_MOST])
{
    uint32_t at = w->from;
    struct flight_job *j;
    size_t n = 0;

    while (n < 2 * TAGS_MOST && (j = flight_each(w->flight, &at)))
        if (j->state != JOB_STARTED && j->leased_us <= w->asked_us - WAITS_US &&
            j->tag->asked_us != w->asked_us) {
            j->tag->asked_us = w->asked_us;
            names[n++] = j->tag->name;
            names[n++] = flight_limit(j);
        }
    w->from = n < 2 * TAGS_MOST ? 0 : at;
    return n;
}

static bool stops(const struct limit_stop *s, const struct flight_job *j)
{
    const bool pauses_tag = s->paused && (s->glob ? task_tag_glob(s->name, j->tag->name)
                                                  : strcmp(s->name, j->tag->name) == 0);
    const bool stops_limit = s->held || (s->paused && !s->glob);

    return pauses_tag || (stops_limit && strcmp(s->name, flight_limit(j)) == 0);
}

static bool is_stopped(const struct flight_job *j, const struct limit_stop *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (stops(&s[i], j))
            return true;
    return false;
}

int withdraw_run(struct withdrawals *w, struct err *err)
{
    const char *names[2 * TAGS_MOST];
    struct limit_stop *stops = NULL;
    struct flight_job *j;
    size_t n, count = 0;

    const bool all = w->ctx->quiet;
    w->asked_us = when_steady_us();
    n = all ? 0 : names_of(w, names);
    int rc = n ? limit_store_stops(w->ctx->db, names, n, &stops, &count, err) : 0;
    for (uint32_t at = 0; (all || count) && (j = flight_each(w->flight, &at));)
        if (j->state != JOB_STARTED && (all || is_stopped(j, stops, count)))
            give_back(w->ctx, w->flight, j);
    limit_store_stops_free(stops, count);
    return rc;
}
