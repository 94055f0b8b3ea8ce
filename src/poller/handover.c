/*
 * handover.c - makes jobs of claimed tasks and gives them to the runner. Invariant: a job is handed
 * over only when all its bodies are loaded and all its tasks are still ours.
 */
#include "poller/handover.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "poller/body.h"
#include "poller/lease.h"

#include <inttypes.h>
#include <sys/param.h>
#include <sysexits.h>

/* What loading a body may need of its size: the client library has one copy, the task one, the
 * input one; lines of JSON have it in base64, in a buffer that doubles. */
#define BODY_COPIES 3
#define BODY_COPIES_LINES 5
/* A start that a rate has reserved may be late by that much, or by the distance of two starts. */
#define LATE_US 250000

/* No handler can be given these tasks: each has failed once more, and the tag's others go on. As
 * after an exit status, they run in smaller company next time. */
static void fail_job(struct handover *h, struct flight_job *j, const char *why)
{
    for (uint32_t i = 0; i < j->count; i++) {
        struct flight_task *t = &j->flight[i];
        int64_t delay_ms = retry_delay_ms(&flight_handler(j)->retry, t->attempt, t->max_attempts,
                                          context_random());
        struct settlement s = {.event = delay_ms < 0 ? TASK_GIVE_UP : TASK_TRY_LATER,
                               .outcome = OUTCOME_EXIT,
                               .retry_delay_ms = delay_ms,
                               .apart_ms = retry_apart_ms(&flight_handler(j)->retry, delay_ms),
                               .exit_code = EX_OSERR,
                               .error = why};

        s.start_at = s.finish_at = dbclock_at(&h->ctx->clock, when_steady_us());
        if (t->ended || t->lost)
            continue;
        log_fold(when_steady_us(), LOG_ERROR,
                 "attempt failed: its body cannot be passed to the handler", j->tag->name, why,
                 "id=%" PRIu64 " tag=%s error=%s", t->id, log_quote(j->tag->name), log_quote(why));
        flight_settle_task(h->flight, j, t, &s);
    }
    flight_job_free(h->flight, j);
}

/* It is not started from then on. */
static void end_at(const struct context *ctx, int64_t at, struct message_job *m)
{
    const int64_t us = dbclock_reached_us(&ctx->clock, at);

    m->expires_us = m->expires_us ? MIN(m->expires_us, us) : us;
}

/* When the first instruction may be executed; 0: at once. The claim has proved that all tasks are
 * due within LOOK_EARLY_MOST_MS, even if the clock was set since, or reserved their starts. None is
 * executed once the first one has expired, or the hours of its limit are over. */
static void set_start(const struct context *ctx, const struct flight_job *j, struct message_job *m)
{
    int64_t now_us = when_steady_us(), at_us = 0;

    for (uint32_t i = 0; i < j->count; i++) {
        const struct flight_task *t = &j->flight[i];
        int64_t due_us = dbclock_reached_us(&ctx->clock, t->expected_at);

        at_us = MAX(at_us, MIN(due_us, now_us + LOOK_EARLY_MOST_MS * 1000));
        if (t->expires_at != TASK_TIME_NONE)
            end_at(ctx, t->expires_at, m);
        if (t->close_at)
            end_at(ctx, t->close_at, m);
        if (!t->start_at)
            continue;
        at_us =
            MAX(at_us, MIN(dbclock_reached_us(&ctx->clock, t->start_at), now_us + RATE_HORIZON_US));
        m->late_us = at_us + MAX(LATE_US, t->late_us);
    }
    m->start_us = at_us > now_us ? at_us : 0;
}

/* The claim vouches as lease_vouches_until has it for a check. With a far database, one under a
 * limit takes longer than that, and the starts that a rate has reserved come later still. */
static int64_t vouched_until(const struct handover *h, const struct flight_job *j)
{
    const bool limited = j->flight[0].start_at || tags_is_limited(j->tag, flight_handler(j));
    const int64_t slow_us = limited ? look_pace_limited_us(&h->flight->look->pace) : 0;

    return j->leased_us + MAX(lease_vouch_us(h->ctx), 2 * slow_us);
}

/* Gives the job to the runner. Its bodies are loaded. */
static void hand_over(struct handover *h, struct flight_job *j)
{
    struct err err = {0};
    struct message_job times = {.vouched_us = vouched_until(h, j),
                                .deadline_at = j->deadline_us / 1000};

    set_start(h->ctx, j, &times);
    int rc = link_send_tasks(h->ctx->link, j->number, j->table->handlers, j->handler, j->tasks,
                             j->count, &times, &err);

    if (rc == 0) {
        flight_sent(h->flight, j);
    } else if (rc == ERR_DATA) {
        fail_job(h, j, err.text);
    } else {
        tags_rest(j->tag, rc, err.text);
        flight_give_back_job(h->flight, j, rc == ERR_TRANSIENT ? NULL : err.text);
    }
}

static size_t body_bytes(const struct task *t)
{
    return t->body_size == SIZE_MAX ? FLIGHT_BODIES_MOST
                                    : t->body_size; /* not known: take it to be long */
}

/* How many of the tasks from `from` on that have its company make one job with it. */
static uint32_t job_length(const struct task_array *won, size_t from)
{
    const uint32_t company = won->items[from].company;
    size_t bytes = 0;
    uint32_t n = 0;

    for (size_t i = from; i < won->count && n < company; i++) {
        if (won->items[i].company != company)
            continue;
        bytes += body_bytes(&won->items[i]);
        if (n > 0 && bytes > FLIGHT_BODIES_MOST)
            break;
        n++;
    }
    return n;
}

/* Moves the next `count` tasks from `from` on that have its company into the job. */
static void fill_job(struct flight_job *j, struct task_array *won, size_t from)
{
    const uint32_t company = won->items[from].company;

    for (uint32_t n = 0; n < j->count; from++) {
        struct task *t = &won->items[from];

        if (t->company != company)
            continue;
        j->flight[n] = (struct flight_task){.id = t->id,
                                            .version = t->version,
                                            .attempt = t->attempt,
                                            .max_attempts = t->max_attempts,
                                            .expected_at = t->expected_at,
                                            .start_at = t->start_at,
                                            .late_us = t->late_us,
                                            .close_at = t->close_at,
                                            .late_from_at = t->late_from_at,
                                            .expires_at = t->expires_at,
                                            .first_at = t->expected_at};
        if (t->delay_ms) /* any number, if others have written it */
            j->flight[n].first_at = t->create_at + MIN(t->delay_ms, WHEN_AT_MAX);
        j->body_bytes += body_bytes(t);
        j->tasks[n++] = *t;
        task_init(t);
    }
}

void handover_take(struct handover *h, struct handlers_table *table, struct tag_state *t,
                   struct task_array *won, int64_t sent_us)
{
    for (size_t at = 0; at < won->count; at++) {
        struct flight_job *j;

        if (!won->items[at].company) /* it is in a job with one before it */
            continue;
        j = flight_job_new(h->flight, t, table, (uint32_t)t->handler, job_length(won, at));
        j->claimed_us = j->leased_us = sent_us;
        j->deadline_us = sent_us + context_lease_us(h->ctx);
        fill_job(j, won, at);
        /* a single body is loaded however long it is: asking first would read it twice */
        j->measured = j->count == 1 && j->tasks[0].body_size != SIZE_MAX;
        j->kind = body_loaded(j) ? JOB_SHORT : JOB_LONG;
        if (j->kind == JOB_SHORT && !flight_held(h->flight, JOB_SHORT) &&
            flight_has_room(h->flight, j))
            hand_over(h, j);
        else
            flight_hold(h->flight, j, flight_held(h->flight, j->kind));
    }
    task_array_done(won);
}

static bool ready(const struct flight *f, enum job_kind kind)
{
    const struct flight_job *j = flight_first(f, kind);

    if (!j || (kind == JOB_LONG && f->renewing))
        return false;
    return (kind == JOB_LONG && !j->measured) || flight_has_room(f, j);
}

int64_t handover_next(const struct handover *h)
{
    bool some = ready(h->flight, JOB_SHORT) || ready(h->flight, JOB_LONG);

    return some && !h->ctx->runner_gone ? 0 : NEVER_US;
}

/* If some were lost meanwhile, the others are claimed again: the input of a batch names all. */
static bool still_ours(const struct flight_job *j)
{
    for (uint32_t i = 0; i < j->count; i++)
        if (j->flight[i].lost)
            return false;
    return j->count > 0;
}

/* The next step of the first long job: one statement, so that many long bodies do not keep other
 * duties waiting. */
static int load_step(struct handover *h, struct flight_job *j, struct err *err)
{
    const struct handler *handler = flight_handler(j);
    bool lines = handler->batch > 1 || handler->keep;
    int rc;

    if (j->measured && !mem_has(j->body_bytes * (lines ? BODY_COPIES_LINES : BODY_COPIES))) {
        flight_unhold(h->flight, j);
        fail_job(h, j, "there is not enough memory (ulimit -v, LimitAS= of systemd)");
        return 0;
    }
    rc = still_ours(j) ? body_step(h->ctx, h->flight, j, err) : 0;
    if (rc < 0)
        return rc;
    if (!still_ours(j)) {
        flight_unhold(h->flight, j);
        flight_give_back_job(h->flight, j, NULL);
    } else if (body_loaded(j) && flight_has_room(h->flight, j)) { /* none if its size was a lie */
        flight_unhold(h->flight, j);
        hand_over(h, j);
    }
    return 0;
}

int handover_load(struct handover *h, struct err *err)
{
    while (ready(h->flight, JOB_SHORT)) {
        struct flight_job *j = flight_first(h->flight, JOB_SHORT);

        flight_unhold(h->flight, j);
        if (still_ours(j))
            hand_over(h, j);
        else
            flight_give_back_job(h->flight, j, NULL);
    }
    return ready(h->flight, JOB_LONG) ? load_step(h, flight_first(h->flight, JOB_LONG), err) : 0;
}

void handover_return(struct handover *h, const char *why)
{
    for (enum job_kind kind = JOB_SHORT; kind <= JOB_LONG; kind++) {
        struct flight_job *j;

        while ((j = flight_first(h->flight, kind))) {
            flight_unhold(h->flight, j);
            flight_give_back_job(h->flight, j, why);
        }
    }
}
