/*
 * upkeep.c - what any poller does for all: taking back tasks whose owner is gone, deleting what has
 * been finished long enough.
 */
#include "poller/upkeep.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "poller/state.h"
#include "store/lease_store.h"
#include "store/retention_store.h"
#include "store/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define REAP_MOST 500
#define REAP_EVERY_US INT64_C(2000000)
#define REAP_SHARE 500
#define REAP_RARE_US INT64_C(10000000)
/* A tag without handler here is left to those that have one, but not for ever. */
#define UNHANDLED_GRACE_MS INT64_C(300000)
#define SWEEP_STEP 500
#define SWEEP_STEPS 20
#define SWEEP_AGAIN_US INT64_C(1000000)

int64_t upkeep_reap_next(const struct poller *p)
{
    return p->phase == PHASE_RUN && p->clock.known ? p->upkeep.reap_us : NEVER_US;
}

/* Whether we may take the task back, and if so, whether it has failed for good. */
static bool judge(struct poller *p, const struct task *t, int64_t now_at, bool *ret_give_up)
{
    int handler = tags_named(p, t->tag)->handler;

    *ret_give_up = t->max_attempts && t->attempt >= t->max_attempts;
    if (handler < 0)
        return t->lease_until_at < now_at - UNHANDLED_GRACE_MS;
    if (p->table->handlers->items[handler].on_lease_expiry == HANDLER_EXPIRY_FAIL)
        *ret_give_up = true;
    return true;
}

/* It passes over what old snapshots of other sessions keep: where that takes long (twice in a row:
 * once is chance), it is done seldom. */
static void plan_reap(struct poller *p, int64_t now_us, int64_t cost_us)
{
    int64_t dear_us = MIN(cost_us, p->upkeep.reap_cost_us), wait_us = dear_us * REAP_SHARE;

    p->upkeep.reap_cost_us = cost_us;
    p->upkeep.reap_us = now_us + REAP_EVERY_US * 3 / 4 +
                        (int64_t)(poller_random() % (REAP_EVERY_US / 2)) +
                        (wait_us < REAP_RARE_US ? wait_us : REAP_RARE_US);
}

/* Keeps those that are ours to take back; give_up[] is by their new place. Of many that are not,
 * the next look begins behind the last one's tag: all of that tag would only be in the way of
 * others. */
static void keep_judged(struct poller *p, struct task_array *l, bool *give_up, int64_t now_at)
{
    const char *left = NULL;
    size_t kept = 0;

    for (size_t i = 0; i < l->count; i++) {
        struct task *t = &l->items[i];

        if (judge(p, t, now_at, &give_up[kept])) {
            struct task swap = l->items[kept];

            l->items[kept++] = *t;
            *t = swap;
        } else {
            left = t->tag;
        }
    }
    free(p->upkeep.after);
    p->upkeep.after = left && l->count == REAP_MOST ? mem_strdup(left) : NULL;
    for (size_t i = kept; i < l->count; i++)
        task_done(&l->items[i]);
    l->count = kept;
}

static void log_taken(const struct task_array *l, const bool *give_up, const bool *taken)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct task *t = &l->items[i];

        if (taken[i])
            log_event(LOG_WARN, "lease expired, task taken back",
                      "id=%" PRIu64 " tag=%s attempt=%u host=%s pid=%u then=%s", t->id,
                      log_quote(t->tag), t->attempt, log_quote(t->host), t->pid,
                      give_up[i] ? "failed" : "pending");
    }
}

static void log_left(struct poller *p, int64_t now_us)
{
    struct aside *a = &p->upkeep.aside;

    if (aside_news(a, now_us))
        log_event(a->last.err.code == ERR_LOCKED ? LOG_WARN : LOG_ERROR,
                  "tasks whose lease has ended cannot be taken back, the others are",
                  "tasks=%zu id=%" PRIu64 " error=%s", a->count, a->last.id,
                  log_quote(a->last.err.text));
    else if (aside_over(a))
        log_event(LOG_INFO, "no task is left that cannot be taken back", "%s", "");
}

int upkeep_reap(struct poller *p, struct err *err)
{
    struct task_array expired = {0};
    struct rows_faults faults = {0};
    bool give_up[REAP_MOST], taken[REAP_MOST] = {false}, careful = p->upkeep.aside.count > 0;
    int64_t now_us = when_steady_us();
    uint64_t *aside;
    size_t aside_count = aside_ids(&p->upkeep.aside, now_us, &aside);
    int rc =
        lease_store_expired(p->db, p->upkeep.after, aside, aside_count, REAP_MOST, &expired, err);

    free(aside);
    if (rc < 0)
        return rc;
    plan_reap(p, now_us, when_steady_us() - now_us);
    keep_judged(p, &expired, give_up, dbclock_at(&p->clock, now_us));
    if (expired.count) {
        rc = lease_store_take_back(p->db, &expired, give_up, careful, taken, &faults, err);
        log_taken(&expired, give_up, taken);
        for (size_t i = 0; i < expired.count; i++)
            if (taken[i])
                aside_forget(&p->upkeep.aside, expired.items[i].id);
        aside_put_all(&p->upkeep.aside, &faults, when_steady_us());
        if (faults.count < expired.count)
            look_reaped(&p->look);
    }
    log_left(p, when_steady_us());
    rows_faults_done(&faults);
    task_array_done(&expired);
    return rc;
}

int64_t upkeep_retention_next(const struct poller *p)
{
    return p->phase == PHASE_RUN ? p->upkeep.retention_us : NEVER_US;
}

static int sweep(struct poller *p, enum task_status status, int64_t age_ms, size_t *ret_deleted,
                 struct err *err)
{
    struct rows_faults faults = {0};
    int rc = retention_store_expire(p->db, status, age_ms, SWEEP_STEP, ret_deleted, &faults, err);

    if (faults.count)
        log_event(LOG_WARN, "old tasks cannot be deleted, the others are",
                  "tasks=%zu id=%" PRIu64 " error=%s", faults.count, faults.items[0].id,
                  log_quote(faults.items[0].err.text));
    rows_faults_done(&faults);
    return rc;
}

int upkeep_retention(struct poller *p, struct err *err)
{
    const struct {
        enum task_status status;
        int64_t age_ms;
    } kinds[] = {{TASK_DONE, p->conf->retention.done_ms},
                 {TASK_FAILED, p->conf->retention.failed_ms},
                 {TASK_CANCELLED, p->conf->retention.cancelled_ms}};
    bool more = false;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t deleted = SWEEP_STEP;

        for (int step = 0; kinds[i].age_ms > 0 && step < SWEEP_STEPS && deleted >= SWEEP_STEP;
             step++) {
            int rc = sweep(p, kinds[i].status, kinds[i].age_ms, &deleted, err);

            if (rc < 0)
                return rc;
        }
        more |= kinds[i].age_ms > 0 && deleted >= SWEEP_STEP;
    }
    p->upkeep.retention_us =
        when_steady_us() + (more ? SWEEP_AGAIN_US : p->conf->retention.interval_ms * 1000);
    return 0;
}
