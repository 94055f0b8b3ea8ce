/*
 * schedule.c - see schedule.h. Invariant: any dqd decides any slot; that they do so one after the
 * other only saves statements.
 */
#include "poller/schedule.h"

#include "base/log.h"
#include "base/slot.h"
#include "base/task.h"
#include "base/when.h"
#include "store/work/slot_record.h"
#include "store/work/slot_store.h"

#include <inttypes.h>
#include <sys/param.h>

/* The dqds look so long after each other, so that one of them decides what is due, and the others
 * find nothing left. */
#define APART_US INT64_C(50000)
#define APART_MOST 20
/* After a look that could decide nothing of what is due. */
#define STUCK_US INT64_C(1000000)
/* If that was for locks, so many times what it took, because a locked table costs seconds. */
#define LOCKED_PART 10
#define LOCKED_MOST_US INT64_C(5000000)

void schedule_init(struct schedules *s, struct context *ctx, const struct registry *registry)
{
    *s = (struct schedules){.ctx = ctx, .registry = registry, .look_at = TASK_TIME_NONE};
}

/* A pass takes what is due when it starts: it will not be there a second later. */
void schedule_heard(struct schedules *s)
{
    const struct context *ctx = s->ctx;

    s->look_at = ctx->next_slot_at;
    if (s->look_at != TASK_TIME_NONE && !ctx->once)
        s->look_at -= SLOT_AHEAD_MS;
    s->open = ctx->open_slots && (ctx->once || registry_share(s->registry) == 0);
}

int64_t schedule_next(const struct schedules *s)
{
    const struct context *ctx = s->ctx;

    if (s->look_at == TASK_TIME_NONE || ctx->ending || !ctx->clock.known)
        return NEVER_US;
    const int64_t turn = ctx->once ? 0 : MIN(registry_share(s->registry), APART_MOST);
    return MAX(dbclock_reached_us(&ctx->clock, s->look_at) + turn * APART_US, s->not_before_us);
}

static void log_faults(struct schedules *s, const struct slot_store_done *done)
{
    const struct slot_store_fault *f = &done->fault;
    const size_t left = f->count - done->refused;

    if (done->refused || (left && !s->faulty))
        log_event(f->err.code == ERR_LOCKED ? LOG_WARN : LOG_ERROR,
                  done->refused ? "the server refused the tasks of some schedules"
                                : "some schedules cannot be decided here; others are not affected",
                  "schedules=%zu name=%s error=%s", f->count, log_quote(f->name),
                  log_quote(f->err.text));
    s->faulty = left > 0;
}

int schedule_run(struct schedules *s, bool *ret_added, struct err *err)
{
    struct slot_store_done done;
    const int64_t sent_us = when_steady_us();

    do { /* a pass would end before the next turn */
        int rc = slot_store_decide(s->ctx->db, &done, err);

        *ret_added |= done.added > 0;
        if (rc < 0)
            return rc;
        log_faults(s, &done);
        if (done.decided)
            log_event(LOG_DEBUG, "slots of schedules decided", "schedules=%zu tasks=%zu",
                      done.decided, done.added);
    } while (s->ctx->once && done.more && done.decided);
    if (!done.more)
        s->look_at = s->ctx->once ? TASK_TIME_NONE : done.look_at;
    const int64_t now_us = when_steady_us();
    s->not_before_us = done.more && !done.decided ? now_us + STUCK_US : 0;
    if (!done.decided && done.fault.count && done.fault.err.code == ERR_LOCKED)
        s->not_before_us = MAX(s->not_before_us,
                               now_us + MIN(LOCKED_PART * (now_us - sent_us), LOCKED_MOST_US));
    return 0;
}

int64_t schedule_harvest_next(const struct schedules *s)
{
    return s->open && !s->ctx->ending ? 0 : NEVER_US;
}

int schedule_harvest(struct schedules *s, struct err *err)
{
    s->open = false; /* one that fails is repeated after the next heartbeat */
    return slot_record_harvest(s->ctx->db, &s->open, err);
}
