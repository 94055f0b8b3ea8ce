/*
 * lease.c - keeping what was claimed. Invariant: a job's deadline, here and in the runner, is never
 * later than the end of its lease by the database's clock, as it counts from before the statement
 * was sent.
 */
#include "poller/lease.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "poller/state.h"
#include "store/lease_store.h"
#include "store/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

/* A task that is claimed and waits in the runner is started only so long after it was last known to
 * be ours. More often than that it is asked. */
#define VOUCH_MIN_US INT64_C(500000)

/* Work younger than this is not looked after yet: most of it is gone before it would be our
 * turn. */
static int64_t check_age_us(const struct poller *p)
{
    return p->conf->dqd.poll_interval_ms * 500;
}

static int64_t renew_age_us(const struct poller *p)
{
    return p->conf->dqd.lease_ms * 1000 / 3;
}

int64_t lease_vouch_us(const struct poller *p)
{
    int64_t interval_us = p->conf->dqd.poll_interval_ms * 1000;

    return interval_us > VOUCH_MIN_US ? interval_us : VOUCH_MIN_US;
}

/* A lease that could not be renewed is tried again after this part of it. */
#define RENEW_AGAIN_PART 20

static int by_id(const void *a, const void *b)
{
    const struct claim_ref *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

/* A result that could not be recorded for so many leases is not waited for any longer. */
#define RESULT_LEASES 10

/* Results that wait for the database: renewed like what runs, so that nobody repeats what has been
 * done. */
static bool result_kept(const struct poller *p, const struct settle_item *r)
{
    return r->leased_us - r->queued_us < RESULT_LEASES * p->conf->dqd.lease_ms * 1000;
}

/* References to the open tasks of the jobs whose claim or renewal is at least `age` old, and
 * with_results to those whose result waits; sorted by id, so that every poller locks rows in the
 * same order. */
static struct claim_ref *refs_of(const struct poller *p, int64_t now_us, int64_t age_us,
                                 bool with_results, size_t *ret_count)
{
    struct claim_ref *refs;
    size_t n = with_results ? p->results.count : 0;

    for (size_t i = 0; i < p->flight.cap; i++)
        if (p->flight.jobs[i])
            n += p->flight.jobs[i]->open;
    refs = mem_alloc((n ? n : 1) * sizeof *refs);
    n = 0;
    for (size_t i = 0; i < p->flight.cap; i++) {
        const struct flight_job *j = p->flight.jobs[i];

        if (!j || now_us - j->leased_us < age_us)
            continue;
        for (uint32_t k = 0; k < j->count; k++)
            if (!j->flight[k].ended && !j->flight[k].lost)
                refs[n++] = (struct claim_ref){j->flight[k].id, j->flight[k].version};
    }
    for (size_t i = 0; with_results && i < p->results.count; i++)
        if (now_us - p->results.items[i].leased_us >= age_us &&
            result_kept(p, &p->results.items[i]))
            refs[n++] = (struct claim_ref){p->results.items[i].s.id, p->results.items[i].s.version};
    qsort(refs, n, sizeof *refs, by_id);
    *ret_count = n;
    return refs;
}

static bool is_lost(const struct claim_ref *refs, const bool *lost, size_t n, uint64_t id)
{
    struct claim_ref key = {id, 0};
    const struct claim_ref *at = bsearch(&key, refs, n, sizeof *refs, by_id);

    return at && lost[at - refs];
}

/* Tasks that are no longer ours: their handlers are killed, a batch only when none of its tasks is
 * left; one that has not begun is given back, because its lines name them. */
static void drop_lost(struct poller *p, const struct claim_ref *refs, const bool *lost, size_t n)
{
    for (size_t i = 0; i < p->flight.cap; i++) {
        struct flight_job *j = p->flight.jobs[i];
        uint32_t ours = 0;
        bool some = false;

        if (!j)
            continue;
        for (uint32_t k = 0; k < j->count; k++) {
            struct flight_task *f = &j->flight[k];

            if (!f->lost && !f->ended && is_lost(refs, lost, n, f->id)) {
                f->lost = some = true;
                log_event(LOG_NOTE, "task was cancelled or taken back, its handler is stopped",
                          "id=%" PRIu64 " tag=%s", f->id, log_quote(j->tag->name));
            }
            ours += !f->lost && !f->ended;
        }
        if (ours == 0 && j->open > 0 && !j->killed && j->state != JOB_HELD) {
            j->killed = true;
            link_send_kill(p->link, j->number, MESSAGE_KILL_CANCELLED);
        } else if (some && j->state == JOB_SENT) {
            link_send_kill(p->link, j->number, MESSAGE_KILL_UNSTARTED);
        }
    }
}

static bool any(const bool *lost, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lost[i])
            return true;
    return false;
}

static int64_t next_after(const struct poller *p, int64_t last_us, int64_t age_us)
{
    int64_t next = NEVER_US;

    for (size_t i = 0; i < p->flight.cap; i++) {
        const struct flight_job *j = p->flight.jobs[i];

        if (j && j->open > 0) {
            int64_t old_enough = j->leased_us + age_us;

            if (old_enough < next)
                next = old_enough;
        }
    }
    return next != NEVER_US && next < last_us + age_us ? last_us + age_us : next;
}

int64_t lease_check_next(const struct poller *p)
{
    return p->runner_gone ? NEVER_US : next_after(p, p->leases.check_us, check_age_us(p));
}

/* For what waits in the runner: at sent_us all of it was ours but what has been dropped. A slow
 * database must not keep it waiting for ever. */
static void vouch(struct poller *p, int64_t sent_us)
{
    int64_t took_us = when_steady_us() - sent_us, most_us = lease_vouch_us(p);

    link_send_vouch(p->link, sent_us + MAX(2 * took_us, most_us));
}

int lease_check(struct poller *p, struct err *err)
{
    int64_t now_us = when_steady_us();
    size_t n;
    struct claim_ref *refs = refs_of(p, now_us, check_age_us(p), false, &n);
    bool *lost = mem_zero(n + 1, sizeof *lost);
    int rc = 0;

    p->leases.check_us = now_us;
    if (n)
        rc = lease_store_check(p->db, &p->owner, refs, n, lost, err);
    if (rc >= 0 && any(lost, n))
        drop_lost(p, refs, lost, n);
    if (rc >= 0)
        vouch(p, now_us);
    free(refs);
    free(lost);
    return rc;
}

int64_t lease_renew_next(const struct poller *p)
{
    int64_t age_us = renew_age_us(p),
            next = p->runner_gone ? NEVER_US : next_after(p, p->leases.renew_us, age_us);

    for (size_t i = 0; i < p->results.count; i++)
        if (p->results.items[i].leased_us + age_us < next && result_kept(p, &p->results.items[i]))
            next = p->results.items[i].leased_us + age_us;
    if (next != NEVER_US && next < p->leases.renew_us + age_us)
        next = p->leases.renew_us + age_us;
    return p->leases.again_us ? MIN(p->leases.again_us, next) : next;
}

static bool any_fault(const struct rows_faults *f, const struct flight_job *j)
{
    for (uint32_t k = 0; f->count && k < j->count; k++)
        if (!j->flight[k].ended && !j->flight[k].lost && rows_faults_find(f, j->flight[k].id))
            return true;
    return false;
}

/* The leases of these rows go on to their end: they are tried again soon, and the log says it
 * once. */
static void note_faults(struct poller *p, const struct rows_faults *f, int64_t now_us)
{
    p->leases.again_us = f->count ? now_us + p->conf->dqd.lease_ms * 1000 / RENEW_AGAIN_PART : 0;
    if (f->count && !p->leases.faulty)
        log_event(LOG_WARN, "leases cannot be renewed, the others are",
                  "tasks=%zu id=%" PRIu64 " error=%s", f->count, f->items[0].id,
                  log_quote(f->items[0].err.text));
    else if (!f->count && p->leases.faulty)
        log_event(LOG_INFO, "all leases can be renewed again", "%s", "");
    p->leases.faulty = f->count > 0;
}

/* Takes along what is half as old as it has to be: what just missed a renewal would be two thirds
 * through its lease at the next, and a third of the lease would have to do for all that may go
 * wrong. */
int lease_renew(struct poller *p, struct err *err)
{
    int64_t sent_us = when_steady_us(), age_us = renew_age_us(p) / 2;
    size_t n, jobs = 0;
    struct claim_ref *refs = refs_of(p, sent_us, age_us, true, &n);
    bool *lost = mem_zero(n + 1, sizeof *lost);
    uint32_t *numbers = mem_alloc((p->flight.cap + 1) * sizeof *numbers);
    struct rows_faults faults = {0};
    int rc = 0;

    if (n)
        rc = lease_store_renew(p->db, &p->owner, refs, n, p->conf->dqd.lease_ms, p->leases.faulty,
                               lost, &faults, err);
    if (rc < 0)
        goto out;
    p->leases.renew_us = sent_us;
    note_faults(p, &faults, sent_us);
    if (any(lost, n))
        drop_lost(p, refs, lost, n);
    for (size_t i = 0; i < p->flight.cap; i++) {
        struct flight_job *j = p->flight.jobs[i];

        if (!j || sent_us - j->leased_us < age_us || any_fault(&faults, j))
            continue;
        j->leased_us = sent_us;
        j->deadline_us = sent_us + p->conf->dqd.lease_ms * 1000;
        if (j->state != JOB_HELD)
            numbers[jobs++] = j->number;
    }
    for (size_t i = 0; i < p->results.count; i++)
        if (sent_us - p->results.items[i].leased_us >= age_us &&
            !rows_faults_find(&faults, p->results.items[i].s.id))
            p->results.items[i].leased_us = sent_us;
    if (jobs)
        link_send_deadline(p->link, numbers, jobs, sent_us / 1000 + p->conf->dqd.lease_ms);
out:
    rows_faults_done(&faults);
    free(refs);
    free(lost);
    free(numbers);
    return rc;
}
