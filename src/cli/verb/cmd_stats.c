/*
 * cmd_stats.c - dq stats: how much there is, how late things start, how fast they are done.
 *
 * Each tag is one row that joins the counts of tasks with what dqd counted in the period; the first
 * row is all tags together.
 */
#include "cli/judge/failures.h"
#include "cli/judge/fleet.h"
#include "cli/judge/stats.h"
#include "cli/judge/stats_html.h"
#include "cli/judge/stats_prom.h"
#include "cli/judge/top_load.h"
#include "cli/line/confirm.h"
#include "cli/line/verbs.h"
#include "cli/line/live.h"
#include "cli/show/progress.h"
#include "cli/show/spark.h"
#include "cli/show/task_columns.h"

#include "base/mem.h"
#include "base/when.h"

#include <string.h>
#include <sys/param.h>

#define DEFAULT_PERIOD_HOURS 1
#define TREND_STEPS 24
/* A row for each step is kept in memory, for each tag. */
#define STEPS_MOST 50000

enum by { BY_MINUTE, BY_HOUR };
static const char *const by_names[] = {"minute", "hour", NULL};
static const int64_t by_ms[] = {WHEN_MINUTE, WHEN_HOUR};

struct stats_values {
    const char *tag, *html;
    struct cmd_when since;
    int by; /* -1: not given */
    bool exact;
    int64_t watch_ms, refresh_ms; /* -1: not given */
};

/* ---- a row for each tag */

#define ROW ((const struct stats_tag *)row)

OUT_GETTER(tag)
{
    const char *tag = ROW->info.tag;

    cell_set_text(ret, tag);
    if (!tag)
        ret->people = "(all)";
    else if (!strcmp(tag, MINUTE_OTHER_TAGS))
        ret->people = "(others)";
}

#define PERCENTILE(name, of, counted, percent)                                                     \
    OUT_GETTER(name)                                                                               \
    {                                                                                              \
        if (ROW->sum.counted)                                                                      \
            cell_set_duration(ret, of(&ROW->sum, percent));                                        \
    }
PERCENTILE(p50, counts_late, started, 50)
PERCENTILE(p95, counts_late, started, 95)
PERCENTILE(p99, counts_late, started, 99)
PERCENTILE(max, counts_late, started, 100)
PERCENTILE(took_p50, counts_took, ended, 50)
PERCENTILE(took_p95, counts_took, ended, 95)

OUT_GETTER(ended_failed)
{
    cell_set_number(ret, ROW->sum.failed);
    ret->colour = ROW->sum.failed ? CELL_BAD : CELL_PLAIN;
}

OUT_GETTER(done_per_s)
{
    ret->kind = CELL_REAL;
    ret->real = stats_per_second(ROW->sum.done, ROW->elapsed_ms);
}

/* Its text lives until the getter is called again. */
OUT_GETTER(trend)
{
    const struct stats *s = ROW->of;
    MEM_LOCAL uint64_t *done = mem_zero(s->step_count, sizeof *done);

    for (size_t i = 0; ROW->steps && i < s->step_count; i++)
        done[i] = ROW->steps[i].done;
    spark_set_line(ret, done, s->step_count);
}

/* What both kinds of rows have of their time. */
#define PERIOD_COLUMNS                                                                             \
    OUT_FIELD(stats_tag, "starts", U64, sum.started, 0), OUT_GET("late_p50", MS, 0, get_p50),      \
        OUT_GET("late_p95", MS, 0, get_p95), OUT_GET("late_p99", MS, 0, get_p99),                  \
        OUT_GET("late_max", MS, 0, get_max), OUT_GET("took_p50", MS, 0, get_took_p50),             \
        OUT_GET("took_p95", MS, 0, get_took_p95),                                                  \
        OUT_FIELD(stats_tag, "ended_done", U64, sum.done, 0),                                      \
        OUT_GET("ended_failed", U64, 0, get_ended_failed),                                         \
        OUT_FIELD(stats_tag, "retried", U64, sum.retried, 0),                                      \
        OUT_FIELD(stats_tag, "expired", U64, sum.expired, 0),                                      \
        OUT_GET("done_per_s", REAL, 0, get_done_per_s)

static const struct column columns[] = {
    OUT_GET("tag", TEXT, COLUMN_NARROW, get_tag),
    TAG_INFO_COUNTS(TAG_COLUMN) PERIOD_COLUMNS,
    OUT_GET("trend", TEXT, 0, get_trend),
};
/* For people two tables, as one would be too wide. A narrow terminal does not show all columns: the
 * least useful are left out first. */
static const struct out_table *const all_table = OUT_OF(columns);
static const struct out_table *const count_table =
    OUT_OF(columns, "tag,pending,running,done,failed,cancelled,due,late",
           "cancelled,done,running,pending");
static const struct out_table *const period_table = OUT_OF(
    columns,
    "tag,starts,late_p50,late_p95,late_p99,late_max,took_p50,took_p95,ended_done,ended_failed,retried,expired,done_per_s,trend",
    "late_p95,trend,took_p50,expired,retried,late_p50,starts,late_max,took_p95,late_p99");

/* Of MINUTE_OTHER_TAGS nothing but counts is known. active: only those of tags that started or
 * ended something. */
static bool is_shown(const struct cmd_context *c, const struct stats_tag *t, bool active)
{
    return active ? !!t->steps : t->info.tag[0] || c->style.format != OUT_TABLE;
}

static void put_tags(const struct cmd_context *c, const struct stats *s,
                     const struct out_table *table)
{
    struct out *out = out_new(&c->style, table, c);

    for (size_t i = 0; i < s->count; i++)
        if (i == 0 || is_shown(c, &s->tags[i], table == period_table))
            out_row(out, &s->tags[i]);
    out_end(out, 0);
}

static void put_tables(const struct cmd_context *c, const struct stats *s)
{
    char text[WHEN_TEXT_SIZE];

    put_tags(c, s, count_table);
    out_printf("\nwhat began and ended in the last %s, counted by dqd\n",
               when_format_rough(text, stats_elapsed_ms(s) / WHEN_MINUTE * WHEN_MINUTE));
    put_tags(c, s, period_table);
}

/* ---- a row for each step of time */

/* Begins with what the row of a tag has, for its getters: info.tag, and the sum of this step. */
struct step_row {
    struct stats_tag tag;
    size_t step;
    uint64_t most; /* done in any step */
};
#define STEP ((const struct step_row *)row)

OUT_GETTER(time)
{
    cell_set_time(ret, stats_step_at(ROW->of, STEP->step));
}

OUT_GETTER(step_trend)
{
    spark_set_bar(ret, &ROW->sum.done, STEP->most);
}

static const struct column step_columns[] = {
    OUT_GET("time", TIME, 0, get_time),
    OUT_GET("tag", TEXT, COLUMN_NARROW, get_tag),
    PERIOD_COLUMNS,
    OUT_GET("trend", TEXT, 0, get_step_trend),
};
static const struct out_table *const step_table = OUT_OF(
    step_columns,
    "time,starts,ended_done,ended_failed,retried,expired,done_per_s,late_p50,late_p95,late_p99,late_max,took_p50,took_p95,trend",
    "late_p95,took_p50,late_p50,late_p99,expired,retried,starts,took_p95,trend,done_per_s");

/* Programs also get each tag's steps in which something happened. */
static void put_step(struct out *out, const struct stats *s, size_t step, bool each_tag)
{
    struct step_row row = {.tag = {.of = s, .elapsed_ms = stats_step_elapsed_ms(s, step)},
                           .step = step};

    for (size_t i = 0; s->tags[0].steps && i < s->step_count; i++)
        row.most = MAX(row.most, s->tags[0].steps[i].done);
    for (size_t i = 0; i < (each_tag ? s->count : 1); i++) {
        const struct counts *c = s->tags[i].steps ? &s->tags[i].steps[step] : NULL;

        if (i > 0 && (!c || !(c->started || c->done || c->failed || c->retried || c->expired)))
            continue;
        row.tag.info.tag = s->tags[i].info.tag;
        row.tag.sum = c ? *c : (struct counts){0};
        out_row(out, &row);
    }
}

static void put_steps(const struct cmd_context *c, const struct stats *s)
{
    bool people = c->style.format == OUT_TABLE;
    struct out *out = out_new(&c->style, step_table, c);

    for (size_t i = 0; i < s->step_count; i++)
        put_step(out, s, i, !people);
    out_end(out, 0);
}

static int put_prometheus(const struct cmd_context *c, const struct stats *s,
                          const struct fleet *fleet, struct err *err)
{
    struct schedule *all = NULL;
    size_t count = 0;
    int64_t now_at;
    int rc = schedule_store_list(c->db, &(struct schedule_filter){0}, &all, &count, &now_at, err);

    if (rc == 0)
        stats_prom_put(s, fleet, all, count);
    schedule_row_free(all, count);
    return rc;
}

static int write_page(struct cmd_context *c, const struct stats_values *v, const struct stats *s,
                      struct err *err)
{
    const struct forecast_ask hours = {v->tag, WHEN_HOUR, STATS_HTML_AHEAD_HOURS + 1};
    const struct failure_filter period = {.since_at = s->from_at,
                                          .before_at = WHEN_AT_MAX,
                                          .newest = FAILURES_NEWEST,
                                          .oldest = FAILURES_OLDEST,
                                          .most_ms = FAILURES_NEWEST_MS,
                                          .tag_glob = v->tag};
    BUF_LOCAL struct buf place = BUF_INIT;
    LOCAL_BY(top_view_free) struct top_data now = {.count = 0};
    LOCAL_BY(forecast_store_free) struct forecast ahead = {.count = 0};
    LOCAL_BY(failures_done) struct failures errors = {0};
    int64_t left_at = TASK_TIME_NONE;
    int rc = top_load(c, v->tag, &now, err);

    if (rc < 0)
        return rc;
    rc = forecast_store_read(c->db, &hours, &ahead, err);
    if (rc == 0)
        rc = failure_list(c->db, &period, failures_add, &errors, &left_at, err);
    failures_sort(&errors);
    confirm_put_place(&place, c);
    const struct stats_page page = {.stats = s,
                                    .now = &now,
                                    .errors = &errors,
                                    .errors_sampled = left_at != TASK_TIME_NONE,
                                    .ahead = &ahead,
                                    .refresh_ms = v->refresh_ms,
                                    .place = place.data,
                                    .server = db_server(c->db)};
    if (rc == 0)
        rc = stats_html_write(&page, v->html, &c->style.cell, err);
    return rc;
}

/* ---- the verb */

/* The length of the period. */
static int period_of(struct cmd_context *c, const struct stats_values *v, int64_t *ret_ms,
                     struct err *err)
{
    int64_t now_at = 0, since_at = 0;
    int rc = 0;

    *ret_ms = DEFAULT_PERIOD_HOURS * WHEN_HOUR;
    if (!v->since.text)
        return 0;
    rc = cmd_now(c, &now_at, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->since, &since_at, err);
    if (rc == 0 && since_at == now_at)
        rc = err_set(err, ERR_USAGE, "--since must be before now, such as 1h");
    if (rc == 0)
        *ret_ms = now_at - since_at;
    return rc;
}

static int check(struct cmd_context *c, const struct stats_values *v, struct stats_ask *ask,
                 struct err *err)
{
    if ((v->by >= 0 || v->html) && c->style.format == OUT_PROMETHEUS)
        return err_set(err, ERR_USAGE, "-o prometheus prints what is now: omit --by and --html");
    int rc = period_of(c, v, &ask->since_ms, err);
    if (rc < 0)
        return rc;
    ask->step_ms = v->by >= 0
                       ? by_ms[v->by]
                       : stats_step_ms(ask->since_ms, v->html ? STATS_HTML_STEPS : TREND_STEPS);
    ask->align_ms = v->by >= 0 ? ask->step_ms : 0;
    if (ask->since_ms / ask->step_ms > STEPS_MOST)
        return err_set(err, ERR_USAGE, "--since is too long for --by %s: give %s, or less than %d",
                       by_names[v->by], v->by == BY_MINUTE ? "--by hour" : "a shorter time",
                       STEPS_MOST);
    return 0;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct stats_values *v = c->values;
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    struct stats_ask ask = {.fleet = &fleet, .tag_glob = v->tag};
    struct err denied;
    struct progress progress;
    LOCAL_BY(stats_done) struct stats s = {0};
    int rc = check(c, v, &ask, err);

    if (rc < 0)
        return rc;
    progress_init(&progress, c->quiet || !v->exact || c->height, "");
    ask.how =
        (struct tag_count_how){.exact = v->exact, .progress = progress_counting, .arg = &progress};
    int known = fleet_load(c->db, &fleet, &denied);
    rc = stats_read(c->db, &ask, &s, err);
    progress_clear(&progress);
    if (rc < 0)
        return rc;
    c->style.cell.now_at = s.now_at;
    if (v->html)
        rc = write_page(c, v, &s, err);
    else if (c->style.format == OUT_PROMETHEUS && known < 0)
        return err_set(err, known, "%s", denied.text);
    else if (c->style.format == OUT_PROMETHEUS)
        rc = put_prometheus(c, &s, &fleet, err);
    else if (v->by >= 0)
        put_steps(c, &s);
    else if (c->style.format == OUT_TABLE)
        put_tables(c, &s);
    else
        put_tags(c, &s, all_table);
    if (rc == 0 && c->style.format != OUT_PROMETHEUS)
        fleet_note_dqds(c);
    return rc;
}

#define FIELD(name) offsetof(struct stats_values, name)
static const struct cmd_option options[] = {
    {"since", 0, CMD_SINCE, FIELD(since), "TIME|D", NULL, 0},
    {"by", 0, CMD_CHOICE, FIELD(by), "STEP", by_names, 0},
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    {"html", 0, CMD_TEXT, FIELD(html), "FILE", NULL, 0},
    {"refresh", 0, CMD_DURATION, FIELD(refresh_ms), "D", NULL, 0},
    {"exact", 0, CMD_FLAG, FIELD(exact), NULL, NULL, 0},
    LIVE_OPTION(FIELD(watch_ms)),
};

const struct cmd cmd_stats = {
    .name = "stats",
    CMD_OPTIONS(options, stats_values),
    .exclusive = "by html, html watch",
    .requires = "refresh html",
    .pages = true,
    .formats = OUT_NO_ID | OUT_BIT(OUT_PROMETHEUS),
    .run = run,
};
