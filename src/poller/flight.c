/*
 * flight.c - tasks on their way: claimed, handed to the runner, started, ended. Invariant: every
 * task that was claimed either has an open entry in exactly one job, or a settlement in the queue,
 * or is known to be lost.
 */
#include "poller/flight.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "poller/body.h"
#include "poller/input.h"
#include "poller/lease.h"
#include "poller/state.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

const struct handler *flight_handler(const struct flight_job *j)
{
    return &j->table->handlers->items[j->handler];
}

struct flight_job *flight_job_new(struct poller *p, struct tag_state *t, uint32_t count)
{
    struct flight_job *j = mem_zero(1, sizeof *j);

    while (p->flight.free < p->flight.cap && p->flight.jobs[p->flight.free])
        p->flight.free++;
    if (p->flight.free == p->flight.cap) {
        size_t cap = p->flight.cap ? 2 * p->flight.cap : 64;

        p->flight.jobs = mem_resize(p->flight.jobs, cap, sizeof *p->flight.jobs);
        memset(p->flight.jobs + p->flight.cap, 0, (cap - p->flight.cap) * sizeof *p->flight.jobs);
        p->flight.cap = cap;
    }
    j->number = (uint32_t)p->flight.free++;
    j->tag = t;
    j->table = p->table;
    j->table->users++;
    j->handler = (uint32_t)t->handler;
    j->count = j->open = count;
    j->flight = mem_zero(count, sizeof *j->flight);
    j->tasks = mem_zero(count, sizeof *j->tasks);
    p->flight.jobs[j->number] = j;
    p->flight.count++;
    look_job_queued(&t->look);
    return j;
}

static void drop_tasks(struct flight_job *j)
{
    if (!j->tasks)
        return;
    for (uint32_t i = 0; i < j->count; i++)
        task_done(&j->tasks[i]);
    free(j->tasks);
    j->tasks = NULL;
}

void flight_job_free(struct poller *p, struct flight_job *j)
{
    look_job_gone(&p->look, &j->tag->look, j->state == JOB_STARTED);
    if (j->state == JOB_SENT)
        p->flight.sent_bytes[j->kind] -= j->body_bytes;
    p->flight.jobs[j->number] = NULL;
    p->flight.count--;
    if (j->number < p->flight.free)
        p->flight.free = j->number;
    if (--j->table->users == 0) {
        handlers_free(j->table->handlers);
        free(j->table);
    }
    drop_tasks(j);
    free(j->flight);
    free(j);
}

void flight_end_task(struct flight_job *j, struct flight_task *f)
{
    if (!f->ended)
        j->open--;
    f->ended = true;
}

void flight_release_task(struct poller *p, struct flight_job *j, struct flight_task *f,
                         const char *why)
{
    struct settlement s = {.id = f->id,
                           .version = f->version,
                           .event = TASK_RELEASE,
                           .outcome = OUTCOME_RELEASED,
                           .exit_code = -1};

    s.start_at = TASK_TIME_NONE;
    s.finish_at = dbclock_at(&p->clock, when_steady_us());
    s.error = why;
    if (!f->ended && !f->lost)
        settle_queue(&p->results, &s, j->leased_us);
    flight_end_task(j, f);
}

void flight_release_job(struct poller *p, struct flight_job *j, const char *why)
{
    for (uint32_t i = 0; i < j->count; i++)
        flight_release_task(p, j, &j->flight[i], why);
    flight_job_free(p, j);
}

void flight_release(struct poller *p, struct task_array *won, const char *why)
{
    struct settlement s = {.event = TASK_RELEASE,
                           .outcome = OUTCOME_RELEASED,
                           .exit_code = -1,
                           .start_at = TASK_TIME_NONE,
                           .error = why};

    s.finish_at = dbclock_at(&p->clock, when_steady_us());
    for (size_t i = 0; i < won->count; i++) {
        s.id = won->items[i].id;
        s.version = won->items[i].version;
        settle_queue(&p->results, &s, p->claims.sent_us);
    }
    task_array_done(won);
}

/* Its tasks cannot be handed to any handler: each has failed once more, and the tag's others
 * go on. */
static void fail_job(struct poller *p, struct flight_job *j, const char *why)
{
    for (uint32_t i = 0; i < j->count; i++) {
        struct flight_task *f = &j->flight[i];
        int64_t delay_ms =
            retry_delay_ms(&flight_handler(j)->retry, f->attempt, f->max_attempts, poller_random());
        struct settlement s = {.id = f->id,
                               .version = f->version,
                               .event = delay_ms < 0 ? TASK_GIVE_UP : TASK_TRY_LATER,
                               .outcome = OUTCOME_EXIT,
                               .retry_delay_ms = delay_ms,
                               .exit_code = -1,
                               .error = why};

        s.start_at = s.finish_at = dbclock_at(&p->clock, when_steady_us());
        if (f->ended || f->lost)
            continue;
        log_event(LOG_ERROR, "attempt failed, its body cannot be handed over",
                  "id=%" PRIu64 " tag=%s error=%s", f->id, log_quote(j->tag->name), log_quote(why));
        settle_queue(&p->results, &s, j->leased_us);
        flight_end_task(j, f);
    }
    flight_job_free(p, j);
}

void flight_hold(struct poller *p, struct flight_job *j, size_t at)
{
    struct held_jobs *h = &p->flight.held[j->kind];

    if (h->count == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 16;
        h->jobs = mem_resize(h->jobs, h->cap, sizeof *h->jobs);
    }
    memmove(h->jobs + at + 1, h->jobs + at, (h->count - at) * sizeof *h->jobs);
    h->jobs[at] = j;
    h->count++;
}

static void unhold_first(struct held_jobs *h)
{
    memmove(h->jobs, h->jobs + 1, --h->count * sizeof *h->jobs);
}

bool flight_holds(const struct poller *p)
{
    return p->flight.held[JOB_SHORT].count + p->flight.held[JOB_LONG].count > 0;
}

/* When the first instruction may be executed. The claim has proved that all is due so soon,
 * whatever becomes of the clock since. */
static int64_t start_us(const struct poller *p, const struct flight_job *j)
{
    int64_t now_us = when_steady_us(), latest_us = now_us + LOOK_EARLY_MS * 1000, at_us = 0;

    for (uint32_t i = 0; i < j->count; i++) {
        int64_t reached_us = dbclock_reached_us(&p->clock, j->flight[i].expected_at);

        at_us = MAX(at_us, reached_us);
    }
    at_us = MIN(at_us, latest_us);
    return at_us > now_us ? at_us : 0;
}

/* Gives the job to the runner. Its bodies are loaded. */
static void hand_over(struct poller *p, struct flight_job *j)
{
    struct err err = {0};
    const struct task *t = &j->tasks[0];
    bool single = flight_handler(j)->batch <= 1;
    uint64_t *ids = mem_alloc(j->count * sizeof *ids);
    struct message_job r = {.digest = j->table->handlers->digest,
                            .handler = j->handler,
                            .tag = j->tag->name,
                            .start_us = start_us(p, j),
                            .vouched_us = j->leased_us + lease_vouch_us(p),
                            .deadline_at = j->deadline_us / 1000,
                            .ids = ids,
                            .count = j->count};

    for (uint32_t i = 0; i < j->count; i++)
        ids[i] = j->flight[i].id;
    if (single) {
        r.key = t->key;
        r.attempt = t->attempt;
        r.max_attempts = t->max_attempts;
        r.expected_at = t->expected_at;
        r.token = t->version;
    }
    r.stdin_fd =
        single ? input_body(t->body, t->body_size, &err) : input_batch(j->tasks, j->count, &err);
    if (r.stdin_fd < 0 && err.code == ERR_DATA) {
        fail_job(p, j, err.text);
    } else if (r.stdin_fd < 0) {
        tags_rest(j->tag, err.text);
        flight_release_job(p, j, err.text);
    } else {
        j->state = JOB_SENT;
        p->flight.sent_bytes[j->kind] += j->body_bytes;
        link_send_job(p->link, j->number, &r);
        drop_tasks(j);
    }
    free(ids);
}

static bool has_room(const struct poller *p, const struct flight_job *j)
{
    size_t sent = p->flight.sent_bytes[j->kind];

    return sent == 0 || sent + j->body_bytes <= BODIES_MOST;
}

static size_t body_bytes(const struct task *t)
{
    return t->body_size == SIZE_MAX ? BODIES_MOST : t->body_size; /* not known: take it for long */
}

/* How many of the tasks from `from` on make one job. */
static uint32_t job_length(const struct handler *h, const struct task_array *won, size_t from)
{
    size_t bytes = 0;
    uint32_t n = 0;

    while (from + n < won->count && n < (uint32_t)h->batch) {
        bytes += body_bytes(&won->items[from + n]);
        if (n > 0 && bytes > BODIES_MOST)
            break;
        n++;
    }
    return n;
}

void flight_take(struct poller *p, struct tag_state *t, struct task_array *won, int64_t sent_us)
{
    const struct handler *h = &p->table->handlers->items[t->handler];

    for (size_t at = 0; at < won->count;) {
        uint32_t n = job_length(h, won, at);
        struct flight_job *j = flight_job_new(p, t, n);

        j->leased_us = sent_us;
        j->deadline_us = sent_us + p->conf->dqd.lease_ms * 1000;
        for (uint32_t i = 0; i < n; i++) {
            struct task *k = &won->items[at + i];

            j->flight[i] = (struct flight_task){.id = k->id,
                                                .version = k->version,
                                                .attempt = k->attempt,
                                                .max_attempts = k->max_attempts,
                                                .expected_at = k->expected_at};
            j->body_bytes += body_bytes(k);
            j->tasks[i] = *k;
            task_init(k);
        }
        at += n;
        j->kind = body_loaded(j) ? JOB_SHORT : JOB_LONG;
        if (j->kind == JOB_SHORT && p->flight.held[JOB_SHORT].count == 0 && has_room(p, j))
            hand_over(p, j);
        else
            flight_hold(p, j, p->flight.held[j->kind].count);
    }
    task_array_done(won);
}

static bool ready(const struct poller *p, enum job_kind kind)
{
    const struct held_jobs *h = &p->flight.held[kind];

    return h->count && ((kind == JOB_LONG && !h->jobs[0]->measured) || has_room(p, h->jobs[0]));
}

int64_t flight_next(const struct poller *p)
{
    return !p->runner_gone && (ready(p, JOB_SHORT) || ready(p, JOB_LONG)) ? 0 : NEVER_US;
}

static bool still_ours(const struct flight_job *j)
{
    for (uint32_t i = 0; i < j->count; i++)
        if (!j->flight[i].lost)
            return true;
    return false;
}

/* The next step of the first long job. It is one statement, so that others are not kept waiting by
 * many long bodies. */
static int load_step(struct poller *p, struct flight_job *j, struct err *err)
{
    int rc = 0;

    if (still_ours(j))
        rc = body_step(p, j, err);
    if (rc < 0)
        return rc;
    if (!still_ours(j)) {
        unhold_first(&p->flight.held[JOB_LONG]);
        flight_release_job(p, j, "the body could not be read");
    } else if (body_loaded(j)) {
        unhold_first(&p->flight.held[JOB_LONG]);
        hand_over(p, j);
    }
    return 0;
}

int flight_load(struct poller *p, struct err *err)
{
    while (ready(p, JOB_SHORT)) {
        struct flight_job *j = p->flight.held[JOB_SHORT].jobs[0];

        unhold_first(&p->flight.held[JOB_SHORT]);
        if (still_ours(j))
            hand_over(p, j);
        else
            flight_release_job(p, j, NULL);
    }
    return ready(p, JOB_LONG) ? load_step(p, p->flight.held[JOB_LONG].jobs[0], err) : 0;
}

void flight_return_held(struct poller *p, const char *why)
{
    for (int kind = JOB_SHORT; kind <= JOB_LONG; kind++) {
        while (p->flight.held[kind].count) {
            struct flight_job *j = p->flight.held[kind].jobs[0];

            unhold_first(&p->flight.held[kind]);
            flight_release_job(p, j, why);
        }
    }
}

void flight_free(struct poller *p)
{
    for (size_t i = 0; i < p->flight.cap; i++)
        if (p->flight.jobs[i])
            flight_job_free(p, p->flight.jobs[i]);
    free(p->flight.jobs);
    for (int kind = JOB_SHORT; kind <= JOB_LONG; kind++) {
        free(p->flight.held[kind].jobs);
        p->flight.held[kind] = (struct held_jobs){NULL, 0, 0};
    }
    p->flight.jobs = NULL;
    p->flight.cap = p->flight.count = 0;
}
