/*
 * metrics.c - see metrics.h. Invariant: the number of series is bounded by MINUTE_TAGS_MOST, and
 * the sum over all tags only grows; dqd(8) lists the names.
 */
#include "poller/metrics.h"

#include "base/counts.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prom.h"
#include "base/replace.h"
#include "base/when.h"

#include <stdio.h>

void metrics_init(struct metrics *m, const struct context *ctx, const struct minute *minute,
                  const struct served *served)
{
    *m = (struct metrics){.ctx = ctx, .minute = minute, .served = served};
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
        {"dq_dqd_expired_total", "Tasks that were cancelled because they expired.",
         offsetof(struct counts, expired)},
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

/* Processes that stay. */
static void put_kept(struct buf *b, const struct served *s)
{
    enum { BUSY, IDLE, MEMORY, REPLACED, KINDS };
    static const struct {
        const char *name, *type, *help;
    } kinds[KINDS] = {
        {"dq_dqd_kept_busy", "gauge", "Kept processes that work on a task."},
        {"dq_dqd_kept_idle", "gauge", "Kept processes that wait for one."},
        {"dq_dqd_kept_memory_bytes", "gauge", "Memory of kept processes and their sessions."},
        {"dq_dqd_kept_replaced_total", "counter", "Kept processes that were replaced, and why."},
    };

    for (int kind = 0; s->kept_count && kind < KINDS; kind++) {
        prom_metric(b, kinds[kind].name, kinds[kind].type, kinds[kind].help);
        for (size_t i = 0; i < s->kept_count; i++) {
            const struct message_kept *m = &s->kept[i].told;
            const uint64_t values[] = {m->busy, m->idle, m->memory};
            const char *handler = tags_table(s->tags)->handlers->items[i].name;

            for (int why = 0; s->kept[i].text && kind == REPLACED && why < MESSAGE_KEPT_WHYS; why++)
                prom_u64(b, kinds[kind].name, m->replaced[why], "handler", handler, "reason",
                         message_kept_whys[why], NULL);
            if (s->kept[i].text && kind != REPLACED)
                prom_u64(b, kinds[kind].name, values[kind], "handler", handler, NULL);
        }
    }
}

static void put_histogram(struct buf *b, const char *name, const char *help, const uint64_t *steps,
                          int64_t sum_ms, uint64_t count)
{
    MEM_LOCAL char *bucket = mem_printf("%s_bucket", name), *sum = mem_printf("%s_sum", name),
                   *total = mem_printf("%s_count", name);
    char bound[24];
    uint64_t below = 0;

    prom_metric(b, name, "histogram", help);
    for (size_t i = 0; i < COUNTS_STEP_COUNT; i++) {
        below += steps[i];
        snprintf(bound, sizeof bound, "%g", (double)counts_bounds_ms[i] / 1000);
        prom_u64(b, bucket, below, "le", bound, NULL);
    }
    prom_u64(b, bucket, count, "le", "+Inf", NULL);
    prom_seconds(b, sum, sum_ms, NULL);
    prom_u64(b, total, count, NULL);
}

static void put_histograms(struct buf *b, const struct minute *minute)
{
    struct counts all = {0};

    for (size_t i = 0; i < minute->count; i++)
        counts_add(&all, &minute->tags[i].total);
    put_histogram(b, "dq_dqd_late_seconds",
                  "How late attempts began, after their task was due, added or moved.", all.late,
                  (int64_t)all.late_sum_ms, all.started);
    put_histogram(b, "dq_dqd_run_seconds", "How long attempts ran.", all.run,
                  (int64_t)all.run_sum_ms, all.ended);
}

void metrics_write(struct metrics *m, uint32_t running)
{
    const char *path = m->ctx->conf->dqd.metrics_file;
    BUF_LOCAL struct buf b = BUF_INIT;
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
    put_histograms(&b, m->minute);
    put_kept(&b, m->served);
    failed = replace_file(path, b.data, b.len, false, &err) < 0;
    if (failed && !m->failed)
        log_event(LOG_WARN, "metrics_file cannot be written; dqd goes on without", "error=%s",
                  log_quote(err.text));
    else if (!failed && m->failed)
        log_event(LOG_INFO, "metrics_file can be written again", "file=%s", log_quote(path));
    m->failed = failed;
}
