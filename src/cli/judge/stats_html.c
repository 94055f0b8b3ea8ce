/*
 * stats_html.c - see stats_html.h. Invariant: the page loads nothing and has no script, and data in
 * it stays text.
 */
#include "cli/judge/stats_html.h"

#include "base/mem.h"
#include "base/replace.h"
#include "base/when.h"
#include "cli/judge/stats_plot.h"
#include "cli/line/texts.h"
#include "cli/show/html.h"
#include "cli/show/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define TAGS_MOST 100
#define ERRORS_MOST 10
#define REFRESHES_LATE 2           /* a page that misses two has nobody who makes it */
#define LATE_MS (10 * WHEN_SECOND) /* a tag that is later comes before busy ones */

/* ---- the head of the page */

static void put_place(struct buf *b, const struct stats_page *p, const struct cell_style *style)
{
    if (p->refresh_ms >= 0)
        buf_printf(b, "<meta http-equiv=\"refresh\" content=\"%" PRId64 "\">\n",
                   MAX(p->refresh_ms / WHEN_SECOND, 1));
    buf_str(b, "<title>dq: ");
    html_put_text(b, p->place);
    buf_str(b, "</title>\n</head>\n<body>\n<header>\n<h1>dq: ");
    html_put_text(b, p->place);
    buf_str(b, "</h1>\n<p>made ");
    cell_put_time(b, style, p->stats->now_at, true);
    buf_str(b, " from ");
    html_put_text(b, p->server);
    if (p->refresh_ms >= 0) {
        buf_str(b, "; if this is older than ");
        html_put_duration(b, REFRESHES_LATE * p->refresh_ms);
        buf_str(b, " its job has stopped");
    }
    buf_str(b, "</p>\n");
    if (p->now->alive)
        buf_printf(b,
                   "<p>%zu of %zu dqds are alive, %" PRIu64 " of %" PRIu64 " slots are taken</p>\n",
                   p->now->alive, p->now->dqds, p->now->running, p->now->slots);
    else
        buf_str(b, "<p class=\"bad\">no dqd is alive</p>\n");
    if (p->now->alive && p->now->silent)
        buf_printf(b, "<p class=\"warn\">%zu dqd%s silent: resident, and did not end</p>\n",
                   p->now->silent, p->now->silent == 1 ? " is" : "s are");
    buf_str(b, "</header>\n");
}

/* ---- numbers */

static int64_t period_ms(const struct stats *s)
{
    return stats_elapsed_ms(s) / WHEN_MINUTE * WHEN_MINUTE;
}

static void begin_card(struct buf *b, const char *name, bool bad)
{
    buf_printf(b, "<li><span>%s</span><b%s>", name, bad ? " class=\"bad\"" : "");
}

static void put_count_card(struct buf *b, const char *name, uint64_t n, bool sampled, bool bad)
{
    begin_card(b, name, bad && n);
    html_put_count(b, n, sampled);
    buf_str(b, "</b></li>\n");
}

static void put_cards(struct buf *b, const struct stats *s)
{
    const struct tag_info *t = &s->tags[0].info;
    const struct counts *sum = &s->tags[0].sum;
    double per_second = stats_per_second(sum->done, stats_elapsed_ms(s));

    buf_str(b, "<section>\n<h2>Now</h2>\n<ul class=\"cards\">\n");
    begin_card(b, "late", tag_info_late_ms(t, s->now_at) >= LATE_MS);
    html_put_duration(b, tag_info_late_ms(t, s->now_at));
    buf_str(b, "</b></li>\n");
    put_count_card(b, "due", t->due, t->due_sampled, false);
    put_count_card(b, "running", t->count[TASK_RUNNING], t->sampled[TASK_RUNNING], false);
    put_count_card(b, "pending", t->count[TASK_PENDING], t->sampled[TASK_PENDING], false);
    put_count_card(b, "failed", t->count[TASK_FAILED], t->sampled[TASK_FAILED], true);
    buf_str(b, "</ul>\n</section>\n<section>\n<h2>In the last ");
    html_put_duration(b, period_ms(s));
    buf_str(b, "</h2>\n<ul class=\"cards\">\n");
    begin_card(b, "done per second", false);
    if (per_second < 100)
        buf_printf(b, "%.2f", per_second);
    else
        html_put_count(b, (uint64_t)(per_second + 0.5), false);
    buf_str(b, "</b></li>\n");
    put_count_card(b, "started", sum->started, false, false);
    put_count_card(b, "done", sum->done, false, false);
    put_count_card(b, "retried", sum->retried, false, false);
    put_count_card(b, "failed", sum->failed, false, true);
    if (sum->expired)
        put_count_card(b, "expired", sum->expired, false, true);
    buf_str(b, "</ul>\n</section>\n");
}

/* ---- the table of tags */

/* The name is shown if the page is narrow. class: "lately", of the period; or "". */
static void begin_cell(struct buf *b, const char *name, const char *class, const char *tone)
{
    buf_printf(b, "<td data-name=\"%s\" class=\"%s %s\">", name, class, tone);
}

static void put_count_cell(struct buf *b, const char *name, const char *class, uint64_t n,
                           bool sampled)
{
    begin_cell(b, name, class, !n ? "zero" : !strcmp(name, "failed") ? "bad" : "some");
    html_put_count(b, n, sampled);
    buf_str(b, "</td>");
}

static void put_duration_cell(struct buf *b, const char *name, const char *class, int64_t ms,
                              bool bad)
{
    begin_cell(b, name, class, ms < 0 ? "zero" : bad ? "bad" : "some");
    html_put_duration(b, ms);
    buf_str(b, "</td>");
}

static const char *why_of(const struct top_data *now, const char *tag)
{
    for (size_t i = 0; i < now->count; i++)
        if (!strcmp(now->tags[i].name, tag))
            return now->tags[i].why;
    return "";
}

static void put_row(struct buf *b, const struct stats_page *p, const struct stats_tag *t)
{
    const struct stats *s = p->stats;
    const struct tag_info *i = &t->info;
    const char *why = why_of(p->now, i->tag);
    int64_t late_ms = tag_info_late_ms(i, s->now_at);

    buf_str(b, "<tr><th scope=\"row\">");
    html_put_text(b, i->tag[0] ? i->tag : "(others)");
    if (*why) {
        buf_str(b, "<small>");
        html_put_text(b, why);
        buf_str(b, "</small>");
    }
    if (t->sum.expired)
        buf_printf(b, "<small class=\"bad\">%" PRIu64 " expired</small>", t->sum.expired);
    buf_str(b, "</th><td>");
    if (t->steps)
        stats_plot_trend(b, s, t);
    buf_str(b, "</td>\n");
    put_duration_cell(b, "late", "", late_ms, !tag_info_paused(i) && late_ms >= LATE_MS);
    put_count_cell(b, "due", "", i->due, i->due_sampled);
    put_count_cell(b, "pending", "", i->count[TASK_PENDING], i->sampled[TASK_PENDING]);
    put_count_cell(b, "failed", "", i->count[TASK_FAILED], i->sampled[TASK_FAILED]);
    put_duration_cell(b, "late 99 %", "", counts_late(&t->sum, 99), false);
    put_duration_cell(b, "took 50 %", "", counts_took(&t->sum, 50), false);
    put_duration_cell(b, "took 95 %", "", counts_took(&t->sum, 95), false);
    put_count_cell(b, "done", "lately", t->sum.done, false);
    put_count_cell(b, "retried", "lately", t->sum.retried, false);
    put_count_cell(b, "failed", "lately", t->sum.failed, false);
    buf_str(b, "</tr>\n");
}

static uint64_t activity(const struct stats_tag *t)
{
    return t->sum.done + t->sum.failed + t->sum.retried + t->info.due;
}

/* The latest first, then the busiest; paused tags below the others. */
static int compare(const void *a, const void *b)
{
    const struct stats_tag *x = *(const struct stats_tag *const *)a,
                           *y = *(const struct stats_tag *const *)b;
    int64_t late_x = tag_info_late_ms(&x->info, x->of->now_at),
            late_y = tag_info_late_ms(&y->info, y->of->now_at);

    if (tag_info_paused(&x->info) != tag_info_paused(&y->info))
        return tag_info_paused(&x->info) - tag_info_paused(&y->info);
    if (MAX(late_x, late_y) >= LATE_MS && late_x != late_y)
        return late_x < late_y ? 1 : -1;
    if (activity(x) != activity(y))
        return activity(x) < activity(y) ? 1 : -1;
    return strcmp(x->info.tag, y->info.tag);
}

static void put_table(struct buf *b, const struct stats_page *p)
{
    const struct stats *s = p->stats;
    size_t count = s->count - 1;
    MEM_LOCAL const struct stats_tag **order = mem_alloc((count + 1) * sizeof(struct stats_tag *));

    for (size_t i = 0; i < count; i++)
        order[i] = &s->tags[i + 1];
    if (count)
        qsort(order, count, sizeof(struct stats_tag *), compare);
    buf_str(b, "<table style='--period:\", ");
    html_put_duration(b, period_ms(s));
    buf_str(
        b,
        "\"'>\n<thead>\n<tr><th></th><th></th><th colspan=\"4\">now</th><th colspan=\"6\">in the last ");
    html_put_duration(b, period_ms(s));
    buf_str(
        b,
        "</th></tr>\n<tr><th>tag</th><th>ended</th><th>late</th><th>due</th><th>pending</th><th>failed</th>"
        "<th>late 99 %</th><th>took 50 %</th><th>took 95 %</th><th>done</th><th>retried</th><th>failed</th></tr>\n"
        "</thead>\n<tbody>\n");
    for (size_t i = 0; i < MIN(count, (size_t)TAGS_MOST); i++)
        put_row(b, p, order[i]);
    buf_str(b, "</tbody>\n</table>\n");
    if (count > TAGS_MOST)
        buf_printf(b, "<p>and %zu tags that are not late and have less to do</p>\n",
                   count - TAGS_MOST);
}

static bool has_estimates(const struct tag_info *t)
{
    bool some = t->due_sampled;

    for (int i = 0; i < TASK_STATUS_COUNT; i++)
        some |= t->sampled[i];
    return some;
}

/* ---- errors */

static void put_errors(struct buf *b, const struct stats_page *p, const struct cell_style *style)
{
    const struct failures *f = p->errors;

    buf_str(b, "<section>\n<h2>Errors in the last ");
    html_put_duration(b, period_ms(p->stats));
    buf_str(b, "</h2>\n");
    if (!f->count)
        buf_str(b, "<p>Nothing failed in this time.</p>\n");
    buf_str(b, "<ul class=\"errors\">\n");
    for (size_t i = 0; i < MIN(f->count, (size_t)ERRORS_MOST); i++) {
        const struct failures_group *g = &f->items[i];
        buf_str(b, "<li><b>");
        html_put_count(b, g->failures, false);
        buf_str(b, p->errors_sampled ? "+</b><div>" : "</b><div>");
        html_put_text(b, g->tag);
        buf_str(b, ": ");
        html_put_text(b, g->pattern);
        buf_str(b, " <small>");
        html_put_count(b, g->failed, false);
        buf_str(b, " failed, ");
        html_put_count(b, g->retrying, false);
        buf_str(b, " run again, last ");
        cell_put_time(b, style, g->last_at, false);
        buf_printf(b, ", task %" PRIu64 "</small></div></li>\n", g->id);
    }
    buf_str(b, "</ul>\n");
    if (f->count > ERRORS_MOST)
        buf_printf(b, "<p>and %zu more kinds: dq errors lists all</p>\n", f->count - ERRORS_MOST);
    buf_str(b, "</section>\n");
}

/* ---- the page */

int stats_html_write(const struct stats_page *p, const char *path, const struct cell_style *style,
                     struct err *err)
{
    const struct stats *s = p->stats;
    BUF_LOCAL struct buf b = BUF_INIT;
    int rc = 0;

    buf_str(&b, texts_page);
    put_place(&b, p, style);
    put_cards(&b, s);
    buf_str(&b, "<section class=\"plots\">\n");
    stats_plot_ends(&b, s, style);
    stats_plot_lateness(&b, s, style);
    stats_plot_ahead(&b, p->ahead, WHEN_HOUR, style);
    buf_str(&b, "</section>\n<section>\n<h2>Tags</h2>\n");
    if (s->count > 1)
        put_table(&b, p);
    else
        buf_str(&b, "<p>There are no tasks.</p>\n");
    if (has_estimates(&s->tags[0].info))
        buf_str(&b, "<p>Numbers with ~ are estimates.</p>\n");
    buf_str(&b, "</section>\n");
    put_errors(&b, p, style);
    buf_str(&b, "</body>\n</html>\n");
    if (strcmp(path, "-") == 0)
        out_write(&b);
    else
        rc = replace_file(path, b.data, b.len, true, err);
    return rc;
}
