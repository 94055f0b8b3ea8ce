/*
 * top_view.c - see top_view.h. Invariant: nothing in a line acts on a terminal, whatever the
 * names of tags contain.
 */
#include "cli/show/top_view.h"

#include "base/text.h"
#include "base/when.h"
#include "cli/show/spark.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define TAG_MIN 8
#define NUMBERS_WIDTH 38 /* of the columns between TAG and WHY, with their gaps */
/* Of the run times, which narrower screens do not show. */
#define TOOK_WIDTH 16
#define TOOK_FROM 110

const char *const top_view_sorts[] = {"late", "due", "run", "done", "failed", "tag"};

void top_view_free(struct top_data *d)
{
    for (size_t i = 0; i < d->count; i++) {
        free(d->tags[i].name);
        free(d->tags[i].why);
    }
    free(d->tags);
    free(d->next);
    *d = (struct top_data){.count = 0};
}

/* ---- order */

static double key_of(const struct top_tag *t, enum top_sort by)
{
    switch (by) {
    case TOP_SORT_LATE:
        return (double)t->late_ms;
    case TOP_SORT_DUE:
        return (double)t->due;
    case TOP_SORT_RUN:
        return (double)t->running;
    case TOP_SORT_DONE:
        return t->done;
    case TOP_SORT_FAILED:
        return t->failed;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct top_tag *x = a, *y = b;
    const enum top_sort by = *(const enum top_sort *)arg;
    double p = key_of(x, by), q = key_of(y, by);

    if (x->paused != y->paused)
        return x->paused - y->paused;
    if (p != q) /* NOLINT: equal or not, nothing is computed */
        return p > q ? -1 : 1;
    return strcmp(x->name, y->name);
}

void top_view_sort(struct top_data *d, enum top_sort by)
{
    if (d->count)
        qsort_r(d->tags, d->count, sizeof *d->tags, compare, &by);
}

/* ---- lines */

static void put_fill(struct buf *b, size_t columns)
{
    buf_printf(b, "%*s", (int)columns, "");
}

/* A text of unknown origin, cut at the width or filled up to it. */
static void put_cell(struct buf *b, const char *s, unsigned width)
{
    size_t begin = b->len;

    buf_reserve(b, width);
    text_escape(b, s, strlen(s), width);
    put_fill(b, width - text_width(b->data + begin, b->len - begin));
}

void top_view_title(struct buf *b, const char *left, const char *right, unsigned width)
{
    BUF_LOCAL struct buf r = BUF_INIT;
    size_t begin = b->len;

    buf_reserve(b, width);
    text_escape(b, left, strlen(left), 0);
    text_escape(&r, right, strlen(right), 0);
    size_t used = text_width(b->data + begin, b->len - begin) + text_width(r.data, r.len);
    if (used + 2 <= width) {
        put_fill(b, width - used);
        buf_add(b, r.data, r.len);
    }
}

static void put_rate(char out[16], double a_second)
{
    snprintf(out, 16, a_second > 0 && a_second < 9.95 ? "%.1f" : "%.0f", a_second);
}

void top_view_summary(struct buf *b, const struct top_data *d)
{
    char done[16], failed[16];

    put_rate(done, d->done);
    put_rate(failed, d->failed);
    buf_printf(b, "dqd %zu of %zu alive", d->alive, d->dqds);
    if (d->quiet)
        buf_printf(b, ", %zu quiet", d->quiet);
    buf_printf(b, "   handlers %" PRIu64 " of %" PRIu64, d->running, d->slots);
    if (d->kept)
        buf_printf(b, "   kept %u, %u idle", d->kept, d->kept_idle);
    buf_printf(b, "   failed %s%" PRIu64 "   done/s %s ", d->failed_sampled ? "~" : "",
               d->failed_tasks, done);
    spark_line(b, d->done_steps, TOP_VIEW_STEPS);
    buf_printf(b, "   failed/s %s ", failed);
    spark_line(b, d->failed_steps, TOP_VIEW_STEPS);
    if (d->next) {
        buf_str(b, "   next ");
        text_escape(b, d->next, strlen(d->next), 0);
    }
}

void top_view_keys(struct buf *b, unsigned width)
{
    static const char *const keys[] = {"w why",   "e errors", "enter list", "p pause", "c cancel",
                                       "t retry", "r resume", "s sort",     "/ filter"};
    static const char quit[] = "q quit";
    const size_t begin = b->len;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (b->len - begin + strlen(keys[i]) + 2 + strlen(quit) <= width)
            buf_printf(b, "%s  ", keys[i]);
    buf_str(b, quit);
}

static unsigned numbers_width(unsigned width)
{
    return NUMBERS_WIDTH + (width >= TOOK_FROM ? TOOK_WIDTH : 0);
}

/* Whole names if the reasons still have some room. */
static unsigned tag_width(const struct top_data *d, unsigned width)
{
    BUF_LOCAL struct buf safe = BUF_INIT;
    size_t most = TAG_MIN;

    for (size_t i = 0; i < d->count; i++) {
        buf_reset(&safe);
        text_escape(&safe, d->tags[i].name, strlen(d->tags[i].name), 0);
        most = MAX(most, text_width(safe.data ? safe.data : "", safe.len));
    }
    unsigned numbers = numbers_width(width);
    unsigned room = width > numbers + TAG_MIN ? width - numbers : TAG_MIN;
    if (room > 60)
        room -= 30;
    else if (room > 2 * TAG_MIN)
        room -= room / 2;
    return (unsigned)MIN(most, (size_t)room);
}

void top_view_heading(struct buf *b, const struct top_data *d, unsigned width)
{
    put_cell(b, "TAG", tag_width(d, width));
    buf_printf(b, " %4s %8s %7s %6s %6s", "RUN", "DUE", "LATE", "DONE/S", "FAIL/S");
    if (width >= TOOK_FROM)
        buf_printf(b, " %7s %7s", "TOOK50", "TOOK95");
    buf_str(b, "  WHY");
}

/* Long ones in whole seconds; "-" for -1. */
static const char *put_time(char text[WHEN_TEXT_SIZE], int64_t ms)
{
    if (ms < 0)
        return "-";
    return when_format_rough(text, ms < 10 * WHEN_SECOND ? ms : ms / WHEN_SECOND * WHEN_SECOND);
}

void top_view_tag(struct buf *b, const struct top_data *d, const struct top_tag *t, unsigned width)
{
    char done[16], failed[16], due[32], late[WHEN_TEXT_SIZE], p50[WHEN_TEXT_SIZE],
        p95[WHEN_TEXT_SIZE];

    put_rate(done, t->done);
    put_rate(failed, t->failed);
    snprintf(due, sizeof due, "%s%" PRIu64, t->due_sampled ? "~" : "", t->due);
    put_cell(b, t->name, tag_width(d, width));
    buf_printf(b, " %4" PRIu64 " %8s %7s %6s %6s", t->running, due, put_time(late, t->late_ms),
               done, failed);
    if (width >= TOOK_FROM)
        buf_printf(b, " %7s %7s", put_time(p50, t->took_p50_ms), put_time(p95, t->took_p95_ms));
    buf_str(b, "  ");
    text_escape(b, t->why, strlen(t->why), 0);
}
