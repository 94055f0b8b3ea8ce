/*
 * stats_prom.c - see stats_prom.h. Invariant: the number of series is bounded, and the names of
 * metrics and labels are stable: dq-stats(1) lists them.
 */
#include "cli/judge/stats_prom.h"

#include "base/mem.h"
#include "base/prom.h"
#include "cli/judge/schedules.h"
#include "cli/show/out.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

static uint64_t all_tasks(const struct tag_info *t)
{
    uint64_t n = 0;

    for (int s = 0; s < TASK_STATUS_COUNT; s++)
        n += t->count[s];
    return n;
}

static int compare_weight(const void *a, const void *b)
{
    const struct stats_tag *x = *(const struct stats_tag *const *)a,
                           *y = *(const struct stats_tag *const *)b;
    uint64_t m = all_tasks(&x->info), n = all_tasks(&y->info);

    if (x->info.due != y->info.due)
        return x->info.due < y->info.due ? 1 : -1;
    return m != n ? (m < n ? 1 : -1) : strcmp(x->info.tag, y->info.tag);
}

static void put_tasks(struct buf *b, const struct stats *s, const struct stats_tag *const *tags,
                      size_t count)
{
    prom_metric(b, "dq_tasks", "gauge", "Tasks by tag and state; large numbers are estimates.");
    for (size_t i = 0; i < count; i++)
        for (int status = 0; status < TASK_STATUS_COUNT; status++)
            prom_u64(b, "dq_tasks", tags[i]->info.count[status], "tag", tags[i]->info.tag, "status",
                     task_status_name(status), NULL);
    prom_metric(b, "dq_due_tasks", "gauge", "Pending tasks that are due.");
    for (size_t i = 0; i < count; i++)
        prom_u64(b, "dq_due_tasks", tags[i]->info.due, "tag", tags[i]->info.tag, NULL);
    prom_metric(b, "dq_late_seconds", "gauge",
                "How late the task is that has been due longest; 0: none is due.");
    for (size_t i = 0; i < count; i++)
        prom_seconds(b, "dq_late_seconds", MAX(tag_info_late_ms(&tags[i]->info, s->now_at), 0),
                     "tag", tags[i]->info.tag, NULL);
    prom_metric(b, "dq_tag_paused", "gauge", "Whether the tag is paused.");
    for (size_t i = 0; i < count; i++)
        prom_u64(b, "dq_tag_paused", tag_info_paused(&tags[i]->info), "tag", tags[i]->info.tag,
                 NULL);
}

static void put_period(struct buf *b, const struct stats *s, const struct stats_tag *const *tags,
                       size_t count)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } kinds[] = {
        {"dq_period_starts", "Attempts that began in the period.",
         offsetof(struct counts, started)},
        {"dq_period_done", "Tasks that became done in the period.", offsetof(struct counts, done)},
        {"dq_period_failed", "Tasks that failed for good in the period.",
         offsetof(struct counts, failed)},
        {"dq_period_retried", "Attempts that failed in the period, whose task runs again.",
         offsetof(struct counts, retried)},
        {"dq_period_expired", "Tasks that were cancelled in the period because they expired.",
         offsetof(struct counts, expired)},
    };
    static const struct {
        unsigned percent;
        const char *label;
    } ranks[] = {{50, "50"}, {95, "95"}, {99, "99"}, {100, "100"}};

    prom_metric(b, "dq_period_seconds", "gauge", "Length of the period (--since).");
    prom_seconds(b, "dq_period_seconds", stats_elapsed_ms(s), NULL);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        prom_metric(b, kinds[k].name, "gauge", kinds[k].help);
        for (size_t i = 0; i < count; i++)
            prom_u64(b, kinds[k].name,
                     *(const uint64_t *)((const char *)&tags[i]->sum + kinds[k].offset), "tag",
                     tags[i]->info.tag, NULL);
    }
    prom_metric(b, "dq_period_late_seconds", "gauge",
                "Lateness that so many percent of the starts in the period did not exceed.");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; tags[i]->sum.started && k < sizeof ranks / sizeof ranks[0]; k++)
            prom_seconds(b, "dq_period_late_seconds", counts_late(&tags[i]->sum, ranks[k].percent),
                         "tag", tags[i]->info.tag, "percent", ranks[k].label, NULL);
    prom_metric(b, "dq_period_run_seconds", "gauge",
                "Run time that so many percent of the attempts that ended did not exceed.");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; tags[i]->sum.ended && k < sizeof ranks / sizeof ranks[0]; k++)
            prom_seconds(b, "dq_period_run_seconds", counts_took(&tags[i]->sum, ranks[k].percent),
                         "tag", tags[i]->info.tag, "percent", ranks[k].label, NULL);
}

static void put_dqds(struct buf *b, const struct fleet *fleet)
{
    prom_metric(b, "dq_dqds_alive", "gauge", "Processes of dqd that are alive.");
    prom_u64(b, "dq_dqds_alive", fleet->alive, NULL);
    prom_metric(b, "dq_slots", "gauge", "Handler slots of the live dqds.");
    prom_u64(b, "dq_slots", fleet->slots, NULL);
    prom_metric(b, "dq_slots_used", "gauge", "Handlers that run on the live dqds.");
    prom_u64(b, "dq_slots_used", fleet->running, NULL);
}

static void put_schedules(struct buf *b, const struct schedule *all, size_t count,
                          const struct fleet *fleet, int64_t now_at)
{
    MEM_LOCAL const struct schedule **order = mem_zero(count + 1, sizeof(struct schedule *));
    size_t alarms = 0;
    int64_t late_ms;

    for (size_t i = 0; i < count; i++) {
        BUF_LOCAL struct buf why = BUF_INIT;

        order[i] = &all[i];
        if (schedules_put_alarm(&why, &all[i], fleet, now_at)) {
            order[i] = order[alarms];
            order[alarms++] = &all[i];
        }
    }
    const size_t shown = MIN(count, (size_t)STATS_PROM_TAGS);
    prom_metric(b, "dq_schedules", "gauge", "Schedules.");
    prom_u64(b, "dq_schedules", count, NULL);
    prom_metric(b, "dq_schedules_alarmed", "gauge", "Schedules with an alarm.");
    prom_u64(b, "dq_schedules_alarmed", alarms, NULL);
    prom_metric(b, "dq_schedule_alarm", "gauge",
                "Whether the last run failed, none succeeded in time, or no dqd serves the tag.");
    for (size_t i = 0; i < shown; i++)
        prom_u64(b, "dq_schedule_alarm", i < alarms, "schedule", order[i]->name, NULL);
    prom_metric(b, "dq_schedule_next_timestamp_seconds", "gauge", "When the next slot is.");
    for (size_t i = 0; i < shown; i++)
        if (order[i]->next_at != TASK_TIME_NONE && order[i]->paused_at == TASK_TIME_NONE)
            prom_seconds(b, "dq_schedule_next_timestamp_seconds", order[i]->next_at, "schedule",
                         order[i]->name, NULL);
    prom_metric(b, "dq_schedule_late_seconds", "gauge", "How late the last run started.");
    for (size_t i = 0; i < shown; i++)
        if (schedule_row_late(order[i], &late_ms))
            prom_seconds(b, "dq_schedule_late_seconds", late_ms, "schedule", order[i]->name, NULL);
    prom_metric(b, "dq_schedule_missed", "gauge",
                "Slots of the last seven days that did not run, but for those of pauses.");
    for (size_t i = 0; i < shown; i++)
        prom_u64(b, "dq_schedule_missed", order[i]->missed_week, "schedule", order[i]->name, NULL);
}

/* Those that say something. What runs is not known here: a full limit does not count as closed. */
static void put_limits(struct buf *b, const struct stats *s, const struct fleet *fleet)
{
    static const struct {
        const char *name, *help;
    } kinds[] = {
        {"dq_limit_stops", "Whether a pause, a hold, hours or the rate lets nothing start now, or"
                           " due tasks wait for the one that tries after a rest of its breaker."},
        {"dq_limit_running_max", "Tasks that may run at a time."},
        {"dq_limit_rate", "Tasks that may start a minute, rounded."},
        {"dq_limit_breaker", "How often in a row its breaker has opened."},
    };

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        prom_metric(b, kinds[k].name, "gauge", kinds[k].help);
        for (size_t i = 0; i < MIN(fleet->limit_count, (size_t)STATS_PROM_TAGS); i++) {
            const struct limit *l = &fleet->limits[i].limit;
            const uint64_t period_ms = (uint64_t)MAX(l->rate.period_ms, 1);
            const uint64_t minute = l->rate.count * UINT64_C(60000);
            bool stops = limit_ask(l, 0, s->now_at, 0).why != LIMIT_OPEN;
            for (size_t t = 1; l->breaker && !stops && t < s->count; t++)
                stops = s->tags[t].info.due && !strcmp(fleet_limit_name(fleet, s->tags[t].info.tag),
                                                       fleet->limits[i].name);
            const uint64_t values[] = {stops, l->running, (minute + period_ms / 2) / period_ms,
                                       l->breaker};
            if (k == 0 || values[k] || k == 3)
                prom_u64(b, kinds[k].name, values[k], "limit", fleet->limits[i].name, NULL);
        }
    }
}

void stats_prom_put(const struct stats *s, const struct fleet *fleet,
                    const struct schedule *schedules, size_t schedule_count)
{
    char no_tag[] = "";
    struct stats_tag rest = {.info = {.tag = no_tag, TAG_INFO_NONE}};
    size_t tags = s->count - 1, shown = MIN(tags, (size_t)STATS_PROM_TAGS);
    MEM_LOCAL const struct stats_tag **order = mem_alloc((tags + 1) * sizeof(struct stats_tag *));
    struct buf b = BUF_INIT;
    bool more = tags > shown;

    for (size_t i = 0; i < tags; i++)
        order[i] = &s->tags[i + 1];
    if (tags)
        qsort(order, tags, sizeof(struct stats_tag *), compare_weight);
    for (size_t i = 0; i < shown; i++)
        more |= order[i]->info.tag[0] == '\0';
    for (size_t i = 0; i < tags; i++)
        if (i >= shown || order[i]->info.tag[0] == '\0') {
            stats_add(&rest.info, &order[i]->info);
            counts_add(&rest.sum, &order[i]->sum);
        }
    for (size_t i = 0; i < shown; i++)
        if (order[i]->info.tag[0] == '\0')
            order[i--] = order[--shown];
    if (more)
        order[shown++] = &rest;
    put_tasks(&b, s, order, shown);
    put_period(&b, s, order, shown);
    put_dqds(&b, fleet);
    put_limits(&b, s, fleet);
    put_schedules(&b, schedules, schedule_count, fleet, s->now_at);
    out_take(&b);
}
