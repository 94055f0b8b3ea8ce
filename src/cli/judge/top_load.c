/*
 * top_load.c - see top_load.h.
 */
#include "cli/judge/top_load.h"

#include "base/mem.h"
#include "base/order.h"
#include "base/when.h"
#include "cli/judge/why_fleet.h"
#include "cli/judge/why_lock.h"
#include "store/ask/tag_store.h"
#include "store/db/db_session.h"
#include "store/fleet/minute_store.h"

#include <stdlib.h>
#include <string.h>

/* Rates are those of the minute that has begun and the one before. */
#define RATE_STEPS 2
/* Tags that are late for no other reason, and whose first task is looked at for a lock. */
#define LOCKS_MOST 10
#define LOOK_SLOW_MS 500 /* the table is locked as a whole: the next look would wait, too */

struct load {
    struct db *db;
    size_t locks;
    const struct fleet *fleet;
    const char *last_dqd; /* NULL: there was none */
    int64_t now_at;
    struct top_data *data;
    struct why_running *running; /* by tag, as the tags are */
    size_t running_count, running_at;
};

/* ---- rates */

/* The tags are in the order of tag_store_list, that of strcmp. */
static void add_row(struct top_data *d, struct counts *sums, const struct minute_answer *a,
                    const struct minute_row *r)
{
    int64_t step = (r->at - a->from_at) / WHEN_MINUTE,
            last = (a->now_at - a->from_at) / WHEN_MINUTE, back = last - step;

    if (back < 0 || back >= TOP_VIEW_STEPS)
        return;
    d->done_steps[TOP_VIEW_STEPS - 1 - back] += r->counts.done;
    d->failed_steps[TOP_VIEW_STEPS - 1 - back] += r->counts.failed + r->counts.retried;
    struct top_tag *t =
        d->count ? bsearch(&r->tag, d->tags, d->count, sizeof *d->tags, order_names) : NULL;
    if (t)
        counts_add(&sums[t - d->tags], &r->counts);
    if (t && back < RATE_STEPS) {
        t->done += (double)r->counts.done;
        t->failed += (double)(r->counts.failed + r->counts.retried);
    }
}

static int load_rates(struct cmd_context *c, const char *tag_glob, struct top_data *d,
                      struct err *err)
{
    const struct minute_ask ask = {.tag_glob = tag_glob,
                                   .since_ms = (TOP_VIEW_STEPS - 1) * WHEN_MINUTE,
                                   .step_ms = WHEN_MINUTE};
    struct minute_answer a;
    int rc = minute_store_read(c->db, &ask, &a, err);

    if (rc < 0)
        return rc;
    struct counts *sums = mem_zero(d->count + 1, sizeof *sums);
    for (size_t i = 0; i < a.count; i++)
        add_row(d, sums, &a, &a.rows[i]);
    double seconds =
        (double)((RATE_STEPS - 1) * WHEN_MINUTE + a.now_at % WHEN_MINUTE) / WHEN_SECOND;
    for (int i = TOP_VIEW_STEPS - RATE_STEPS; i < TOP_VIEW_STEPS; i++) {
        d->done += (double)d->done_steps[i] / seconds;
        d->failed += (double)d->failed_steps[i] / seconds;
    }
    for (size_t i = 0; i < d->count; i++) {
        d->tags[i].done /= seconds;
        d->tags[i].failed /= seconds;
        d->tags[i].took_p50_ms = counts_took(&sums[i], 50);
        d->tags[i].took_p95_ms = counts_took(&sums[i], 95);
    }
    free(sums);
    minute_store_free(a.rows, a.count);
    return 0;
}

/* ---- reasons */

/* Why the task of the tag that is due first waits. The owners are those of the tag. */
static char *explain(struct load *l, const struct tag_info *t, const struct why_owner *owners,
                     size_t count)
{
    struct why_facts f = {.tag = t->tag,
                          .status = TASK_PENDING,
                          .attempt = t->refused ? TASK_ATTEMPT_MOST : 0,
                          .limit = {0, t->paused_until_at, t->pause_reason},
                          .paused_by = t->paused_by,
                          .now_at = l->now_at,
                          .ran_ms = -1,
                          .mean_ms = -1,
                          .usual_ms = -1,
                          .last_dqd = l->last_dqd};
    struct why w;

    if (t->next_at == TASK_TIME_NONE && t->paused_until_at == TASK_TIME_NONE)
        return mem_strdup("");
    f.due_in_ms = t->next_at == TASK_TIME_NONE ? 0 : t->next_at - l->now_at;
    struct why_dqd *dqds = why_fleet_see(l->fleet, t->tag, owners, count, &f);
    why_decide(&f, &w);
    if (t->late_from_at != TASK_TIME_NONE && why_is_open(&w) && l->locks < LOCKS_MOST) {
        int64_t since = when_steady();
        if (l->locks++ == 0)
            db_session_brief(l->db, true);
        f.late_ms = l->now_at - t->late_from_at;
        why_lock_see(l->db, &f, &w);
        if (when_steady() - since > LOOK_SLOW_MS)
            l->locks = LOCKS_MOST;
    }
    char *brief = why_brief(&w);
    why_done(&w);
    free(dqds);
    return brief;
}

/* ---- all of it */

/* The owners of the next tag. */
static size_t take_owners(struct load *l, const char *tag, struct why_owner *owners)
{
    const struct why_running *r = l->running;
    size_t n = 0;

    while (l->running_at < l->running_count && strcmp(r[l->running_at].tag, tag) < 0)
        l->running_at++;
    while (l->running_at < l->running_count && strcmp(r[l->running_at].tag, tag) == 0)
        owners[n++] = r[l->running_at++].owner;
    return n;
}

static void add_tag(struct load *l, const struct tag_info *t, struct why_owner *owners)
{
    size_t count = take_owners(l, t->tag, owners);
    bool late = t->late_from_at != TASK_TIME_NONE && t->late_from_at <= l->now_at;

    l->data->failed_tasks += t->count[TASK_FAILED];
    l->data->failed_sampled |= t->sampled[TASK_FAILED];
    l->data->tags[l->data->count++] =
        (struct top_tag){.name = mem_strdup(t->tag),
                         .running = t->count[TASK_RUNNING],
                         .due = t->due,
                         .due_sampled = t->due_sampled,
                         .paused = t->paused_until_at != TASK_TIME_NONE,
                         .late_ms = late ? l->now_at - t->late_from_at : -1,
                         .why = explain(l, t, owners, count)};
}

/* Only running, failed and due tasks are counted, as no other number is shown; every second, so not
 * for long. */
static const struct tag_count_how how = {.most_ms = 50,
                                         .skip = ~(TASK_BIT(TASK_RUNNING) | TASK_BIT(TASK_FAILED))};

int top_load(struct cmd_context *c, const char *tag_glob, struct top_data *ret, struct err *err)
{
    struct top_data d = {.count = 0};
    struct fleet fleet = {.count = 0};
    struct load l = {.db = c->db, .fleet = &fleet, .data = &d};
    struct tag_info *tags = NULL;
    struct buf last = BUF_INIT;
    size_t count = 0;
    int rc = fleet_load(c->db, &fleet, err);

    if (rc == 0)
        rc = tag_store_list(c->db, tag_glob, &how, &tags, &count, &l.now_at, err);
    if (rc == 0)
        rc = why_store_running(c->db, &l.running, &l.running_count, err);
    d.alive = fleet.alive;
    d.dqds = fleet.count;
    d.silent = fleet.silent;
    for (size_t i = 0; rc == 0 && i < fleet.count; i++) {
        d.running += fleet.dqds[i].alive ? (uint64_t)fleet.dqds[i].running : 0;
        d.slots += fleet.dqds[i].alive ? (uint64_t)fleet.dqds[i].slots : 0;
    }
    if (rc == 0 && fleet.count) {
        fleet_put_last(&last, &fleet);
        l.last_dqd = last.data;
    }
    d.tags = mem_alloc((count + 1) * sizeof *d.tags);
    struct why_owner *owners = mem_alloc((l.running_count + 1) * sizeof *owners);
    for (size_t i = 0; rc == 0 && i < count; i++)
        add_tag(&l, &tags[i], owners);
    if (l.locks)
        db_session_brief(c->db, false);
    if (rc == 0)
        rc = load_rates(c, tag_glob, &d, err);
    free(owners);
    why_store_running_free(l.running, l.running_count);
    tag_store_free(tags, count);
    buf_done(&last);
    fleet_done(&fleet);
    if (rc < 0)
        top_view_free(&d);
    else
        *ret = d;
    return rc;
}
