/*
 * stats_html.c - see stats_html.h. Invariant: the page loads nothing, has no script, and what data
 * holds stays text.
 */
#include "cli/stats_html.h"

#include "base/mem.h"
#include "base/replace.h"
#include "base/text.h"
#include "base/when.h"
#include "cli/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define TAGS_MOST 100
#define HEIGHT 100.0 /* of a plot, in its own units; a step is one unit wide */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<style>\n"
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c2128;--dim:#59636e;--line:#d1d9e0;--done:#1a7f37;--retry:#bf8700;"
    "--fail:#cf222e;--mid:#0969da}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#30363d;--done:#3fb950;"
    "--retry:#d29922;--fail:#f85149;--mid:#58a6ff}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1rem;max-width:72rem;background:var(--bg);color:var(--fg);"
    "font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:1.3rem;margin:0}h2{font-size:1rem;margin:1.6rem 0 .3rem}p{margin:.2rem 0;color:var(--dim)}\n"
    "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(7rem,1fr));gap:.5rem;margin:1rem 0}\n"
    "dl div{border:1px solid var(--line);border-radius:6px;padding:.5rem .7rem}\n"
    "dt{color:var(--dim);font-size:.8rem}dd{margin:0;font-size:1.25rem;font-variant-numeric:tabular-nums}\n"
    "svg{display:block;width:100%;height:10rem;border-bottom:1px solid var(--line)}td svg{height:1.6rem;min-width:4rem}\n"
    ".x{display:flex;justify-content:space-between;color:var(--dim);font-size:.8rem}\n"
    ".d{fill:var(--done)}.r{fill:var(--retry)}.f{fill:var(--fail)}\n"
    "polyline{fill:none;stroke-width:1.5;vector-effect:non-scaling-stroke}\n"
    ".p50{stroke:var(--mid)}.p95{stroke:var(--retry)}.max{stroke:var(--fail)}\n"
    "i{display:inline-block;width:.7em;height:.7em;border-radius:2px;margin:0 .3em 0 .8em}\n"
    "table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25rem .4rem;border-bottom:1px solid var(--line);text-align:right}\n"
    "th{color:var(--dim);font-weight:normal;font-size:.8rem}th:first-child,td:first-child{text-align:left}\n"
    "td.bad{color:var(--fail)}\n"
    "@media(max-width:44rem){.w{display:none}}\n"
    "</style>\n";

/* ---- values */

static void put_text(struct buf *b, const char *s)
{
    struct buf inert = BUF_INIT;

    text_escape(&inert, s, strlen(s), 0);
    for (size_t i = 0; i < inert.len; i++) {
        char c = inert.data[i];

        buf_str(b, c == '&'   ? "&amp;"
                   : c == '<' ? "&lt;"
                   : c == '>' ? "&gt;"
                   : c == '"' ? "&quot;"
                              : "");
        if (!strchr("&<>\"", c))
            buf_chr(b, c);
    }
    buf_done(&inert);
}

static void put_tag(struct buf *b, const struct stats_tag *t)
{
    put_text(b, t->info.tag && t->info.tag[0] ? t->info.tag : "(others)");
}

static void put_count(struct buf *b, uint64_t n, bool sampled)
{
    buf_printf(b, "%s%" PRIu64, sampled ? "~" : "", n);
}

static void put_duration(struct buf *b, int64_t ms)
{
    char text[WHEN_TEXT_SIZE];

    buf_str(b, ms < 0 ? "-" : when_format_rough(text, ms));
}

static void put_late(struct buf *b, const struct stats *s, const struct tag_info *t)
{
    put_duration(b, t->late_from_at == TASK_TIME_NONE ? -1 : MAX(s->now_at - t->late_from_at, 0));
}

/* ---- plots */

static uint64_t step_ends(const struct counts *c)
{
    return c->done + c->failed + c->retried;
}

/* A part of a bar; *y: where the one below ended. */
static void put_part(struct buf *b, const char *class, size_t x, uint64_t n, uint64_t most,
                     double *y)
{
    double height = (double)n / (double)most * HEIGHT;

    if (!n)
        return;
    *y -= height;
    buf_printf(b, "<path class=\"%s\" d=\"M%zu.05 %.2fh.9v%.2fh-.9z\"/>", class, x, *y, height);
}

/* Stacked bars: failed at the bottom, where they are seen. */
static void put_bars(struct buf *b, const struct stats *s, const struct stats_tag *t,
                     const char *label, const struct cell_style *style)
{
    uint64_t most = 1;

    for (size_t i = 0; t->steps && i < s->step_count; i++)
        most = MAX(most, step_ends(&t->steps[i]));
    buf_printf(
        b,
        "<svg viewBox=\"0 0 %zu %.0f\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">",
        s->step_count, HEIGHT, label);
    for (size_t i = 0; t->steps && i < s->step_count; i++) {
        const struct counts *c = &t->steps[i];
        double y = HEIGHT;

        if (!step_ends(c))
            continue;
        buf_str(b, "<g>");
        put_part(b, "f", i, c->failed, most, &y);
        put_part(b, "r", i, c->retried, most, &y);
        put_part(b, "d", i, c->done, most, &y);
        if (style) {
            buf_str(b, "<title>");
            cell_put_time(b, style, stats_step_at(s, i), false);
            buf_printf(b, ": %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " retried</title>",
                       c->done, c->failed, c->retried);
        }
        buf_str(b, "</g>");
    }
    buf_str(b, "</svg>\n");
}

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
    return HEIGHT - decades((uint64_t)MAX(ms, 0)) / top * (HEIGHT - 2) - 1;
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

static void put_axis(struct buf *b, const struct stats *s, const struct cell_style *style)
{
    const int64_t at[] = {s->from_at, s->from_at + (s->now_at - s->from_at) / 2, s->now_at};

    buf_str(b, "<div class=\"x\">");
    for (size_t i = 0; i < 3; i++) {
        struct buf text = BUF_INIT;

        cell_put_time(&text, style, at[i], false);
        buf_printf(b, "<span>%.11s</span>", text.len > 5 ? text.data + 5 : "");
        buf_done(&text);
    }
    buf_str(b, "</div>\n");
}

static void put_plots(struct buf *b, const struct stats *s, const struct cell_style *style)
{
    const struct stats_tag *all = &s->tags[0];
    double top = decades(MAX(all->sum.late_max_ms, 10));
    uint64_t most = 0;

    for (size_t i = 0; all->steps && i < s->step_count; i++)
        most = MAX(most, step_ends(&all->steps[i]));
    buf_str(b, "<h2>Ended</h2>\n<p>per ");
    put_duration(b, s->step_ms);
    buf_printf(
        b,
        ", up to %" PRIu64 "<i class=\"d\" style=\"background:var(--done)\"></i>done"
        "<i style=\"background:var(--retry)\"></i>retried<i style=\"background:var(--fail)\"></i>failed</p>\n",
        most);
    put_bars(b, s, all, "tasks done, retried and failed over time", style);
    put_axis(b, s, style);
    buf_str(b, "<h2>Lateness of starts</h2>\n<p>logarithmic, 1ms to ");
    put_duration(b, (int64_t)MIN(MAX(all->sum.late_max_ms, 10), (uint64_t)INT64_MAX));
    buf_str(
        b,
        "<i style=\"background:var(--mid)\"></i>median<i style=\"background:var(--retry)\"></i>95 %"
        "<i style=\"background:var(--fail)\"></i>maximum</p>\n");
    buf_printf(b,
               "<svg viewBox=\"0 0 %zu %.0f\" preserveAspectRatio=\"none\" role=\"img\""
               " aria-label=\"lateness over time\">",
               s->step_count, HEIGHT);
    put_line(b, s, "p50", 50, top);
    put_line(b, s, "p95", 95, top);
    put_line(b, s, "max", 100, top);
    buf_str(b, "</svg>\n");
    put_axis(b, s, style);
}

/* ---- tables */

static void put_card(struct buf *b, const char *name)
{
    buf_printf(b, "<div><dt>%s</dt><dd>", name);
}

static void put_cards(struct buf *b, const struct stats *s)
{
    const struct tag_info *t = &s->tags[0].info;
    static const enum task_status states[] = {TASK_PENDING, TASK_RUNNING, TASK_FAILED};

    buf_str(b, "<dl>\n");
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        put_card(b, task_status_name((int)states[i]));
        put_count(b, t->count[states[i]], t->sampled[states[i]]);
        buf_str(b, "</dd></div>\n");
    }
    put_card(b, "due");
    put_count(b, t->due, t->due_sampled);
    buf_str(b, "</dd></div>\n");
    put_card(b, "late");
    put_late(b, s, t);
    buf_str(b, "</dd></div>\n");
    put_card(b, "done per second");
    buf_printf(b, "%.2f</dd></div>\n</dl>\n",
               stats_per_second(s->tags[0].sum.done, stats_elapsed_ms(s)));
}

static void put_row(struct buf *b, const struct stats *s, const struct stats_tag *t)
{
    buf_str(b, "<tr><td>");
    put_tag(b, t);
    buf_str(b, "<td class=\"w\">");
    put_bars(b, s, t, "over time", NULL);
    buf_str(b, "<td>");
    put_count(b, t->info.due, t->info.due_sampled);
    buf_str(b, "<td>");
    put_late(b, s, &t->info);
    buf_printf(b, "<td>%" PRIu64 "<td%s>%" PRIu64 "<td class=\"w\">%" PRIu64 "<td class=\"w\">",
               t->sum.done, t->sum.failed ? " class=\"bad\"" : "", t->sum.failed, t->sum.retried);
    put_duration(b, counts_late(&t->sum, 99));
    buf_str(b, "<td class=\"w\">");
    put_count(b, t->info.count[TASK_PENDING], t->info.sampled[TASK_PENDING]);
    buf_str(b, "<td class=\"w\">");
    put_count(b, t->info.count[TASK_FAILED], t->info.sampled[TASK_FAILED]);
    buf_chr(b, '\n');
}

static int compare_activity(const void *a, const void *b)
{
    const struct stats_tag *x = *(const struct stats_tag *const *)a,
                           *y = *(const struct stats_tag *const *)b;
    uint64_t m = step_ends(&x->sum) + x->info.due, n = step_ends(&y->sum) + y->info.due;

    return m != n ? (m < n ? 1 : -1) : strcmp(x->info.tag, y->info.tag);
}

static void put_table(struct buf *b, const struct stats *s)
{
    size_t count = s->count - 1;
    const struct stats_tag **order = mem_alloc((count + 1) * sizeof(struct stats_tag *));

    for (size_t i = 0; i < count; i++)
        order[i] = &s->tags[i + 1];
    if (count)
        qsort(order, count, sizeof(struct stats_tag *), compare_activity);
    buf_str(
        b,
        "<h2>Tags</h2>\n<table>\n<tr><th>tag<th class=\"w\">trend<th>due<th>late<th>done<th>failed"
        "<th class=\"w\">retried<th class=\"w\">late, 99 %<th class=\"w\">pending now<th class=\"w\">failed in all\n");
    for (size_t i = 0; i < MIN(count, (size_t)TAGS_MOST); i++)
        put_row(b, s, order[i]);
    buf_str(b, "</table>\n");
    if (count > TAGS_MOST)
        buf_printf(b, "<p>and %zu tags with less to do</p>\n", count - TAGS_MOST);
    free(order);
}

int stats_html_write(const struct stats *s, const char *path, const char *title,
                     const struct cell_style *style, struct err *err)
{
    struct buf b = BUF_INIT;
    int rc = 0;

    buf_str(&b, head);
    buf_str(&b, "<title>dq: ");
    put_text(&b, title);
    buf_str(&b, "</title>\n<h1>dq: ");
    put_text(&b, title);
    buf_str(&b, "</h1>\n<p>");
    cell_put_time(&b, style, s->now_at, true);
    buf_str(&b, ", the last ");
    put_duration(&b, stats_elapsed_ms(s) / WHEN_MINUTE * WHEN_MINUTE);
    buf_str(&b, "</p>\n");
    put_cards(&b, s);
    put_plots(&b, s, style);
    put_table(&b, s);
    buf_str(&b, "<p>Numbers with ~ are estimates.</p>\n</html>\n");
    if (strcmp(path, "-") == 0)
        out_write(&b);
    else
        rc = replace_file(path, b.data, b.len, 0644, err);
    buf_done(&b);
    return rc;
}
