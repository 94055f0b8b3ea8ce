/*
 * flight.c - jobs: tasks that were claimed, from the claim until all of them have ended. Invariant:
 * every task that was claimed either has an open entry in exactly one job, or a settlement in the
 * queue, or is known to be lost.
 */
#include "poller/flight.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/row/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>

/* Of the files that the runner may open, those that are not for a job, which has one: a long body,
 * then its output; one that runs has one more, for its answer, and a batch another for stderr. */
#define FILES_OTHERS 32
#define FILES_RUNNING 2

void flight_init(struct flight *f, const struct context *ctx, struct look *look,
                 struct settle_results *results, struct minute *minute)
{
    const rlim_t running = (rlim_t)FILES_RUNNING * ctx->slots;
    struct rlimit files;
    rlim_t ours, most;

    *f = (struct flight){.ctx = ctx, .look = look, .results = results, .minute = minute};
    getrlimit(RLIMIT_NOFILE, &files); /* the runner raises it as far as it goes */
    ours = files.rlim_max - FILES_OTHERS;
    most = ours / (1 + FILES_RUNNING);
    f->most = MAX(most, ours - MIN(ours, running));
    if (most < ctx->slots)
        log_event(LOG_WARN,
                  "open files are limited (ulimit -n, LimitNOFILE): fewer handlers than slots run",
                  "limit=%ju slots=%u at_most=%ju", (uintmax_t)files.rlim_max, ctx->slots,
                  (uintmax_t)most);
}

void flight_free(struct flight *f)
{
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(f, &at));)
        flight_job_free(f, j);
    free(f->held[JOB_SHORT].jobs);
    free(f->held[JOB_LONG].jobs);
    free(f->jobs);
    *f = (struct flight){.ctx = f->ctx};
}

/* --- jobs --- */

struct flight_job *flight_job_new(struct flight *f, struct tag_state *t,
                                  struct handlers_table *table, uint32_t handler, uint32_t count)
{
    struct flight_job *j = mem_zero(1, sizeof *j);

    while (f->free < f->cap && f->jobs[f->free])
        f->free++;
    if (f->free == f->cap) {
        size_t cap = f->cap;

        MEM_ROOM(f->jobs, cap, f->cap);
        memset(f->jobs + cap, 0, (f->cap - cap) * sizeof *f->jobs);
    }
    j->number = (uint32_t)f->free++;
    j->tag = t;
    j->table = handlers_table_use(table);
    j->handler = handler;
    j->count = j->open = count;
    j->flight = mem_zero(count, sizeof *j->flight);
    j->tasks = mem_zero(count, sizeof *j->tasks);
    f->jobs[j->number] = j;
    f->count++;
    look_job_queued(f->look, &t->look);
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

void flight_job_free(struct flight *f, struct flight_job *j)
{
    look_job_gone(f->look, &j->tag->look, j->state == JOB_STARTED);
    if (j->state == JOB_SENT)
        f->sent_bytes[j->kind] -= j->body_bytes;
    f->jobs[j->number] = NULL;
    f->count--;
    if (j->number < f->free)
        f->free = j->number;
    handlers_table_release(j->table);
    drop_tasks(j);
    free(j->flight);
    free(j);
}

size_t flight_count(const struct flight *f)
{
    return f->count;
}

struct flight_job *flight_job(const struct flight *f, uint32_t number)
{
    return number < f->cap ? f->jobs[number] : NULL;
}

struct flight_job *flight_each(const struct flight *f, uint32_t *at)
{
    while (*at < f->cap) {
        struct flight_job *j = f->jobs[(*at)++];

        if (j)
            return j;
    }
    return NULL;
}

const struct handler *flight_handler(const struct flight_job *j)
{
    return &j->table->handlers->items[j->handler];
}

const char *flight_limit(const struct flight_job *j)
{
    const char *own = flight_handler(j)->limit;

    return own ? own : j->tag->name;
}

void flight_sent(struct flight *f, struct flight_job *j)
{
    j->state = JOB_SENT;
    f->sent_bytes[j->kind] += j->body_bytes;
    drop_tasks(j);
}

void flight_started(struct flight *f, struct flight_job *j, int64_t start_us, pid_t pid)
{
    int64_t started_at = dbclock_at(&f->ctx->clock, start_us);

    j->state = JOB_STARTED;
    j->start_us = start_us;
    j->pid = pid;
    look_job_started(f->look, &j->tag->look);
    j->tag->look.started_us = start_us;
    for (uint32_t i = 0; i < j->count; i++)
        minute_started(f->minute, j->tag->name, started_at - j->flight[i].late_from_at);
    f->sent_bytes[j->kind] -= j->body_bytes;
}

/* --- jobs that wait to be handed over --- */

void flight_hold(struct flight *f, struct flight_job *j, size_t at)
{
    struct held_jobs *h = &f->held[j->kind];

    MEM_ROOM(h->jobs, h->count, h->cap);
    memmove(h->jobs + at + 1, h->jobs + at, (h->count - at) * sizeof *h->jobs);
    h->jobs[at] = j;
    h->count++;
}

size_t flight_held(const struct flight *f, enum job_kind kind)
{
    return f->held[kind].count;
}

struct flight_job *flight_first(const struct flight *f, enum job_kind kind)
{
    return f->held[kind].count ? f->held[kind].jobs[0] : NULL;
}

void flight_unhold(struct flight *f, const struct flight_job *j)
{
    struct held_jobs *h = &f->held[j->kind];
    size_t at = 0;

    while (h->jobs[at] != j)
        at++;
    memmove(h->jobs + at, h->jobs + at + 1, (--h->count - at) * sizeof *h->jobs);
}

void flight_unhold_all(struct flight *f)
{
    f->held[JOB_SHORT].count = f->held[JOB_LONG].count = 0;
}

bool flight_has_room(const struct flight *f, const struct flight_job *j)
{
    size_t sent = f->sent_bytes[j->kind];

    return f->count - f->held[JOB_SHORT].count - f->held[JOB_LONG].count < f->most &&
           (sent == 0 || sent + j->body_bytes <= FLIGHT_BODIES_MOST);
}

/* --- tasks --- */

size_t flight_task_count(const struct flight *f)
{
    struct flight_job *j;
    size_t n = 0;

    for (uint32_t at = 0; (j = flight_each(f, &at));)
        n += j->count;
    return n;
}

void flight_refs(const struct flight *f, struct claim_ref *refs)
{
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(f, &at));)
        for (uint32_t i = 0; i < j->count; i++)
            *refs++ = (struct claim_ref){j->flight[i].id, j->flight[i].version};
}

bool flight_keeps(const struct flight *f, const struct claim_ref *ref)
{
    struct flight_job *j;

    for (uint32_t at = 0; (j = flight_each(f, &at));)
        for (uint32_t i = 0; i < j->count; i++) {
            const struct flight_task *t = &j->flight[i];

            if (t->id == ref->id && t->version == ref->version && !t->ended && !t->lost)
                return true;
        }
    return settle_has(f->results, ref);
}

void flight_end_task(struct flight_job *j, struct flight_task *t)
{
    if (!t->ended)
        j->open--;
    t->ended = true;
}

/* A retry is planned only for a time at which the task can still start. Returns the error of a task
 * that fails instead, heap memory. */
static char *check_expiry(const struct flight_task *t, struct settlement *s)
{
    int64_t left_ms;

    if (task_transition(s->event)->due != DUE_RETRIED || t->expires_at == TASK_TIME_NONE)
        return NULL;
    left_ms = t->expires_at - s->finish_at - s->retry_delay_ms;
    if (left_ms > 0) {
        s->apart_ms = MIN(s->apart_ms, left_ms);
        return NULL;
    }
    s->apart_ms = 0;
    s->event = TASK_GIVE_UP;
    if (s->outcome == OUTCOME_SNOOZED)
        s->outcome = OUTCOME_VERDICT;
    return mem_printf("%s%sno further attempt before it expires", s->error ? s->error : "",
                      s->error ? "; " : "");
}

void flight_settle_task(struct flight *f, struct flight_job *j, struct flight_task *t,
                        struct settlement *s)
{
    const char *error = s->error;
    char *expiry = check_expiry(t, s);

    s->id = t->id;
    s->version = t->version;
    s->body_size = rows_size(j->body_bytes / j->count, t->again);
    s->error = expiry ? expiry : error;
    if (!t->ended && !t->lost)
        settle_queue(f->results, s, j->tag, j->leased_us);
    s->error = error;
    free(expiry);
    flight_end_task(j, t);
}

/* The task was claimed and is given back. */
static struct settlement released(const struct flight *f, const char *why)
{
    struct settlement s = {.event = TASK_GIVE_BACK,
                           .outcome = OUTCOME_RELEASED,
                           .exit_code = -1,
                           .start_at = TASK_TIME_NONE,
                           .error = why};

    s.finish_at = dbclock_at(&f->ctx->clock, when_steady_us());
    return s;
}

void flight_give_back_task(struct flight *f, struct flight_job *j, struct flight_task *t,
                           const char *why)
{
    struct settlement s = released(f, why);

    flight_settle_task(f, j, t, &s);
}

void flight_give_back_job(struct flight *f, struct flight_job *j, const char *why)
{
    for (uint32_t i = 0; i < j->count; i++)
        flight_give_back_task(f, j, &j->flight[i], why);
    flight_job_free(f, j);
}

void flight_give_back(struct flight *f, struct tag_state *t, struct task_array *won,
                      int64_t sent_us, const char *why)
{
    struct settlement s = released(f, why);

    for (size_t i = 0; i < won->count; i++) {
        s.id = won->items[i].id;
        s.version = won->items[i].version;
        s.body_size = won->items[i].body_size;
        settle_queue(f->results, &s, t, sent_us);
    }
    task_array_done(won);
}
