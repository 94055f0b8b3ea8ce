/*
 * metrics.c - see metrics.h. Invariant: the number of series is bounded by MINUTE_TAGS_MOST, and
 * the sum over all tags only grows; dqd(8) lists the names.
 */
#include "poller/metrics.h"

#include "base/counts.h"
#include "base/log.h"
#include "base/prom.h"
#include "base/replace.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdio.h>

void metrics_init(struct metrics *m, const struct context *ctx, const struct minute *minute)
{
    *m = (struct metrics){.ctx = ctx, .minute = minute};
}

static void put_tags(struct buf *b, const struct minute *minute)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } kinds[] = {
        {"dq_dqd_starts_total", "Attempts that began.", offsetof(struct counts, started)},
        {"dq_dqd_done_total", "Tasks that became done.", offsetof(struct counts, done)},
        {"dq_dqd_failed_total", "Tasks that failed for good.", offsetof(struct counts, failed)},
        {"dq_dqd_retried_total", "Attempts that failed, whose task runs again.",
         offsetof(struct counts, retried)},
    };

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        prom_metric(b, kinds[k].name, "counter", kinds[k].help);
        for (size_t i = 0; i < minute->count; i++)
            prom_u64(b, kinds[k].name,
                     *(const uint64_t *)((const char *)&minute->tags[i].total + kinds[k].offset),
                     "tag", minute->tags[i].name, NULL);
    }
    prom_metric(b, "dq_dqd_run_seconds_total", "counter", "Time from start to end of attempts.");
    for (size_t i = 0; i < minute->count; i++)
        prom_seconds(b, "dq_dqd_run_seconds_total", (int64_t)minute->tags[i].total.run_sum_ms,
                     "tag", minute->tags[i].name, NULL);
}

static void put_late(struct buf *b, const struct minute *minute)
{
    struct counts all = {0};
    uint64_t below = 0;
    char bound[24];

    for (size_t i = 0; i < minute->count; i++)
        counts_add(&all, &minute->tags[i].total);
    prom_metric(b, "dq_dqd_late_seconds", "histogram",
                "How late attempts began, after their task was due, created or moved.");
    for (size_t i = 0; i < COUNTS_LATE_COUNT; i++) {
        below += all.late[i];
        snprintf(bound, sizeof bound, "%g", (double)counts_late_bounds_ms[i] / 1000);
        prom_u64(b, "dq_dqd_late_seconds_bucket", below, "le", bound, NULL);
    }
    prom_u64(b, "dq_dqd_late_seconds_bucket", all.started, "le", "+Inf", NULL);
    prom_seconds(b, "dq_dqd_late_seconds_sum", (int64_t)all.late_sum_ms, NULL);
    prom_u64(b, "dq_dqd_late_seconds_count", all.started, NULL);
}

void metrics_write(struct metrics *m, uint32_t running)
{
    const char *path = m->ctx->conf->dqd.metrics_file;
    struct buf b = BUF_INIT;
    struct err err = {0};
    bool failed;

    if (!path || !*path)
        return;
    prom_metric(&b, "dq_dqd_heartbeat_timestamp_seconds", "gauge", "Time of the last heartbeat.");
    prom_seconds(&b, "dq_dqd_heartbeat_timestamp_seconds", when_host_wall(), NULL);
    prom_metric(&b, "dq_dqd_slots", "gauge", "Handlers that may run at a time.");
    prom_u64(&b, "dq_dqd_slots", m->ctx->slots, NULL);
    prom_metric(&b, "dq_dqd_slots_used", "gauge", "Handlers that run.");
    prom_u64(&b, "dq_dqd_slots_used", running, NULL);
    put_tags(&b, m->minute);
    put_late(&b, m->minute);
    failed = replace_file(path, b.data, b.len, false, &err) < 0;
    buf_done(&b);
    if (failed && !m->failed)
        log_event(LOG_WARN, "metrics_file cannot be written; dqd goes on without", "error=%s",
                  log_quote(err.text));
    else if (!failed && m->failed)
        log_event(LOG_INFO, "metrics_file can be written again", "file=%s", log_quote(path));
    m->failed = failed;
}
