/*
 * breaker.c - see breaker.h. Invariant: a limit rests, and is open again, by one UPDATE that checks
 * its version, or that the attempt began after its rest: so once, however many dqds see failures.
 */
#include "poller/breaker.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "store/fleet/limit_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define ERROR_MOST 150 /* bytes of it, in the reason */

void breaker_init(struct breakers *b, const struct context *ctx, const struct minute *minute,
                  const struct tag_set *tags)
{
    *b = (struct breakers){.ctx = ctx, .minute = minute, .tags = tags};
}

static void drop(struct breakers *b, size_t at)
{
    free(b->items[at].limit);
    free(b->items[at].error);
    b->items[at] = b->items[--b->count];
}

void breaker_free(struct breakers *b)
{
    while (b->count)
        drop(b, 0);
    free(b->items);
    b->items = NULL;
}

/* ---- what ended */

static struct breaker_watch *watch(struct breakers *b, const char *limit)
{
    for (size_t i = 0; i < b->count; i++)
        if (!strcmp(b->items[i].limit, limit))
            return &b->items[i];
    MEM_ROOM(b->items, b->count, b->cap);
    b->items[b->count] = (struct breaker_watch){mem_strdup(limit), .judge_us = when_steady_us()};
    return &b->items[b->count++];
}

void breaker_ended(struct breakers *b, const struct tag_state *t, const struct settlement *s)
{
    const struct task_transition *x = task_transition(s->event);
    bool done = x->to == TASK_DONE;

    /* what does not count as an attempt was given back, or snoozed */
    if ((done && !t->probing) || t->handler < 0 || x->attempt_change < 0 ||
        s->fault != FAULT_COUNTS)
        return;
    const struct handlers *h = tags_table(b->tags)->handlers;
    const struct handler *own = tags_handler(b->tags, t);
    const char *limit = tags_limit(t);
    const struct handler_breaker *when = handlers_breaker(h, own, limit);
    if (!when && !t->probing)
        return;
    struct breaker_watch *w = watch(b, limit);
    const int64_t start_at = t->probing ? s->start_at : 0;
    if (start_at < w->start_at)
        return;
    w->judged = false;
    w->when = when ? *when : (struct handler_breaker){0};
    w->start_at = start_at;
    free(w->error);
    const char *error = s->error ? s->error : "?";
    w->error = done ? NULL : mem_dup(error, MIN(strcspn(error, "\n"), (size_t)ERROR_MOST));
}

/* ---- the duty */

static int record(struct breakers *b, const struct breaker_watch *w, struct limit_break *change,
                  struct err *err)
{
    MEM_LOCAL char *actor = mem_printf("dqd@%.200s", b->ctx->owner.host);
    struct event_act act = {.actor = actor,
                            .verb = change->rest_ms ? "breaker-open" : "breaker-close",
                            .arguments = change->reason,
                            .tag = w->limit};
    const uint64_t random[] = {context_random(), context_random()};
    memcpy(act.token, random, sizeof act.token);
    change->start_at = w->start_at;
    int rc = limit_store_break(b->ctx->db, &act, change, err);
    if (rc > 0 && change->rest_ms)
        log_event(LOG_WARN, "the tasks of a limit fail, so it rests", "limit=%s error=%s",
                  log_quote(w->limit), log_quote(change->reason));
    else if (rc > 0)
        log_event(LOG_NOTE, "a task worked, so its limit is open again", "limit=%s",
                  log_quote(w->limit));
    return rc;
}

/* A task has tried. */
static int conclude(struct breakers *b, const struct breaker_watch *w, bool *ret_closed,
                    struct err *err)
{
    BUF_LOCAL struct buf reason = BUF_INIT;
    struct limit_break change = {.rest_ms = w->error ? w->when.rest_ms : 0};

    if (w->error && !w->when.failures) /* another task tries */
        return 0;
    if (w->error) {
        buf_printf(&reason, "the task that tried failed: %s", w->error);
        change.reason = reason.data;
    }
    int rc = record(b, w, &change, err);
    *ret_closed |= rc > 0 && !w->error;
    return MIN(rc, 0);
}

void breaker_add(struct breaker_sum *sum, const struct counts *c)
{
    const uint64_t failed = c->failed + c->retried - c->excused;

    sum->failures += c->failures;
    sum->failed += failed;
    sum->ended += failed + c->done;
}

bool breaker_too_many(const struct breaker_sum *sum, const struct handler_breaker *when)
{
    return sum->failures >= (uint64_t)when->failures && sum->failed * 2 >= sum->ended;
}

/* Over the minutes that began since then. */
static struct breaker_sum sum_since(const struct breakers *b, const struct minute_answer *a,
                                    const struct breaker_watch *w, int64_t since_at)
{
    const struct handlers *h = tags_table(b->tags)->handlers;
    struct breaker_sum sum = {0};

    since_at = MAX(since_at, (a->now_at - w->when.within_ms) / WHEN_MINUTE * WHEN_MINUTE);
    for (size_t i = 0; i < a->count; i++) {
        const struct minute_row *row = &a->rows[i];

        if (row->at >= since_at && row->at <= a->now_at &&
            !strcmp(handlers_limit(h, row->tag), w->limit))
            breaker_add(&sum, &row->counts);
    }
    return sum;
}

/* The row is read only if there are failures enough, some of which may be from before a rest. */
static int judge(struct breakers *b, const struct minute_answer *a, const struct breaker_watch *w,
                 struct err *err)
{
    struct breaker_sum sum = sum_since(b, a, w, INT64_MIN);
    struct limit_break change = {.rest_ms = w->when.rest_ms};
    BUF_LOCAL struct buf reason = BUF_INIT;
    char within[WHEN_TEXT_SIZE];
    struct limit_row *row = NULL;
    size_t count = 0;
    int rc = breaker_too_many(&sum, &w->when)
                 ? limit_store_list(b->ctx->db, w->limit, false, &row, &count, err)
                 : 0;

    if (count) {
        sum = sum_since(b, a, w, row->update_at);
        change.version = row->version;
    }
    limit_store_free(row, count);
    if (rc < 0 || !breaker_too_many(&sum, &w->when))
        return rc;
    buf_printf(&reason, "%" PRIu64 " of %" PRIu64 " attempts failed within %s: %s", sum.failed,
               sum.ended, when_format_duration(within, w->when.within_ms), w->error);
    change.reason = reason.data;
    rc = record(b, w, &change, err);
    return MIN(rc, 0);
}

/* Whether all counts are written, or those of before it was watched. Only then has the duty work:
 * counts that cannot be written must not keep it busy. */
static bool is_counted(const struct breakers *b, const struct breaker_watch *w)
{
    return minute_next(b->minute) == NEVER_US || b->minute->flush_us > w->judge_us;
}

int64_t breaker_next(const struct breakers *b)
{
    int64_t next_us = NEVER_US;

    for (size_t i = 0; i < b->count; i++)
        if (b->items[i].start_at || is_counted(b, &b->items[i]))
            next_us = 0;
    return MAX(next_us, b->not_before_us);
}

/* Of a limit whose tasks fail. If others have ended meanwhile, whose counts are not written yet, it
 * is judged once more. */
static int judge_item(struct breakers *b, const struct minute_answer *a, size_t at, struct err *err)
{
    struct breaker_watch *w = &b->items[at];
    int rc = judge(b, a, w, err);

    if (rc < 0)
        return rc;
    if (w->judged || minute_next(b->minute) == NEVER_US)
        drop(b, at);
    else
        w->judge_us = b->minute->flush_us;
    w->judged = true;
    return 0;
}

int breaker_run(struct breakers *b, bool *ret_closed, struct err *err)
{
    struct minute_answer a = {0};
    int64_t within_ms = 0, sent_us = when_steady_us();
    int rc = 0;

    for (size_t i = b->count; rc == 0 && i-- > 0;) {
        if (b->items[i].start_at && (rc = conclude(b, &b->items[i], ret_closed, err)) == 0)
            drop(b, i);
        else if (!b->items[i].start_at && is_counted(b, &b->items[i]))
            within_ms = MAX(within_ms, b->items[i].when.within_ms);
    }
    if (rc == 0 && within_ms)
        rc = minute_store_read(b->ctx->db, &(struct minute_ask){NULL, within_ms, WHEN_MINUTE, 0},
                               &a, err);
    for (size_t i = b->count; rc == 0 && within_ms && i-- > 0;)
        if (!b->items[i].start_at && is_counted(b, &b->items[i]))
            rc = judge_item(b, &a, i, err);
    minute_store_free(a.rows, a.count);
    if (rc != ERR_LOCKED) {
        b->locked_us = 0;
        return rc;
    }
    b->locked_us = retry_pause_locked(b->locked_us, when_steady_us() - sent_us);
    b->not_before_us = when_steady_us() + b->locked_us;
    return 0; /* other duties do not wait for that */
}

void breaker_leave(struct breakers *b)
{
    struct err err;
    bool closed = false;

    if (b->count && db_connected(b->ctx->db) && breaker_run(b, &closed, &err) < 0)
        log_event(LOG_WARN, "failures were not judged for a breaker", "error=%s",
                  log_quote(err.text));
}
