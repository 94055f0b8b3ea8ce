/*
 * top_load.c - see top_load.h.
 */
#include "cli/judge/top_load.h"

#include "base/mem.h"
#include "base/order.h"
#include "base/when.h"
#include "cli/judge/stats.h"
#include "cli/judge/why_facts.h"
#include "store/db/db_session.h"
#include "store/fleet/schedule_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

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
    struct poller_tasks *running; /* by tag, as the tags are */
    size_t running_count, running_at;
};

/* ---- rates */

/* Ends of an attempt a second, of late. */
static void put_rates(const struct stats_tag *t, double *ret_done, double *ret_failed)
{
    const struct stats *s = t->of;
    size_t from = s->step_count - MIN(s->step_count, RATE_STEPS);
    int64_t elapsed_ms = MAX(s->now_at - stats_step_at(s, from), 1);
    struct counts sum = {0};

    for (size_t i = from; t->steps && i < s->step_count; i++)
        counts_add(&sum, &t->steps[i]);
    *ret_done = stats_per_second(sum.done, elapsed_ms);
    *ret_failed = stats_per_second(sum.failed + sum.retried, elapsed_ms);
}

static void put_kept(struct top_data *d, const struct fleet *f)
{
    unsigned busy, idle;

    for (size_t i = 0; i < f->rest_count; i++) {
        const struct handler_rest *r = &f->rests[i];
        if (r->reason != HANDLER_KEPT || r->for_ms <= 0 ||
            sscanf(r->error, HANDLER_KEPT_TEXT, &busy, &idle) != 2)
            continue;
        d->kept += busy + idle;
        d->kept_idle += idle;
    }
}

static void put_steps(struct top_data *d, const struct stats_tag *t)
{
    size_t count = t->of->step_count, shown = MIN(count, TOP_VIEW_STEPS);

    for (size_t i = 0; t->steps && i < shown; i++) {
        const struct counts *c = &t->steps[count - shown + i];
        d->done_steps[TOP_VIEW_STEPS - shown + i] = c->done;
        d->failed_steps[TOP_VIEW_STEPS - shown + i] = c->failed + c->retried;
    }
    put_rates(t, &d->done, &d->failed);
}

/* ---- reasons */

/* Why the task of the tag that is due first waits. The owners are those of the tag. */
static char *explain(struct load *l, const struct tag_info *t, const struct poller_tasks *owners,
                     size_t count)
{
    struct why_facts f = {.tag = t->tag,
                          .status = TASK_PENDING,
                          .attempt = t->refused ? TASK_ATTEMPT_MOST : 0,
                          .limit = {.paused_until_at = t->paused_until_at,
                                    .reason = t->pause_reason,
                                    .held_until_at = TASK_TIME_NONE},
                          .paused_by = t->paused_by,
                          .now_at = l->now_at,
                          .ran_ms = -1,
                          .mean_ms = -1,
                          .usual_ms = -1,
                          .last_dqd = l->last_dqd};
    LOCAL_BY(why_lines_done) struct why w = {0};

    if (t->next_at == TASK_TIME_NONE && !tag_info_paused(t))
        return mem_strdup("");
    f.due_in_ms = t->next_at == TASK_TIME_NONE ? 0 : t->next_at - l->now_at;
    MEM_LOCAL struct why_dqd *dqds = why_facts_see(l->fleet, t->tag, owners, count, &f);
    why_decide(&f, &w);
    if (t->late_from_at != TASK_TIME_NONE && why_is_open(&w) && l->locks < LOCKS_MOST) {
        int64_t since = when_steady();
        if (l->locks++ == 0)
            db_session_brief(l->db, true);
        f.late_ms = tag_info_late_ms(t, l->now_at);
        why_facts_lock(l->db, &f, &w);
        if (when_steady() - since > LOOK_SLOW_MS)
            l->locks = LOCKS_MOST;
    }
    return why_brief(&w);
}

/* ---- all of it */

/* The owners of the next tag. */
static const struct poller_tasks *take_owners(struct load *l, const char *tag, size_t *ret_count)
{
    const struct poller_tasks *at = &l->running[l->running_at];
    const struct poller_tasks *end = &l->running[l->running_count];

    while (at < end && strcmp(at->tag, tag) < 0)
        at++;
    const struct poller_tasks *first = at;
    while (at < end && strcmp(at->tag, tag) == 0)
        at++;
    l->running_at = (size_t)(at - l->running);
    *ret_count = (size_t)(at - first);
    return first;
}

/* Not one that was counted lately, but has no tasks any more. */
static bool is_shown(const struct tag_info *t)
{
    bool any = tag_info_paused(t);

    for (int s = 0; s < TASK_STATUS_COUNT; s++)
        any |= t->count[s] > 0;
    return any;
}

static void add_tag(struct load *l, const struct stats_tag *counted)
{
    const struct tag_info *t = &counted->info;
    size_t count;
    const struct poller_tasks *owners = take_owners(l, t->tag, &count);
    struct top_tag *to = &l->data->tags[l->data->count++];

    *to = (struct top_tag){.name = mem_strdup(t->tag),
                           .running = t->count[TASK_RUNNING],
                           .due = t->due,
                           .due_sampled = t->due_sampled,
                           .paused = tag_info_paused(t),
                           .late_ms = tag_info_late_ms(t, l->now_at),
                           .took_p50_ms = counts_took(&counted->sum, 50),
                           .took_p95_ms = counts_took(&counted->sum, 95),
                           .why = explain(l, t, owners, count)};
    put_rates(counted, &to->done, &to->failed);
}

/* In a few words, at most three. */
static int load_next(struct cmd_context *c, int64_t now_at, char **ret, struct err *err)
{
    struct schedule *all = NULL;
    BUF_LOCAL struct buf b = BUF_INIT;
    char in[WHEN_TEXT_SIZE];
    size_t count = 0;
    int rc = schedule_row_list(
        c->db,
        " WHERE c.next_slot > 0 AND c.paused_time IS NULL ORDER BY c.next_slot, c.name LIMIT 3",
        false, false, &all, &count, err);

    for (size_t i = 0; i < count; i++)
        buf_printf(
            &b, "%s%s in %s", i ? ", " : "", all[i].name,
            when_format_rough(in, MAX(all[i].next_at - now_at, 0) / WHEN_SECOND * WHEN_SECOND));
    schedule_row_free(all, count);
    *ret = b.len ? buf_take(&b) : NULL;
    return rc;
}

int top_load(struct cmd_context *c, const char *tag_glob, struct top_data *ret, struct err *err)
{
    struct top_data d = {.count = 0};
    LOCAL_BY(fleet_done) struct fleet fleet = {.count = 0};
    struct load l = {.db = c->db, .fleet = &fleet, .data = &d};
    BUF_LOCAL struct buf last = BUF_INIT;
    LOCAL_BY(stats_done) struct stats s = {.count = 0};
    /* Only running, failed and due tasks are counted, as no other number is shown; every second, so
     * not for long. */
    const struct stats_ask ask = {
        .fleet = &fleet,
        .tag_glob = tag_glob,
        .since_ms = (TOP_VIEW_STEPS - 1) * WHEN_MINUTE,
        .step_ms = WHEN_MINUTE,
        .how = {.most_ms = 50, .skip = ~(TASK_BIT(TASK_RUNNING) | TASK_BIT(TASK_FAILED))}};
    int rc = fleet_load(c->db, &fleet, err);

    if (rc == 0)
        rc = stats_read(c->db, &ask, &s, err);
    l.now_at = s.now_at;
    if (rc == 0)
        rc = why_store_running(c->db, NULL, &l.running, &l.running_count, err);
    if (rc == 0 && l.running_count)
        qsort(l.running, l.running_count, sizeof *l.running, order_names);
    if (rc == 0)
        rc = load_next(c, s.now_at, &d.next, err);
    d.alive = fleet.alive;
    d.quiet = fleet.quiet;
    d.dqds = fleet.count;
    d.silent = fleet.silent;
    d.running = fleet.running;
    d.slots = fleet.slots;
    put_kept(&d, &fleet);
    if (rc == 0 && (fleet.count || fleet.ended)) {
        fleet_put_last(&last, &fleet);
        l.last_dqd = last.data;
    }
    d.tags = mem_alloc((s.count + 1) * sizeof *d.tags);
    for (size_t i = 1; rc == 0 && i < s.count; i++)
        if (is_shown(&s.tags[i].info))
            add_tag(&l, &s.tags[i]);
    if (rc == 0) {
        d.failed_tasks = s.tags[0].info.count[TASK_FAILED];
        d.failed_sampled = s.tags[0].info.sampled[TASK_FAILED];
        put_steps(&d, &s.tags[0]);
    }
    if (l.locks)
        db_session_brief(c->db, false);
    poller_store_tasks_free(l.running, l.running_count);
    if (rc < 0)
        top_view_free(&d);
    else
        *ret = d;
    return rc;
}
