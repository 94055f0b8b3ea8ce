/*
 * progress.c - a bar, a count, a rate and the time left.
 */
#include "cli/show/progress.h"

#include "base/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 24
#define REDRAW_MS 100

void progress_init(struct progress *p, bool quiet, const char *what)
{
    *p = (struct progress){
        .on = !quiet && isatty(STDERR_FILENO), .what = what, .started_at = when_steady()};
}

int64_t progress_elapsed_ms(const struct progress *p)
{
    return when_steady() - p->started_at;
}

static void draw_bar(char bar[BAR_WIDTH + 1], double fraction)
{
    size_t full = (size_t)((fraction > 1 ? 1 : fraction) * BAR_WIDTH);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', full);
    bar[BAR_WIDTH] = '\0';
}

void progress_phase(struct progress *p, const char *what, double fraction)
{
    char bar[BAR_WIDTH + 1];
    if (!p->on)
        return;
    p->shown_at = when_steady();
    draw_bar(bar, fraction);
    fprintf(stderr, "\r[%s] %3.0f%%  %s\033[K", bar, fraction * 100, what);
}

void progress_counting(double fraction, void *arg)
{
    progress_phase(arg, "counting tasks", fraction);
}

void progress_show(struct progress *p, uint64_t count, double fraction)
{
    int64_t now = when_steady(), elapsed = now - p->started_at;
    char bar[BAR_WIDTH + 1], left[WHEN_TEXT_SIZE];
    if (!p->on || now - p->shown_at < REDRAW_MS || elapsed <= 0)
        return;
    p->shown_at = now;
    double rate = (double)count * 1000 / (double)elapsed;
    if (fraction < 0) {
        fprintf(stderr, "\r%" PRIu64 " %s  %.0f/s\033[K", count, p->what, rate);
        return;
    }
    draw_bar(bar, fraction);
    int64_t left_ms = fraction > 0 ? (int64_t)((double)elapsed * (1 - fraction) / fraction) : 0;
    fprintf(stderr, "\r[%s] %3.0f%%  %" PRIu64 " %s  %.0f/s  %s left\033[K", bar, fraction * 100,
            count, p->what, rate, when_format_rough(left, (left_ms + 500) / 1000 * 1000));
}

void progress_clear(struct progress *p)
{
    if (p->on && p->shown_at != 0)
        fputs("\r\033[K", stderr);
    p->shown_at = 0;
}
