/*
 * cmd_forecast.c - dq forecast: how much is going to be due when.
 */
#include "cli/judge/fleet.h"
#include "cli/line/verbs.h"
#include "cli/show/spark.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "store/ask/forecast_store.h"

#include <sys/param.h>

#define DEFAULT_HOURS 24
#define STEPS_MOST 1500
#define NAMED 5 /* limits */

static const char *const by_names[] = {"minute", "hour", NULL};
static const int64_t by_ms[] = {WHEN_MINUTE, WHEN_HOUR};

struct forecast_values {
    const char *tag;
    int by; /* -1: not given */
    int64_t for_ms;
};

struct row {
    struct forecast_step step;
    int64_t at; /* TASK_TIME_NONE: due already */
    uint64_t most;
};

#define ROW ((const struct row *)row)

OUT_GETTER(time)
{
    cell_set_time(ret, ROW->at);
    if (ROW->at == TASK_TIME_NONE)
        ret->people = "due now";
}

OUT_GETTER(tasks)
{
    cell_set_number(ret, ROW->step.tasks);
    ret->sampled = ROW->step.sampled;
}

OUT_GETTER(herd)
{
    if (ROW->step.herd)
        cell_set_number(ret, ROW->step.herd);
    ret->colour = CELL_WARN;
}

OUT_GETTER(herd_time)
{
    if (ROW->step.herd)
        cell_set_time(ret, ROW->step.herd_at);
}

OUT_GETTER(trend)
{
    spark_set_bar(ret, &ROW->step.tasks, ROW->most);
}

static const struct column columns[] = {
    OUT_GET("time", TIME, 0, get_time),
    OUT_GET("tasks", U64, 0, get_tasks),
    OUT_FIELD(row, "sampled", BOOL, step.sampled, 0),
    OUT_GET("trend", TEXT, 0, get_trend),
    OUT_GET("herd", U64, 0, get_herd),
    OUT_GET("herd_time", TIME, 0, get_herd_time),
    OUT_FIELD(row, "herd_tag", TEXT, step.herd_tag, COLUMN_NARROW),
};
static const struct out_table *const table =
    OUT_OF(columns, "time,tasks,trend,herd,herd_time,herd_tag", "trend,herd_time");

static void put(const struct cmd_context *c, const struct forecast *f, int64_t step_ms)
{
    struct row row = {
        .step = {.tasks = f->due, .sampled = f->due_sampled}, .at = TASK_TIME_NONE, .most = f->due};
    struct out *out = out_new(&c->style, table, NULL);

    for (size_t i = 0; i < f->count; i++)
        row.most = MAX(row.most, f->steps[i].tasks);
    out_row(out, &row);
    for (size_t i = 0; i < f->count; i++) {
        row.step = f->steps[i];
        row.at = f->from_at + (int64_t)i * step_ms;
        out_row(out, &row);
    }
    out_end(out, 0);
}

/* Tasks are counted when they are due. Some of them start later than that. */
static void note_limits(struct cmd_context *c, int64_t now_at)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    struct err ignored;
    size_t named = 0;

    if (fleet_load(c->db, &fleet, &ignored) < 0)
        return;
    for (size_t i = 0; i < fleet.limit_count && named < NAMED; i++) {
        BUF_LOCAL struct buf b = BUF_INIT;
        struct limit l = fleet.limits[i].limit;
        const struct limit_answer a = limit_ask(&l, 0, now_at, 0);

        l.name = fleet.limits[i].name;
        limit_put(&b, &l, &a, now_at);
        if ((a.why == LIMIT_CLOSED || a.why == LIMIT_HELD) && ++named)
            cmd_note(c, "%s: what is due before starts then", b.data);
    }
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct forecast_values *v = c->values;
    int64_t for_ms = v->for_ms >= 0 ? v->for_ms : DEFAULT_HOURS * WHEN_HOUR;
    int64_t step_ms = v->by >= 0 ? by_ms[v->by] : for_ms <= 2 * WHEN_HOUR ? WHEN_MINUTE : WHEN_HOUR;
    LOCAL_BY(forecast_store_free) struct forecast f = {.count = 0};
    int rc;

    if (for_ms / step_ms > STEPS_MOST)
        return err_set(err, ERR_USAGE,
                       "--for is too long for steps of a %s: at most %d of them are shown",
                       by_names[step_ms == WHEN_HOUR], STEPS_MOST);
    rc = forecast_store_read(
        c->db,
        &(struct forecast_ask){v->tag, step_ms, (size_t)((for_ms + step_ms - 1) / step_ms) + 1}, &f,
        err);
    if (rc < 0)
        return rc;
    c->style.cell.now_at = f.now_at;
    put(c, &f, step_ms);
    note_limits(c, f.now_at);
    return 0;
}

#define FIELD(name) offsetof(struct forecast_values, name)
static const struct cmd_option options[] = {
    {"by", 0, CMD_CHOICE, FIELD(by), "STEP", by_names, 0},
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    {"for", 0, CMD_DURATION, FIELD(for_ms), "D", NULL, 1},
};

const struct cmd cmd_forecast = {
    .name = "forecast",
    CMD_OPTIONS(options, forecast_values),
    .pages = true,
    .formats = OUT_NO_ID,
    .run = run,
};
