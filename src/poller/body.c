/*
 * body.c - loads bodies that did not come with the claim. Invariant: several are not loaded
 * together before their real sizes are known, and one statement at a time, so that a wrong
 * body_size costs neither memory nor other tags' time.
 */
#include "poller/body.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/work/body_store.h"

#include <inttypes.h>
#include <string.h>

/* One statement loads this much, or a single longer body: a few milliseconds. */
#define LOAD_BYTES ((size_t)1 << 20)

bool body_loaded(const struct flight_job *j)
{
    for (uint32_t i = 0; i < j->count; i++)
        if (!j->tasks[i].body)
            return false;
    return true;
}

/* Takes task i out of a job whose tasks have not been handed over. */
static void remove_task(struct flight_job *j, uint32_t i)
{
    task_done(&j->tasks[i]);
    memmove(&j->tasks[i], &j->tasks[i + 1], (j->count - i - 1) * sizeof *j->tasks);
    memmove(&j->flight[i], &j->flight[i + 1], (j->count - i - 1) * sizeof *j->flight);
    j->count--;
}

/* No dqd will ever be able to hand this task to its handler. */
static void give_up(const struct context *ctx, struct flight *f, struct flight_job *j, uint32_t i,
                    const char *why)
{
    struct settlement s = {.event = TASK_GIVE_UP,
                           .outcome = OUTCOME_RELEASED,
                           .exit_code = -1,
                           .start_at = TASK_TIME_NONE,
                           .error = why};

    s.finish_at = dbclock_at(&ctx->clock, when_steady_us());
    log_fold(when_steady_us(), LOG_ERROR, "cannot read a body; its task has failed", j->tag->name,
             why, "id=%" PRIu64 " tag=%s error=%s", j->flight[i].id, log_quote(j->tag->name),
             log_quote(why));
    flight_settle_task(f, j, &j->flight[i], &s);
    remove_task(j, i);
}

/* Tasks whose bodies are too much for one process become a job of their own, behind this one. */
static void split(struct flight *f, struct flight_job *j, uint32_t from)
{
    uint32_t n = j->count - from;
    struct flight_job *rest = flight_job_new(f, j->tag, j->table, j->handler, n);

    rest->kind = JOB_LONG;
    rest->measured = true;
    rest->claimed_us = j->claimed_us;
    rest->leased_us = j->leased_us;
    rest->deadline_us = j->deadline_us;
    memcpy(rest->tasks, j->tasks + from, n * sizeof *rest->tasks);
    memcpy(rest->flight, j->flight + from, n * sizeof *rest->flight);
    rest->open = 0;
    for (uint32_t i = 0; i < n; i++) {
        rest->open += !rest->flight[i].ended;
        rest->body_bytes += rest->tasks[i].body_size;
    }
    j->count = from;
    j->open -= rest->open;
    j->body_bytes -= rest->body_bytes;
    flight_hold(f, rest, 1);
}

/* Asks how long the bodies of a job really are. A row that is gone was deleted: its task is no
 * longer ours. */
static int measure(const struct context *ctx, struct flight *f, struct flight_job *j,
                   struct err *err)
{
    MEM_LOCAL struct task **missing = mem_alloc(j->count * sizeof *missing);
    size_t n = 0, bytes = 0;
    uint32_t fit = 0;

    for (uint32_t i = 0; i < j->count; i++)
        if (!j->tasks[i].body)
            missing[n++] = &j->tasks[i];
    int rc = body_store_measure(ctx->db, missing, n, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < j->count;) {
        if (!j->tasks[i].body && j->tasks[i].body_size == SIZE_MAX) {
            flight_give_back_task(f, j, &j->flight[i], "the body could not be read");
            remove_task(j, i);
        } else {
            i++;
        }
    }
    j->body_bytes = 0;
    for (uint32_t i = 0; i < j->count; i++) {
        bytes += j->tasks[i].body_size;
        if (i == 0 || (fit == i && bytes <= FLIGHT_BODIES_MOST))
            fit = i + 1;
        j->body_bytes += j->tasks[i].body_size;
    }
    j->measured = true;
    /* from the end, so that each part is measured like this one was */
    while (j->count > fit && fit > 0) {
        uint32_t from = j->count - 1;
        size_t part = j->tasks[from].body_size;

        while (from > fit && part + j->tasks[from - 1].body_size <= FLIGHT_BODIES_MOST)
            part += j->tasks[--from].body_size;
        split(f, j, from);
    }
    return 0;
}

/* One statement's worth of bodies. */
static int load_some(const struct context *ctx, struct flight *f, struct flight_job *j,
                     struct err *err)
{
    MEM_LOCAL struct task **missing = mem_alloc(j->count * sizeof *missing);
    size_t n = 0, loaded = 0;
    uint32_t first = 0;

    for (uint32_t i = 0; i < j->count; i++) {
        if (j->tasks[i].body)
            continue;
        if (n == 0)
            first = i;
        missing[n++] = &j->tasks[i];
    }
    int rc = n ? body_store_load(ctx->db, missing, n, j->singly ? 0 : LOAD_BYTES, &loaded, err) : 0;
    if (rows_at_fault(ctx->db, rc) && !j->singly) {
        j->singly = true;
        return 0;
    }
    if (rows_at_fault(ctx->db, rc)) {
        give_up(ctx, f, j, first, err->text);
        return 0;
    }
    if (j->count == 1 && loaded)
        j->body_bytes = j->tasks[0].body_size;
    if (rc == 0 && n && loaded == 0) {
        flight_give_back_task(f, j, &j->flight[first], "the body could not be read");
        remove_task(j, first);
    }
    return rc;
}

int body_step(const struct context *ctx, struct flight *f, struct flight_job *j, struct err *err)
{
    return j->measured ? load_some(ctx, f, j, err) : measure(ctx, f, j, err);
}
