/*
 * settle.c - how attempts ended, kept until the database has recorded it. Invariant: a result
 * leaves the queue only when the store has reported whether it was applied; calling the store again
 * with the same results is safe.
 */
#include "poller/settle.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "poller/care.h"
#include "poller/trouble.h"
#include "store/fleet/attempt_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Results per statement. */
#define SETTLE_MOST 500
/* Results wait for company: not at all if nothing else is under way, longer while a queue is being
 * worked off. */
#define WAIT_RUNNING_US 2000
#define WAIT_QUEUE_US 40000
/* A claim that is due this soon afterwards goes first: a task waits for the claim, but nothing
 * waits for the result. */
#define CLAIM_SOON_US 2000
/* Every so many statements, those that were kept back go before new ones, of which there may always
 * be some. */
#define KEPT_FIRST 4
/* A result that cannot be recorded is tried again after this time, then after twice as long each
 * time: most locks are short, and a long one must not cost a statement every few milliseconds. */
#define HOLD_MIN_US INT64_C(50000)
#define HOLD_MOST_US INT64_C(5000000)
#define HELD_MIN_US INT64_C(1000000)
/* A result that could not be recorded for this many leases is no longer waited for. */
#define RESULT_LEASES 10

void settle_init(struct settle_results *q, const struct context *ctx, struct minute *minute,
                 struct breakers *breakers, struct holds *holds)
{
    *q =
        (struct settle_results){.ctx = ctx, .minute = minute, .breakers = breakers, .holds = holds};
}

static bool needs_attempt(const struct settle_results *q, const struct settlement *s)
{
    return settle_store_needs_attempt(s, q->ctx->conf->dqd.history == CONF_HISTORY_ALL);
}

static void keep_until(struct settle_item *r, int64_t until_us)
{
    r->tag->look.kept_back += !r->again_us && !r->refused;
    r->again_us = until_us;
}

void settle_queue(struct settle_results *q, const struct settlement *s, struct tag_state *tag,
                  int64_t leased_us)
{
    struct settle_item *r;

    MEM_ROOM(q->items, q->count, q->cap);
    r = &q->items[q->count++];
    r->s = *s;
    r->tag = tag;
    tag->look.unrecorded++;
    breaker_ended(q->breakers, tag, s);
    r->s.error = mem_strdup(s->error);
    r->s.output = s->output && s->output_size ? mem_dup(s->output, s->output_size) : NULL;
    r->queued_us = when_steady_us();
    r->leased_us = leased_us;
    r->tried_us = r->hold_us = 0;
    r->again_us = 0;
    r->refused = false;
    if (q->held_until_us > r->queued_us && needs_attempt(q, s))
        keep_until(r, q->held_until_us);
    r->said = false;
}

void settle_queue_output(struct settle_results *q, const struct claim_ref *ref, const void *output,
                         size_t size)
{
    if (!size)
        return;
    MEM_ROOM(q->outputs, q->output_count, q->output_cap);
    q->outputs[q->output_count++] = (struct settle_output){*ref, mem_dup(output, size), size};
}

bool settle_has_outputs(const struct settle_results *q)
{
    return q->output_count > 0;
}

/* One that is locked lets the others go first. */
int settle_flush_output(struct settle_results *q, struct err *err)
{
    const struct settle_output o = q->outputs[q->output_count - 1];
    int rc = attempt_store_add_output(q->ctx->db, &o.ref, o.output, o.size, err);

    if (rc == ERR_TRANSIENT || rc == ERR_LOCKED || (rc < 0 && !db_connected(q->ctx->db))) {
        q->outputs[q->output_count - 1] = q->outputs[0];
        q->outputs[0] = o;
        return rc;
    }
    if (rc < 0)
        log_fold(when_steady_us(), LOG_WARN, "cannot store the output of a cancelled task", NULL,
                 err->text, "id=%" PRIu64 " error=%s", o.ref.id, log_quote(err->text));
    free(o.output);
    q->output_count--;
    return 0;
}

static void item_done(struct settle_item *r)
{
    free((char *)r->s.error);
    free((void *)r->s.output);
    r->tag->look.unrecorded--;
    r->tag->look.kept_back -= r->again_us > 0 && !r->refused;
}

/* The hold of its limit is recorded before it, so that the task is not started meanwhile: until a
 * lease has passed. */
static bool is_held(const struct settle_results *q, const struct settle_item *r, int64_t now_us)
{
    return q->holds->count && task_transition(r->s.event)->to == TASK_PENDING &&
           now_us - r->queued_us <= context_lease_us(q->ctx) &&
           hold_has(q->holds, tags_limit(r->tag));
}

/* The first that is not kept back, and how many these are; the earliest time of one that is. Those
 * that wait for a hold are tried when it is recorded. */
static size_t waiting(const struct settle_results *q, const struct settle_item **ret_first,
                      int64_t *ret_again_us)
{
    const int64_t now_us = when_steady_us();
    size_t n = 0;

    *ret_first = NULL;
    *ret_again_us = NEVER_US;
    for (size_t i = 0; i < q->count; i++) {
        const struct settle_item *r = &q->items[i];

        if (is_held(q, r, now_us))
            continue;
        if (!r->again_us && n++ == 0)
            *ret_first = r;
        if (r->again_us && r->again_us < *ret_again_us)
            *ret_again_us = r->again_us;
    }
    return n;
}

int64_t settle_next(const struct settle_results *q, const struct settle_load *load)
{
    const struct settle_item *first;
    int64_t again_us, at;
    size_t n = waiting(q, &first, &again_us);

    if (n == 0)
        return again_us;
    if (n >= SETTLE_MOST || q->ctx->ending)
        return 0;
    at = first->queued_us + (load->jobs == 0              ? 0
                             : load->jobs > load->running ? WAIT_QUEUE_US
                                                          : WAIT_RUNNING_US);
    if (load->next_us < at + CLAIM_SOON_US && at < first->queued_us + WAIT_QUEUE_US) {
        int64_t now_us = when_steady_us();

        at = MAX(load->next_us, now_us) + CLAIM_SOON_US;
        if (at > first->queued_us + WAIT_QUEUE_US)
            at = first->queued_us + WAIT_QUEUE_US;
    }
    return MIN(at, again_us);
}

static void count(struct settle_results *q, const struct settle_item *r, bool applied)
{
    const struct settlement *s = &r->s;

    if (applied)
        minute_ended(q->minute, r->tag->name, s->event, s->fault,
                     s->start_at == TASK_TIME_NONE ? -1 : s->finish_at - s->start_at);
    else
        log_fold(when_steady_us(), LOG_NOTE,
                 "result not recorded: the task was cancelled or taken back meanwhile", NULL, NULL,
                 "id=%" PRIu64 " version=%" PRIu64 " outcome=%s", s->id, s->version,
                 task_outcome_name((int)s->outcome));
}

/* The server refused the data of a result: it is settled without its text, so that an odd byte does
 * not cost the result. */
static bool settle_bare(const struct context *ctx, const struct settlement *s,
                        const struct rows_fault *f, bool *applied)
{
    struct settlement bare = *s;
    struct err err;

    if (f->err.code != ERR_DATA && f->err.code != ERR_FATAL)
        return false;
    bare.output = NULL;
    bare.output_size = 0;
    bare.error = s->error ? "(the text could not be stored)" : NULL;
    if (settle_store_settle(ctx->db, &ctx->owner, &bare, 1,
                            ctx->conf->dqd.history == CONF_HISTORY_ALL, false, applied, NULL,
                            &err) < 0)
        return false;
    log_fold(when_steady_us(), LOG_ERROR, "cannot store the output of a task", NULL, f->err.text,
             "id=%" PRIu64 " error=%s", s->id, log_quote(f->err.text));
    return true;
}

/* It stays in the queue, and is tried again after a while that grows; others are settled
 * meanwhile. */
static void put_off(const struct context *ctx, struct settle_item *r, int64_t now_us)
{
    int64_t most_us = context_lease_us(ctx) / 8;

    r->hold_us = retry_pause(r->hold_us, HOLD_MIN_US, MIN(most_us, HOLD_MOST_US));
    keep_until(r, now_us + r->hold_us);
}

/* Unlike a locked one, it counts for the bound of look_tag_want: more results of its tag would be
 * refused, too. */
static void put_off_refused(const struct context *ctx, struct settle_item *r, int64_t now_us)
{
    r->tag->look.kept_back -= r->again_us > 0 && !r->refused;
    r->refused = true;
    put_off(ctx, r, now_us);
}

static void keep_back(const struct context *ctx, struct settle_item *r, const struct rows_fault *f,
                      int64_t now_us)
{
    put_off(ctx, r, now_us);
    if (!r->said && (f->err.code != ERR_LOCKED || now_us - r->queued_us > TROUBLE_LOCK_US)) {
        log_fold(now_us, LOG_WARN, "a result cannot be recorded yet; others are not affected", NULL,
                 f->err.text, "id=%" PRIu64 " error=%s", r->s.id, log_quote(f->err.text));
        r->said = true;
    }
}

/* A table that results need is locked: each try costs others a lock_wait_timeout, so there is one
 * for all of them. */
static void hold(struct settle_results *q, int64_t now_us)
{
    q->held_us =
        retry_pause(q->held_us, HELD_MIN_US, MIN(context_lease_us(q->ctx) / 8, HOLD_MOST_US));
    q->held_until_us = now_us + q->held_us;
    for (size_t i = 0; i < q->count; i++)
        if (needs_attempt(q, &q->items[i].s))
            keep_until(&q->items[i], q->held_until_us);
}

/* Whether its time has come, among those that were kept back (kept) or the others, and among those
 * that take long to record (dear) or the others. */
static bool is_turn_of(const struct settle_results *q, const struct settle_item *r, bool kept,
                       bool dear, int64_t now_us)
{
    return (kept ? r->again_us && r->again_us <= now_us : !r->again_us) && !is_held(q, r, now_us) &&
           look_tag_is_dear(&r->tag->look) == dear;
}

/* Of the tags with results whose time has come, and that take long to record, the one of which none
 * was recorded for the longest time. */
static const struct tag_state *dear_tag(const struct settle_results *q, bool kept, int64_t now_us)
{
    const struct tag_state *best = NULL;

    for (size_t i = 0; i < q->count; i++) {
        const struct tag_state *t = q->items[i].tag;

        if ((!best || t->look.results.at_us < best->look.results.at_us) &&
            is_turn_of(q, &q->items[i], kept, true, now_us))
            best = t;
    }
    return best;
}

/* Refused results are tried together with those of their own tag only: the server may not refuse
 * others. */
static bool goes_with(const struct settle_item *r, const struct settle_item *first)
{
    return r->refused ? first->refused && r->tag == first->tag : !first->refused;
}

/* The first of those whose time has come, by their place in the queue; those that were kept back
 * apart, so that the locks of the ones are never waited for by the others, and before the others
 * every KEPT_FIRSTth time. Results that take long to record have every other turn, of one tag at a
 * time, which shows what they cost: of several tags that were recorded together, one may be to
 * blame. */
static size_t choose(struct settle_results *q, size_t at[SETTLE_MOST], bool *ret_kept)
{
    int64_t now_us = when_steady_us();
    size_t n = 0, bytes = 0;

    const bool kept_first = q->turns++ % KEPT_FIRST == 0;

    q->dear_first = !q->dear_first;
    for (int turn = 0; n == 0 && turn < 4; turn++) {
        const bool kept = (turn >= 2) != kept_first, dear = (turn % 2 == 0) == q->dear_first;
        const struct tag_state *only = dear ? dear_tag(q, kept, now_us) : NULL;

        for (size_t i = 0; (only || !dear) && i < q->count && n < SETTLE_MOST; i++) {
            const struct settle_item *r = &q->items[i];

            if (is_turn_of(q, r, kept, dear, now_us) && (!dear || r->tag == only) &&
                (n == 0 || goes_with(r, &q->items[at[0]])) &&
                rows_take(&bytes, rows_weight(r->s.body_size, look_tag_row_us(&r->tag->look))))
                at[n++] = i;
        }
        *ret_kept = kept;
    }
    return n;
}

static void learn(struct tag_state *t, size_t rows, int64_t took_us, int64_t now_us)
{
    if (t->look.results.at_us != now_us)
        look_changed(t->set->look, &t->look, &t->look.results, rows, took_us, now_us);
    care_slow(t);
}

/* Takes what is settled out of the queue. */
static void remove_settled(struct settle_results *q, const size_t *at, const bool *stays, size_t n)
{
    size_t kept = 0, k = 0;

    for (size_t i = 0; i < q->count; i++) {
        bool settled = k < n && at[k] == i && !stays[k];

        k += k < n && at[k] == i;
        if (settled)
            item_done(&q->items[i]);
        else
            q->items[kept++] = q->items[i];
    }
    q->count = kept;
}

/* Failures of a tag that are settled together are retried one after the other, a lone one exactly
 * on time. */
static void set_apart(const struct settle_results *q, const size_t *at, struct settlement *s,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tag_state *tag = q->items[at[i]].tag;
        int64_t count = 0, rank = 0;

        for (size_t k = i; s[i].apart_ms && k < n; k++)
            count += s[k].apart_ms && q->items[at[k]].tag == tag;
        for (size_t k = i; rank < count; k++) {
            if (!s[k].apart_ms || q->items[at[k]].tag != tag)
                continue;
            s[k].retry_delay_ms += s[k].apart_ms * rank / count;
            s[k].apart_ms = 0;
            rank++;
        }
    }
}

int settle_flush(struct settle_results *q, bool *ret_back, struct err *err)
{
    const struct context *ctx = q->ctx;
    size_t at[SETTLE_MOST];
    struct settlement s[SETTLE_MOST] = {0};
    bool applied[SETTLE_MOST] = {false}, stays[SETTLE_MOST] = {false};
    struct rows_faults faults = {0};
    bool back = false, kept;
    size_t n = choose(q, at, &kept);
    int64_t sent_us = when_steady_us(), now_us;
    int rc;

    for (size_t i = 0; i < n; i++) {
        const struct tag_state *t = q->items[at[i]].tag;
        const struct handler *h = tags_handler(t->set, t);

        s[i] = q->items[at[i]].s;
        if (h && task_transition(s[i].event)->to == TASK_FAILED)
            s[i].on_failed = h->on_failed;
        back |= task_transition(s[i].event)->to == TASK_PENDING;
    }
    set_apart(q, at, s, n);
    rc = settle_store_settle(ctx->db, &ctx->owner, s, n, ctx->conf->dqd.history == CONF_HISTORY_ALL,
                             kept, applied, &faults, err);
    now_us = when_steady_us();
    if (rc < 0 && (rc == ERR_TRANSIENT || rc == ERR_LOCKED || !db_connected(ctx->db)))
        goto out;
    for (size_t i = 0; i < n && rc < 0; i++) { /* others may need less of what the server refuses */
        stays[i] = !applied[i];
        if (stays[i])
            put_off_refused(ctx, &q->items[at[i]], now_us);
    }
    for (size_t i = 0; i < faults.count && rc >= 0; i++) {
        size_t k = faults.items[i].at;

        stays[k] = !settle_bare(ctx, &s[k], &faults.items[i], &applied[k]);
        if (stays[k])
            keep_back(ctx, &q->items[at[k]], &faults.items[i], now_us);
    }
    for (size_t i = 0; i < n && !faults.count && rc >= 0; i++)
        learn(q->items[at[i]].tag, n, now_us - sent_us, now_us);
    for (size_t i = 0; i < n; i++)
        if (!stays[i]) {
            count(q, &q->items[at[i]], applied[i]);
            if (task_transition(s[i].event)->unstarted && !s[i].error) /* for no fault */
                look_tag_returned(&q->items[at[i]].tag->look);
        }
    remove_settled(q, at, stays, n);
    if (faults.beside)
        hold(q, now_us);
    else if (kept && rc >= 0)
        q->held_us = 0;
    *ret_back = back || rc > 0;
out:
    rows_faults_done(&faults);
    return rc;
}

/* A claim adds 1 to the version. */
void settle_overtaken(struct settle_results *q, const struct task_array *tasks)
{
    for (size_t i = 0; i < q->count;) {
        const struct settlement *s = &q->items[i].s;
        const struct task *t = tasks->items;
        size_t k = 0;

        while (k < tasks->count &&
               (t[k].id != s->id || t[k].version + (t[k].status != TASK_RUNNING) > s->version))
            k++;
        if (k == tasks->count) {
            i++;
            continue;
        }
        count(q, &q->items[i], false);
        remove_settled(q, &i, &(bool){false}, 1);
    }
}

bool settle_refused(const struct settle_results *q)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->items[i].refused)
            return true;
    return false;
}

bool settle_stuck(const struct settle_results *q, int64_t since_us)
{
    const int64_t now_us = when_steady_us();

    for (size_t i = 0; i < q->count; i++)
        if (q->items[i].queued_us > since_us ||
            !(q->items[i].again_us || is_held(q, &q->items[i], now_us)))
            return false;
    return q->count > 0;
}

size_t settle_count(const struct settle_results *q)
{
    return q->count;
}

void settle_claims(const struct settle_results *q, struct claim_ref *refs)
{
    for (size_t i = 0; i < q->count; i++)
        refs[i] = (struct claim_ref){q->items[i].s.id, q->items[i].s.version};
}

/* --- leases --- */

static bool keeps_lease(const struct settle_results *q, const struct settle_item *r)
{
    return r->leased_us - r->queued_us < RESULT_LEASES * context_lease_us(q->ctx);
}

bool settle_has(const struct settle_results *q, const struct claim_ref *ref)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->items[i].s.id == ref->id && q->items[i].s.version == ref->version)
            return keeps_lease(q, &q->items[i]);
    return false;
}

int64_t settle_leased_us(const struct settle_results *q)
{
    int64_t oldest_us = NEVER_US;

    for (size_t i = 0; i < q->count; i++)
        if (keeps_lease(q, &q->items[i]))
            oldest_us = MIN(oldest_us, q->items[i].leased_us);
    return oldest_us;
}

bool settle_turn_take(struct settle_turn *turn, int64_t leased_us, int64_t tried_us, size_t bytes)
{
    if (leased_us > turn->old_us || tried_us >= turn->round_us)
        return false;
    if (rows_take(&turn->bytes, bytes))
        return true;
    turn->cut = true;
    return false;
}

size_t settle_refs(struct settle_results *q, struct settle_turn *turn, struct claim_ref *refs)
{
    size_t n = 0;

    for (size_t i = 0; i < q->count; i++) {
        struct settle_item *r = &q->items[i];

        if (!keeps_lease(q, r) ||
            !settle_turn_take(
                turn, r->leased_us, r->tried_us,
                rows_weight(r->s.body_size, MAX(r->tag->look.claims.row_us, turn->row_us))))
            continue;
        r->tried_us = turn->now_us;
        refs[n++] = (struct claim_ref){r->s.id, r->s.version};
    }
    return n;
}

void settle_renewed(struct settle_results *q, int64_t sent_us, const struct rows_faults *faults)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->items[i].tried_us == sent_us && !rows_faults_find(faults, q->items[i].s.id))
            q->items[i].leased_us = sent_us;
}

void settle_free(struct settle_results *q)
{
    for (size_t i = 0; i < q->count; i++)
        item_done(&q->items[i]);
    free(q->items);
    if (q->output_count)
        log_event(LOG_WARN, "the output of cancelled tasks was not stored", "tasks=%zu",
                  q->output_count);
    for (size_t i = 0; i < q->output_count; i++)
        free(q->outputs[i].output);
    free(q->outputs);
    q->items = NULL;
    q->outputs = NULL;
    q->count = q->cap = q->output_count = q->output_cap = 0;
}
