/*
 * stats_plot.c - see stats_plot.h. Invariant: nothing is drawn outside of its plot, and texts are
 * not in the drawing, which is stretched to the width of the page.
 */
#include "cli/judge/stats_plot.h"

#include "base/when.h"
#include "cli/show/html.h"

#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

#define HEIGHT 100.0 /* of a plot, in its own units; a step is one unit wide */

/* ---- what all plots have */

/* Behind the heading; `nothing`: what is said instead of a plot, NULL: there is one. What follows
 * are its labels. */
static bool begin_plot(struct buf *b, const char *legend, const char *nothing)
{
    if (nothing)
        buf_printf(b, "</h2></figcaption>\n<p>%s</p>\n</figure>\n", nothing);
    else
        buf_printf(b, "</h2>%s</figcaption>\n<div class=\"plot\"><div class=\"y\">", legend);
    return !nothing;
}

static void put_drawing(struct buf *b, size_t steps, const char *label)
{
    buf_printf(
        b,
        "<svg viewBox=\"0 0 %zu %.0f\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">",
        steps, HEIGHT, label);
}

static void put_grid(struct buf *b, size_t steps, double y)
{
    buf_printf(b, "<path class=\"grid\" d=\"M0 %.2fH%zu\"/>", y, steps);
}

/* `y` is where its line is in the drawing. */
static void begin_label(struct buf *b, double y)
{
    buf_printf(b, "<span style=\"top:%.2f%%\">", y / HEIGHT * 100);
}

/* Of a period of a day or less the hours are enough. */
static void end_plot(struct buf *b, int64_t from_at, int64_t to_at, const struct cell_style *style)
{
    const int64_t at[] = {from_at, from_at + (to_at - from_at) / 2, to_at};
    size_t skip = to_at - from_at > WHEN_DAY + WHEN_HOUR ? strlen("2026-") : strlen("2026-11-22 ");

    buf_str(b, "</svg></div>\n<div class=\"x\">");
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        BUF_LOCAL struct buf text = BUF_INIT;

        cell_put_time(&text, style, at[i], false);
        buf_printf(b, "<span>%.*s</span>", (int)(strlen("2026-11-22 18:01") - skip),
                   text.len > skip ? text.data + skip : "");
    }
    buf_str(b, "</div>\n</figure>\n");
}

/* ---- bars: what ended */

static uint64_t step_ends(const struct counts *c)
{
    return c->done + c->failed + c->retried;
}

static uint64_t most_ends(const struct stats *s, const struct stats_tag *t)
{
    uint64_t most = 0;

    for (size_t i = 0; t->steps && i < s->step_count; i++)
        most = MAX(most, step_ends(&t->steps[i]));
    return most;
}

/* A part of a bar; *y: where the one below ended. */
static void put_part(struct buf *b, const char *class, size_t x, uint64_t n, uint64_t top,
                     double *y)
{
    double height = (double)n / (double)top * HEIGHT;

    if (!n)
        return;
    *y -= height;
    buf_printf(b, "<path class=\"%s\" d=\"M%zu.1 %.2fh.8v%.2fh-.8z\"/>", class, x, *y, height);
}

/* Failures are at the bottom, where they are seen. */
static void put_bars(struct buf *b, const struct stats *s, const struct stats_tag *t, uint64_t top,
                     const struct cell_style *style)
{
    for (size_t i = 0; t->steps && i < s->step_count; i++) {
        const struct counts *c = &t->steps[i];
        double y = HEIGHT;

        if (!step_ends(c))
            continue;
        buf_str(b, "<g>");
        put_part(b, "failed", i, c->failed, top, &y);
        put_part(b, "retried", i, c->retried, top, &y);
        put_part(b, "done", i, c->done, top, &y);
        if (style) {
            buf_str(b, "<title>");
            cell_put_time(b, style, stats_step_at(s, i), false);
            buf_printf(b, ": %" PRIu64 " done, %" PRIu64 " retried, %" PRIu64 " failed</title>",
                       c->done, c->retried, c->failed);
        }
        buf_str(b, "</g>");
    }
}

/* The next number of the kind 1, 2, 4, 6, 10, 20, 40 ...; at least 2, so that its half is whole. */
static uint64_t round_up(uint64_t n)
{
    uint64_t ten = 1;

    while (ten <= n / 10)
        ten *= 10;
    uint64_t digits = (n + ten - 1) / ten;
    return MAX((digits <= 1   ? 1
                : digits <= 2 ? 2
                : digits <= 4 ? 4
                : digits <= 6 ? 6
                              : 10) *
                   ten,
               2);
}

/* Numbers of that kind are short in thousands and millions. */
static void put_round(struct buf *b, uint64_t n)
{
    static const struct {
        uint64_t unit;
        const char *name;
    } units[] = {
        {UINT64_C(1000000000000), " T"}, {1000000000, " G"}, {1000000, " M"}, {1000, " k"}};
    size_t i = 0;

    while (i < sizeof units / sizeof units[0] && (n < units[i].unit || n % units[i].unit))
        i++;
    if (i < sizeof units / sizeof units[0])
        buf_printf(b, "%" PRIu64 "%s", n / units[i].unit, units[i].name);
    else
        html_put_count(b, n, false);
}

static void begin_bars(struct buf *b, uint64_t top, size_t steps, const char *label)
{
    for (unsigned i = 0; i <= 2; i++) {
        begin_label(b, HEIGHT * i / 2);
        put_round(b, top / 2 * (2 - i));
        buf_str(b, "</span>");
    }
    buf_str(b, "</div>\n");
    put_drawing(b, steps, label);
    put_grid(b, steps, 0);
    put_grid(b, steps, HEIGHT / 2);
}

void stats_plot_ends(struct buf *b, const struct stats *s, const struct cell_style *style)
{
    const struct stats_tag *all = &s->tags[0];
    uint64_t most = most_ends(s, all), top = round_up(most);

    buf_str(b, "<figure>\n<figcaption><h2>Ended per ");
    html_put_duration(b, s->step_ms);
    if (!begin_plot(b,
                    "<ul class=\"legend\"><li class=\"done\">done</li><li class=\"retried\">retried"
                    "</li><li class=\"failed\">failed</li></ul>",
                    most ? NULL : "Nothing ended in this time."))
        return;
    begin_bars(b, top, s->step_count, "tasks done, retried and failed over time");
    put_bars(b, s, all, top, style);
    end_plot(b, s->from_at, s->now_at, style);
}

void stats_plot_trend(struct buf *b, const struct stats *s, const struct stats_tag *t)
{
    put_drawing(b, s->step_count, "over time");
    put_bars(b, s, t, MAX(most_ends(s, t), 1), NULL);
    buf_str(b, "</svg>");
}

/* ---- bars: what becomes due */

void stats_plot_ahead(struct buf *b, const struct forecast *f, int64_t step_ms,
                      const struct cell_style *style)
{
    uint64_t most = 0;

    for (size_t i = 0; i < f->count; i++)
        most = MAX(most, f->steps[i].tasks);
    const uint64_t top = round_up(most);
    buf_str(b, "<figure>\n<figcaption><h2>Becomes due per ");
    html_put_duration(b, step_ms);
    buf_str(b, ", in the next ");
    html_put_duration(b, (int64_t)(f->count - 1) * step_ms);
    if (!begin_plot(b, "", most ? NULL : "Nothing becomes due in this time."))
        return;
    begin_bars(b, top, f->count, "tasks that become due");
    for (size_t i = 0; i < f->count; i++) {
        const struct forecast_step *step = &f->steps[i];
        double y = HEIGHT;
        buf_str(b, "<g>");
        put_part(b, "ahead", i, step->tasks, top, &y);
        buf_str(b, "<title>");
        cell_put_time(b, style, f->from_at + (int64_t)i * step_ms, false);
        buf_printf(b, ": %s%" PRIu64 "</title></g>", step->sampled ? "~" : "", step->tasks);
    }
    end_plot(b, f->from_at, f->from_at + (int64_t)f->count * step_ms, style);
}

/* ---- lines: lateness */

/* Times that people know, about a power of ten apart. */
static const int64_t ticks[] = {1,
                                10,
                                100,
                                WHEN_SECOND,
                                10 * WHEN_SECOND,
                                2 * WHEN_MINUTE,
                                20 * WHEN_MINUTE,
                                3 * WHEN_HOUR,
                                WHEN_DAY,
                                10 * WHEN_DAY,
                                100 * WHEN_DAY,
                                1000 * WHEN_DAY};
#define TICK_COUNT (sizeof ticks / sizeof ticks[0])
#define TICKS_MOST 8 /* for which there is room */

/* Powers of ten above a millisecond, straight lines between them. */
static double decades(uint64_t ms)
{
    double v = (double)MAX(ms, 1), n = 0;

    for (; v >= 10; v /= 10)
        n++;
    return n + (v - 1) / 9;
}

static double late_y(int64_t ms, double top)
{
    return HEIGHT - MIN(decades((uint64_t)MAX(ms, 0)) / top, 1) * HEIGHT;
}

/* Steps in which nothing began interrupt the line. */
static void put_line(struct buf *b, const struct stats *s, const char *class, unsigned percent,
                     double top)
{
    const struct counts *steps = s->tags[0].steps;
    bool open = false;

    for (size_t i = 0; steps && i < s->step_count; i++) {
        double y = late_y(counts_late(&steps[i], percent), top);

        if (!steps[i].started) {
            buf_str(b, open ? "\"/>" : "");
            open = false;
            continue;
        }
        if (!open)
            buf_printf(b, "<polyline class=\"%s\" points=\"%zu,%.2f ", class, i, y);
        buf_printf(b, "%zu,%.2f ", i + 1, y);
        open = true;
    }
    buf_str(b, open ? "\"/>" : "");
}

void stats_plot_lateness(struct buf *b, const struct stats *s, const struct cell_style *style)
{
    const struct stats_tag *all = &s->tags[0];
    size_t count = 2;

    buf_str(b, "<figure>\n<figcaption><h2>Lateness of starts");
    if (!begin_plot(b,
                    "<ul class=\"legend lines\"><li class=\"p50\">median</li><li class=\"p95\">95 %"
                    "</li><li class=\"max\">maximum</li></ul>",
                    all->sum.started ? NULL : "Nothing started in this time."))
        return;
    while (count < TICK_COUNT && ticks[count - 1] < (int64_t)MIN(all->sum.late_max_ms, INT64_MAX))
        count++;
    size_t every = count > TICKS_MOST ? 2 : 1;
    double top = decades(MAX((uint64_t)ticks[count - 1], all->sum.late_max_ms));
    for (size_t i = 0; i < count; i += every) {
        begin_label(b, late_y(ticks[i], top));
        html_put_duration(b, ticks[i]);
        buf_str(b, "</span>");
    }
    buf_str(b, "</div>\n");
    put_drawing(b, s->step_count, "lateness over time, logarithmic");
    for (size_t i = every; i < count; i += every)
        put_grid(b, s->step_count, late_y(ticks[i], top));
    put_line(b, s, "max", 100, top);
    put_line(b, s, "p95", 95, top);
    put_line(b, s, "p50", 50, top);
    end_plot(b, s->from_at, s->now_at, style);
}
