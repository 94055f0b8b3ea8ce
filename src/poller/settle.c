/*
 * settle.c - how attempts ended, kept until the database knows. Invariant: a result leaves the
 * queue only when the store has said whether it was applied; calling the store again with the same
 * results is safe.
 */
#include "poller/settle.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "poller/state.h"
#include "store/rows.h"
#include "store/settle_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define SETTLE_MOST 500
/* Results wait for company: not at all when nothing else is under way, longer while a queue is
 * being worked off. */
#define WAIT_RUNNING_US 2000
#define WAIT_QUEUE_US 40000
/* A claim that is due so soon after goes first: a task waits for it, and nobody for the result. */
#define CLAIM_SOON_US 2000
/* What cannot be recorded is tried again after so long, then twice as long each time. */
#define HOLD_MIN_US INT64_C(50000)
#define HOLD_MOST_US INT64_C(5000000)
#define SAY_AFTER_US INT64_C(1000000)

void settle_queue(struct settle_results *q, const struct settlement *s, int64_t leased_us)
{
    struct settle_item *r;

    if (q->count == q->cap) {
        q->cap = q->cap ? 2 * q->cap : 64;
        q->items = mem_resize(q->items, q->cap, sizeof *q->items);
    }
    r = &q->items[q->count++];
    r->s = *s;
    r->s.error = mem_strdup(s->error);
    r->s.output = s->output && s->output_size ? mem_dup(s->output, s->output_size) : NULL;
    r->queued_us = when_steady_us();
    r->leased_us = leased_us;
    r->again_us = r->hold_us = 0;
    r->said = false;
}

static void item_done(struct settle_item *r)
{
    free((char *)r->s.error);
    free((void *)r->s.output);
}

/* The first that is not kept back, and how many these are; the earliest time of one that is. */
static size_t waiting(const struct poller *p, const struct settle_item **ret_first,
                      int64_t *ret_again_us)
{
    size_t n = 0;

    *ret_first = NULL;
    *ret_again_us = NEVER_US;
    for (size_t i = 0; i < p->results.count; i++) {
        const struct settle_item *r = &p->results.items[i];

        if (!r->again_us && n++ == 0)
            *ret_first = r;
        if (r->again_us && r->again_us < *ret_again_us)
            *ret_again_us = r->again_us;
    }
    return n;
}

int64_t settle_next(const struct poller *p)
{
    const struct settle_item *first;
    int64_t again_us, at, claim_us;
    size_t n = waiting(p, &first, &again_us);

    if (n == 0)
        return again_us;
    if (n >= SETTLE_MOST || p->phase != PHASE_RUN)
        return 0;
    at = first->queued_us + (p->flight.count == 0                ? 0
                             : p->flight.count > p->look.running ? WAIT_QUEUE_US
                                                                 : WAIT_RUNNING_US);
    claim_us = p->claims.recover ? NEVER_US : look_when(&p->look);
    if (claim_us < at + CLAIM_SOON_US && at < first->queued_us + WAIT_QUEUE_US) {
        int64_t now_us = when_steady_us();

        at = MAX(claim_us, now_us) + CLAIM_SOON_US;
        if (at > first->queued_us + WAIT_QUEUE_US)
            at = first->queued_us + WAIT_QUEUE_US;
    }
    return MIN(at, again_us);
}

static void count(struct poller *p, const struct settlement *s, bool applied)
{
    if (!applied) {
        log_event(LOG_NOTE, "result not recorded: the task was cancelled or taken back meanwhile",
                  "id=%" PRIu64 " version=%" PRIu64 " outcome=%s", s->id, s->version,
                  task_outcome_name((int)s->outcome));
        return;
    }
    if (s->event == TASK_SUCCEED)
        p->results.done++;
    else if (s->event == TASK_GIVE_UP)
        p->results.failed++;
    else if (s->event == TASK_TRY_LATER || s->event == TASK_TAKE_BACK)
        p->results.retried++;
}

/* The server refused the data of a result: it is settled without its text, so that an odd byte does
 * not cost the result. */
static bool settle_bare(struct poller *p, const struct settlement *s, const struct rows_fault *f,
                        bool *applied)
{
    struct settlement bare = *s;
    struct err err;

    if (f->err.code != ERR_DATA && f->err.code != ERR_FATAL)
        return false;
    bare.output = NULL;
    bare.output_size = 0;
    bare.error = s->error ? "(the text could not be stored)" : NULL;
    if (settle_store_settle(p->db, &p->owner, &bare, 1, p->conf->dqd.history == CONF_HISTORY_ALL,
                            false, applied, NULL, &err) < 0)
        return false;
    log_event(LOG_ERROR, "output of a task cannot be stored", "id=%" PRIu64 " error=%s", s->id,
              log_quote(f->err.text));
    return true;
}

/* It stays in the queue, and is tried again after a while that grows; others are settled
 * meanwhile. */
static void keep_back(struct poller *p, struct settle_item *r, const struct rows_fault *f,
                      int64_t now_us)
{
    int64_t most_us = p->conf->dqd.lease_ms * 1000 / 8;

    if (most_us > HOLD_MOST_US)
        most_us = HOLD_MOST_US;
    r->hold_us = r->hold_us ? 2 * r->hold_us : HOLD_MIN_US;
    if (r->hold_us > most_us)
        r->hold_us = most_us;
    r->again_us = now_us + r->hold_us;
    if (!r->said && (f->err.code != ERR_LOCKED || now_us - r->queued_us > SAY_AFTER_US)) {
        log_event(LOG_WARN, "a result cannot be recorded yet, others are",
                  "id=%" PRIu64 " error=%s", r->s.id, log_quote(f->err.text));
        r->said = true;
    }
}

/* The first of those whose time has come, by their place in the queue; those that were kept
 * back only when there are no others, so that the locks of the ones are never waited for by
 * the others. */
static size_t choose(const struct poller *p, size_t at[SETTLE_MOST], bool *ret_kept)
{
    int64_t now_us = when_steady_us();
    size_t n = 0;

    for (int kept = 0; n == 0 && kept <= 1; kept++) {
        for (size_t i = 0; i < p->results.count && n < SETTLE_MOST; i++)
            if (kept ? p->results.items[i].again_us && p->results.items[i].again_us <= now_us
                     : !p->results.items[i].again_us)
                at[n++] = i;
        *ret_kept = kept == 1;
    }
    return n;
}

/* Takes what is settled out of the queue. */
static void remove_settled(struct poller *p, const size_t *at, const bool *stays, size_t n)
{
    size_t kept = 0, k = 0;

    for (size_t i = 0; i < p->results.count; i++) {
        bool settled = k < n && at[k] == i && !stays[k];

        k += k < n && at[k] == i;
        if (settled)
            item_done(&p->results.items[i]);
        else
            p->results.items[kept++] = p->results.items[i];
    }
    p->results.count = kept;
}

int settle_flush(struct poller *p, struct err *err)
{
    size_t at[SETTLE_MOST];
    struct settlement s[SETTLE_MOST] = {0};
    bool applied[SETTLE_MOST] = {false}, stays[SETTLE_MOST] = {false};
    struct rows_faults faults = {0};
    bool put_back = false, kept;
    size_t n = choose(p, at, &kept);
    int rc;

    for (size_t i = 0; i < n; i++) {
        s[i] = p->results.items[at[i]].s;
        put_back |= task_transition(s[i].event)->to == TASK_PENDING;
    }
    rc = settle_store_settle(p->db, &p->owner, s, n, p->conf->dqd.history == CONF_HISTORY_ALL, kept,
                             applied, &faults, err);
    if (rc < 0)
        goto out;
    for (size_t i = 0; i < faults.count; i++) {
        size_t k = faults.items[i].at;

        stays[k] = !settle_bare(p, &s[k], &faults.items[i], &applied[k]);
        if (stays[k])
            keep_back(p, &p->results.items[at[k]], &faults.items[i], when_steady_us());
    }
    for (size_t i = 0; i < n; i++)
        if (!stays[i])
            count(p, &s[i], applied[i]);
    remove_settled(p, at, stays, n);
    look_settled(&p->look, put_back, p->flight.count == 0);
out:
    rows_faults_done(&faults);
    return rc;
}

bool settle_stuck(const struct settle_results *q, int64_t since_us)
{
    for (size_t i = 0; i < q->count; i++)
        if (!q->items[i].again_us || q->items[i].queued_us > since_us)
            return false;
    return q->count > 0;
}

void settle_free(struct settle_results *q)
{
    for (size_t i = 0; i < q->count; i++)
        item_done(&q->items[i]);
    free(q->items);
    q->items = NULL;
    q->count = q->cap = 0;
}
