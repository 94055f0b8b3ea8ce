/*
 * withdraw.c - see withdraw.h. Invariant: a task that waits here when its tag is paused, its limit
 * paused, held or closed, or this dqd quiet, is given back within half a second (later if tasks of
 * more than TAGS_MOST tags wait), and after LOOK_WAIT_US if quick tasks have become slow; one whose
 * handler has been started goes on.
 */
#include "poller/withdraw.h"

#include "base/mem.h"
#include "base/when.h"
#include "store/fleet/limit_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

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
        if (j->state != JOB_STARTED && j->claimed_us <= w->asked_us - WAITS_US &&
            j->tag->asked_us != w->asked_us) {
            j->tag->asked_us = w->asked_us;
            names[n++] = j->tag->name;
            names[n++] = flight_limit(j);
        }
    w->from = n < 2 * TAGS_MOST ? 0 : at;
    return n;
}

/* Whether a claim would get none of its tasks, whatever runs. */
static bool stops(const struct limit_row *s, const struct flight_job *j)
{
    const bool is_limit = strcmp(s->name, flight_limit(j)) == 0;

    if (!is_limit && !(s->is_pattern ? task_tag_glob(s->name, j->tag->name)
                                     : strcmp(s->name, j->tag->name) == 0))
        return false;
    const enum limit_why why = limit_ask(&s->limit, 0, s->now_at, 0).why;
    return why == LIMIT_PAUSED || (is_limit && why != LIMIT_OPEN && why != LIMIT_RATE);
}

/* Whether it has waited for long, and many of its tag with it. before_us: of the last question;
 * what the runner had started by then has been reported. */
static bool is_crowded(const struct withdrawals *w, const struct flight_job *j, int64_t before_us)
{
    struct tag_state *t = j->tag;

    if (j->claimed_us > w->asked_us - LOOK_WAIT_US)
        return false;
    if (t->crowded_us != w->asked_us)
        t->crowded = look_tag_is_crowded(&t->look, w->look->set.slots,
                                         before_us - MAX(t->look.started_us, j->claimed_us));
    t->crowded_us = w->asked_us;
    return t->crowded;
}

static bool is_stopped(const struct context *ctx, const struct flight_job *j,
                       const struct limit_row *s, size_t count)
{
    bool stopped = ctx->quiet;

    for (size_t i = 0; !stopped && i < count; i++)
        stopped = stops(&s[i], j);
    return stopped;
}

int withdraw_run(struct withdrawals *w, struct err *err)
{
    const char *names[2 * TAGS_MOST];
    struct limit_row *rows = NULL;
    struct flight_job *j;
    size_t count = 0;

    const int64_t before_us = w->asked_us;
    w->asked_us = when_steady_us();
    const size_t n = names_of(w, names);
    int rc = n ? limit_store_stops(w->ctx->db, names, n, &rows, &count, err) : 0;
    for (uint32_t at = 0; (j = flight_each(w->flight, &at));)
        if (j->state != JOB_STARTED &&
            (is_stopped(w->ctx, j, rows, count) || is_crowded(w, j, before_us)))
            give_back(w->ctx, w->flight, j);
    limit_store_free(rows, count);
    return rc;
}
