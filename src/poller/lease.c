/*
 * lease.c - keeping what was claimed. Invariant: a job's deadline, here and in the runner, is never
 * later than the end of its lease by the database's clock, because it counts from before the
 * statement was sent.
 */
#include "poller/lease.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/row/rows.h"
#include "store/work/lease_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* A claimed task that waits in the runner may start only this long after it was last known to be
 * ours. With a short poll_interval not less, or each check would have to be done in time. */
#define VOUCH_MIN_US INT64_C(500000)
/* A lease that could not be renewed is tried again after this part of it: several times before it
 * ends. */
#define RENEW_AGAIN_PART 20
/* For which turns of a round follow each other. */
#define TURNS_US INT64_C(100000)
/* If dq_output cannot be read, each check costs a second statement. The cause, such as a missing
 * right, seldom ends soon. A lock does, but costs each try a second. */
#define BLIND_US INT64_C(60000000)
#define BLIND_LOCKED_US INT64_C(20000000)

void lease_init(struct leases *l, const struct context *ctx, struct flight *flight,
                struct settle_results *results, struct follow *follow)
{
    *l = (struct leases){.ctx = ctx, .flight = flight, .results = results, .follow = follow};
}

/* Younger work is not checked yet: most of it ends before it would be its turn. */
static int64_t check_age_us(const struct context *ctx)
{
    return conf_check_ms(ctx->conf) * 500;
}

int64_t lease_vouch_us(const struct context *ctx)
{
    return MAX(conf_check_ms(ctx->conf) * 1000, VOUCH_MIN_US);
}

static bool is_open(const struct flight_task *t)
{
    return !t->ended && !t->lost;
}

/* A job is renewed as a whole. */
static bool take_job(struct flight_job *j, struct settle_turn *turn)
{
    int64_t row_us = MAX(j->tag->look.claims.row_us, turn->row_us) * j->open;
    size_t bytes = j->body_bytes;

    for (uint32_t k = 0; k < j->count; k++)
        bytes = rows_size(bytes, j->flight[k].again);
    if (!settle_turn_take(turn, j->leased_us, j->tried_us, rows_weight(bytes, row_us)))
        return false;
    j->tried_us = turn->now_us;
    return true;
}

/* References to the open tasks of the jobs whose claim or renewal is from old_us or before. With a
 * turn: only of the jobs whose turn it is, and to the tasks whose result waits. Sorted by id, so
 * that every poller locks rows in the same order. */
static struct claim_ref *refs_of(const struct leases *l, int64_t old_us, struct settle_turn *turn,
                                 size_t *ret_count)
{
    size_t most = flight_task_count(l->flight) + settle_count(l->results), n = 0;
    struct claim_ref *refs = mem_alloc((most + 1) * sizeof *refs);
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(l->flight, &at));) {
        bool chosen = turn ? take_job(j, turn) : j->leased_us <= old_us;

        for (uint32_t k = 0; chosen && k < j->count; k++)
            if (is_open(&j->flight[k]))
                refs[n++] = (struct claim_ref){j->flight[k].id, j->flight[k].version};
    }
    if (turn)
        n += settle_refs(l->results, turn, refs + n);
    qsort(refs, n, sizeof *refs, claim_ref_compare);
    *ret_count = n;
    return refs;
}

/* Whether it is among refs, with this mark. */
static bool is_marked(const struct claim_ref *refs, const bool *marks, size_t n,
                      const struct flight_task *t)
{
    struct claim_ref key = {t->id, t->version};
    const struct claim_ref *at = bsearch(&key, refs, n, sizeof *refs, claim_ref_compare);

    return at && marks[at - refs];
}

/* Whether an open task of the job is not among those that were lost. */
static bool has_others(const struct flight_job *j, const struct claim_ref *refs, const bool *lost,
                       size_t n)
{
    for (uint32_t k = 0; k < j->count; k++)
        if (is_open(&j->flight[k]) && !is_marked(refs, lost, n, &j->flight[k]))
            return true;
    return false;
}

/* Notes the tasks of a job that are no longer ours. Whether there are some. */
static bool note_lost(struct flight_job *j, const struct claim_ref *refs, const bool *lost,
                      size_t n, bool others)
{
    const char *what = others && j->state == JOB_STARTED
                           ? "task was cancelled or taken back; its batch goes on"
                           : "task was cancelled or taken back; stopping its handler";
    bool some = false;

    for (uint32_t k = 0; k < j->count; k++) {
        struct flight_task *t = &j->flight[k];

        if (!is_open(t) || !is_marked(refs, lost, n, t))
            continue;
        t->lost = j->lost = some = true;
        log_fold(when_steady_us(), LOG_NOTE, what, j->tag->name, NULL, "id=%" PRIu64 " tag=%s",
                 t->id, log_quote(j->tag->name));
    }
    return some;
}

/* Stops the handlers of tasks that are no longer ours: that of a batch only if none of its tasks is
 * left. A batch that has not begun is given back, because its input names them. */
static void drop_lost(const struct leases *l, const struct claim_ref *refs, const bool *lost,
                      size_t n)
{
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(l->flight, &at));) {
        const bool others = has_others(j, refs, lost, n);
        const bool some = note_lost(j, refs, lost, n, others);

        if (!others && j->open > 0 && !j->killed && j->state != JOB_HELD) {
            j->killed = true;
            link_send_kill(l->ctx->link, j->number, MESSAGE_KILL_CANCELLED);
        } else if (some && j->state == JOB_SENT) {
            link_send_kill(l->ctx->link, j->number, MESSAGE_KILL_UNSTARTED);
        }
    }
}

bool lease_overtaken(const struct leases *l, struct task_array *won, struct task_array *back)
{
    uint64_t marks[64] = {0}; /* of ids, so that most tasks in flight need no search */
    struct flight_job *j;
    bool some = false;

    for (size_t i = 0; i < won->count; i++)
        marks[won->items[i].id / 64 % 64] |= UINT64_C(1) << won->items[i].id % 64;
    for (uint32_t at = 0; (j = flight_each(l->flight, &at));) {
        for (uint32_t k = 0; k < j->count; k++) {
            struct flight_task *t = &j->flight[k];
            size_t i = 0;

            if (t->ended || !(marks[t->id / 64 % 64] >> t->id % 64 & 1))
                continue;
            while (i < won->count && won->items[i].id != t->id)
                i++;
            if (i == won->count)
                continue;
            drop_lost(l, &(struct claim_ref){t->id, t->version}, &(bool){true}, 1);
            /* a row that went back in time: the claim, or a later one, may have this version */
            if (t->version >= won->items[i].version + (won->items[i].status != TASK_RUNNING))
                t->version = 0;
            some = true;
            if (!back)
                continue;
            *task_array_add(back) = won->items[i];
            memmove(won->items + i, won->items + i + 1, (--won->count - i) * sizeof *won->items);
        }
    }
    return some;
}

static bool any(const bool *marks, size_t n)
{
    return memchr(marks, true, n);
}

/* Their rows have a second body, which counts in each statement from now on. */
static void note_again(const struct leases *l, const struct claim_ref *refs, const bool *again,
                       size_t n)
{
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(l->flight, &at));)
        for (uint32_t k = 0; k < j->count; k++)
            j->flight[k].again |= is_marked(refs, again, n, &j->flight[k]);
}

/* When the oldest lease of a job is age_us old, but not within age_us of the last time. */
static int64_t next_after(const struct leases *l, int64_t last_us, int64_t age_us)
{
    int64_t next = NEVER_US;
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(l->flight, &at));)
        if (j->open > 0)
            next = MIN(next, j->leased_us + age_us);
    return next == NEVER_US ? next : MAX(next, last_us + age_us);
}

int64_t lease_check_next(const struct leases *l)
{
    return l->ctx->runner_gone ? NEVER_US : next_after(l, l->check_us, check_age_us(l->ctx));
}

int64_t lease_vouches_until(struct leases *l, int64_t sent_us, int64_t took_us)
{
    const int64_t slow_us = MIN(took_us, l->took_us);

    l->took_us = took_us;
    return sent_us + MAX(2 * slow_us, lease_vouch_us(l->ctx));
}

/* If dq_output cannot be read (the account lacks the right, or another session has locked the
 * table), no output is passed on; whether the tasks are still ours must be known all the same. */
static int ask(struct leases *l, const struct claim_ref *refs, size_t n, bool *lost, bool *followed,
               bool *again, struct err *err)
{
    struct db *db = l->ctx->db;
    const struct claim_owner *owner = &l->ctx->owner;
    const bool blind = when_steady_us() < l->blind_until_us;
    struct err why = {0};
    int rc =
        blind ? ERR_DENIED : lease_store_check(db, owner, refs, n, lost, followed, again, &why);

    if (rc >= 0 || rc == ERR_TRANSIENT || !db_connected(db)) {
        if (rc < 0)
            *err = why;
        else if (l->blind_until_us)
            log_event(LOG_INFO, "dq_output can be read again", "%s", "");
        l->blind_until_us = rc < 0 ? l->blind_until_us : 0;
        return rc;
    }
    memset(followed, 0, n * sizeof *followed);
    rc = lease_store_check(db, owner, refs, n, lost, NULL, again, err);
    if (rc < 0 || blind)
        return rc;
    if (!l->blind_until_us)
        log_event(LOG_WARN, "cannot read dq_output; only dq logs -f is affected", "error=%s",
                  log_quote(why.text));
    l->blind_until_us = when_steady_us() + (why.code == ERR_LOCKED ? BLIND_LOCKED_US : BLIND_US);
    return rc;
}

int lease_check(struct leases *l, struct err *err)
{
    int64_t now_us = when_steady_us();
    size_t n;
    struct claim_ref *refs = refs_of(l, now_us - check_age_us(l->ctx), NULL, &n);
    MEM_LOCAL bool *lost = mem_zero(3 * (n + 1), sizeof *lost);
    bool *followed = lost + n + 1, *again = followed + n + 1;
    int rc = 0;

    l->check_us = now_us;
    if (n)
        rc = ask(l, refs, n, lost, followed, again, err);
    if (rc >= 0)
        follow_checked(l->follow, refs, followed, n);
    if (rc >= 0 && any(lost, n))
        drop_lost(l, refs, lost, n);
    if (rc >= 0 && any(again, n))
        note_again(l, refs, again, n);
    if (rc >= 0)
        link_send_vouch(l->ctx->link, lease_vouches_until(l, now_us, when_steady_us() - now_us));
    free(refs);
    return rc;
}

int64_t lease_renew_next(const struct leases *l)
{
    int64_t age_us = context_renew_us(l->ctx), result_us = settle_leased_us(l->results),
            next = l->ctx->runner_gone ? NEVER_US : next_after(l, l->renew_us, age_us);

    if (l->round_us)
        return 0;
    if (result_us != NEVER_US)
        next = MIN(next, MAX(result_us, l->renew_us) + age_us);
    return l->again_us ? MIN(l->again_us, next) : next;
}

static bool any_fault(const struct rows_faults *f, const struct flight_job *j)
{
    for (uint32_t k = 0; f->count && k < j->count; k++)
        if (is_open(&j->flight[k]) && rows_faults_find(f, j->flight[k].id))
            return true;
    return false;
}

/* The leases of these rows run towards their end: they are tried again soon, and logged once. */
static void note_faults(struct leases *l, const struct rows_faults *f, bool begins, bool ends,
                        int64_t now_us)
{
    if (begins)
        l->again_us = 0;
    if (f->count)
        l->again_us = now_us + context_lease_us(l->ctx) / RENEW_AGAIN_PART;
    if (f->count && !l->faulty)
        log_event(LOG_WARN, "some leases cannot be renewed; others are not affected",
                  "tasks=%zu id=%" PRIu64 " error=%s", f->count, f->items[0].id,
                  log_quote(f->items[0].err.text));
    else if (ends && !l->again_us && l->faulty)
        log_event(LOG_INFO, "all leases can be renewed again", "%s", "");
    l->faulty = l->again_us || (l->faulty && !ends);
}

/* The jobs' leases were renewed by a statement sent then, and the runner learns it. */
static void extend(struct leases *l, int64_t sent_us, const struct rows_faults *faults)
{
    uint32_t *numbers = mem_alloc((flight_count(l->flight) + 1) * sizeof *numbers);
    struct flight_job *j;
    size_t n = 0;

    for (uint32_t at = 0; (j = flight_each(l->flight, &at));) {
        if (j->tried_us != sent_us || any_fault(faults, j))
            continue;
        j->leased_us = sent_us;
        j->deadline_us = sent_us + context_lease_us(l->ctx);
        if (j->state != JOB_HELD)
            numbers[n++] = j->number;
    }
    if (n)
        link_send_deadline(l->ctx->link, numbers, n, sent_us / 1000 + l->ctx->conf->dqd.lease_ms);
    free(numbers);
}

/* Includes leases that are half as old as they have to be: one that just missed a renewal would be
 * two thirds over at the next, which leaves only a third of the lease for all that may go wrong.
 * Many long bodies take a round of several turns, between which other duties run, but no new work
 * with long bodies is begun, or the leases of what we have might end. What becomes old meanwhile
 * belongs to the next round, or this one might never end. */
static int renew_turn(struct leases *l, struct err *err)
{
    int64_t sent_us = when_steady_us();
    bool begins = !l->round_us;
    int64_t round_us = begins ? sent_us : l->round_us;
    struct settle_turn turn = {.old_us = round_us - context_renew_us(l->ctx) / 2,
                               .round_us = round_us,
                               .now_us = sent_us,
                               .row_us = l->cost.row_us};
    size_t n;
    struct claim_ref *refs = refs_of(l, 0, &turn, &n);
    bool *lost = mem_zero(n + 1, sizeof *lost);
    struct rows_faults faults = {0};
    int rc = 0;

    if (n)
        rc = lease_store_renew(l->ctx->db, &l->ctx->owner, refs, n, l->ctx->conf->dqd.lease_ms,
                               l->faulty, lost, &faults, err);
    if (n && !faults.count) /* it did not wait for locks */
        look_cost_saw(&l->cost, n, when_steady_us() - sent_us - l->flight->look->write_us);
    l->round_us = rc == 0 && turn.cut ? turn.round_us : 0;
    l->flight->renewing = l->round_us;
    if (rc < 0)
        goto out;
    if (!turn.cut)
        l->renew_us = sent_us;
    note_faults(l, &faults, begins, !turn.cut, sent_us);
    if (any(lost, n))
        drop_lost(l, refs, lost, n);
    extend(l, sent_us, &faults);
    settle_renewed(l->results, sent_us, &faults);
out:
    rows_faults_done(&faults);
    free(refs);
    free(lost);
    return rc;
}

/* Turns that are quick follow each other at once: what is between them may take longer. */
int lease_renew(struct leases *l, struct err *err)
{
    int64_t until_us = when_steady_us() + TURNS_US;
    int rc;

    do
        rc = renew_turn(l, err);
    while (rc >= 0 && l->round_us && when_steady_us() < until_us);
    return rc;
}
