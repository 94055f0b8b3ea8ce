/*
 * hours.c - see hours.h. The cases are in test/data/hours.tbl.
 */
#include "base/hours.h"

#include "base/civil.h"
#include "base/mem.h"
#include "base/scan.h"
#include "base/when.h"
#include "base/zone.h"
#include "base/zone_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>

#define DAY_MINUTES 1440
#define SEARCH_MS (400 * WHEN_DAY)

struct window {
    unsigned days; /* a bit each, from Monday on */
    int from, to;  /* minutes of the day; to is beyond it if the window passes midnight */
    char *zone_name;
    struct zone *zone; /* NULL: UTC */
};

struct hours {
    size_t count, shared; /* shared: how often it is to be freed, but for the last time */
    struct window windows[HOURS_WINDOWS_MAX];
};

/* From Monday on, as windows count days. */
static const char *day_name(int day)
{
    return civil_weekday_names[(day + 1) % 7];
}

struct hours *hours_share(struct hours *h)
{
    h->shared++;
    return h;
}

void hours_free(struct hours *h)
{
    if (h && h->shared > 0) {
        h->shared--;
        return;
    }
    for (size_t i = 0; h && i < h->count; i++) {
        zone_free(h->windows[i].zone);
        free(h->windows[i].zone_name);
    }
    free(h);
}

/* ---- texts */

static int scan_day(struct scan *s, int *ret)
{
    size_t n = 0;

    while (isalpha((unsigned char)s->p[n]))
        n++;
    for (int i = 0; i < 7; i++)
        if (!strncasecmp(s->p, day_name(i), n) && (n == 3 || n == strlen(day_name(i)))) {
            s->p += n;
            *ret = i;
            return 0;
        }
    return scan_fault(s, s->p, "like Mon-Fri or Sat,Sun", "a day of the week is missing");
}

/* "Mon-Fri", "Sat,Sun", "Mon,Wed-Fri", "Fri-Mon". */
static int scan_days(struct scan *s, unsigned *ret)
{
    int first = 0, last;

    for (*ret = 0;; s->p++) {
        if (scan_day(s, &first))
            return ERR_DATA;
        last = first;
        if (*s->p == '-' && (s->p++, scan_day(s, &last)))
            return ERR_DATA;
        for (int day = first; *ret |= 1U << day, day != last;)
            day = (day + 1) % 7;
        if (*s->p != ',')
            return 0;
    }
}

static int scan_time(struct scan *s, int *ret)
{
    const char *at = s->p;
    int hour, minute;

    if (!scan_number(s, 2, true, &hour) || *s->p != ':')
        return scan_fault(s, at, "like 08:00-18:00", "a time of day is missing");
    if (hour > 24)
        return scan_fault(s, at, NULL, "hours go from 00 to 24");
    at = ++s->p;
    if (!scan_number(s, 2, false, &minute) || minute > (hour == 24 ? 0 : 59))
        return scan_fault(s, at, NULL, "minutes go from 00 to %s",
                          hour == 24 ? "00 behind 24" : "59");
    *ret = hour * 60 + minute;
    return 0;
}

static int scan_times(struct scan *s, struct window *w)
{
    const char *at = s->p;

    if (scan_time(s, &w->from))
        return ERR_DATA;
    if (w->from == DAY_MINUTES)
        return scan_fault(s, at, "write 00:00 of the next day", "24:00 is the end of a day");
    if (*s->p != '-')
        return scan_fault(s, s->p, "like 08:00-18:00", "\"-\" and a time are missing");
    s->p++;
    if (scan_time(s, &w->to))
        return ERR_DATA;
    if (w->to == w->from)
        return scan_fault(s, at, "the whole day is 00:00-24:00", "this window never opens");
    w->to += w->to < w->from ? DAY_MINUTES : 0;
    return 0;
}

static int scan_window(struct scan *s, const char *zone, struct window *w)
{
    w->days = 0x7f;
    scan_blanks(s);
    if (isalpha((unsigned char)*s->p) && scan_days(s, &w->days))
        return ERR_DATA;
    scan_blanks(s);
    if (scan_times(s, w))
        return ERR_DATA;
    if (*s->p && *s->p != ' ' && *s->p != '\t')
        return scan_fault(s, s->p, NULL, "unexpected \"%.*s\"", MAX(scan_word_length(s->p), 1),
                          s->p);
    scan_blanks(s);
    size_t len = strcspn(s->p, " \t");
    if (s->p[len + strspn(s->p + len, " \t")])
        return scan_fault(s, s->p + len, NULL, "more than a zone follows the times");
    if (!len && !zone)
        return scan_fault(s, s->p, "like Europe/Berlin",
                          "a time zone is missing, and that of this host has no name");
    w->zone_name = len ? mem_dup(s->p, len) : mem_strdup(zone);
    return zone_names_load(w->zone_name, &w->zone, s->err) ? err_prefix(s->err, "hours") : 0;
}

int hours_parse(const char *lines, const char *zone, struct hours **ret, struct err *err)
{
    struct hours *h = mem_zero(1, sizeof *h);
    BUF_LOCAL struct buf text = BUF_INIT;
    MEM_LOCAL char *copy = mem_strdup(lines);
    char *rest = copy;

    for (char *line; (line = strsep(&rest, "\n"));) {
        struct scan s = {"hours", line, line, err};
        if (h->count == HOURS_WINDOWS_MAX) {
            err_set(err, ERR_DATA, "hours have at most %d windows", HOURS_WINDOWS_MAX);
            goto failed;
        }
        if (scan_window(&s, zone, &h->windows[h->count++]))
            goto failed;
    }
    hours_put(&text, h, "\n");
    if (text.len > HOURS_TEXT_MAX) {
        err_set(err, ERR_DATA, "hours of %zu bytes are longer than %d", text.len, HOURS_TEXT_MAX);
        goto failed;
    }
    *ret = h;
    return 0;
failed:
    hours_free(h);
    return ERR_DATA;
}

/* Two days in a row are "Sat,Sun", more are "Mon-Wed". */
static void put_days(struct buf *b, unsigned set)
{
    const char *comma = "";

    for (int i = 0, last; i < 7; i = last + 1) {
        last = i;
        if (!(set >> i & 1))
            continue;
        while (set >> (last + 1) & 1)
            last++;
        buf_printf(b, "%s%.3s", comma, day_name(i));
        if (last > i)
            buf_printf(b, "%c%.3s", last > i + 1 ? '-' : ',', day_name(last));
        comma = ",";
    }
    buf_chr(b, ' ');
}

void hours_put(struct buf *b, const struct hours *h, const char *end)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct window *w = &h->windows[i];
        int to = w->to > DAY_MINUTES ? w->to - DAY_MINUTES : w->to;

        buf_str(b, i ? end : "");
        if (w->days != 0x7f)
            put_days(b, w->days);
        buf_printf(b, "%02d:%02d-%02d:%02d %s", w->from / 60, w->from % 60, to / 60, to % 60,
                   w->zone_name);
    }
}

/* ---- instants */

/* What a clock shows: the day of the week, from Monday on, and the time since midnight. */
struct clock {
    int day;
    int64_t ms;
};

static struct clock clock_at(const struct window *w, int64_t at)
{
    int64_t local = at + (w->zone ? zone_offset(w->zone, at) : 0);
    int64_t date = civil_floor_div(local, WHEN_DAY);

    return (struct clock){(civil_weekday(date) + 6) % 7, local - date * WHEN_DAY};
}

static bool window_open(const struct window *w, int64_t at)
{
    struct clock c = clock_at(w, at);
    int64_t minute = c.ms / WHEN_MINUTE;

    return ((w->days >> c.day & 1) && minute >= w->from && minute < w->to) ||
           ((w->days >> (c.day + 6) % 7 & 1) && minute < w->to - DAY_MINUTES);
}

bool hours_open(const struct hours *h, int64_t at)
{
    for (size_t i = 0; i < h->count; i++)
        if (window_open(&h->windows[i], at))
            return true;
    return false;
}

/* The first instant after `at` at which the window may open or close. */
static int64_t window_next(const struct window *w, int64_t at)
{
    struct clock c = clock_at(w, at);
    const int ends[] = {w->from, w->to, w->to - DAY_MINUTES};
    int64_t next_ms = WHEN_DAY;

    for (size_t i = 0; i < MEM_COUNT(ends); i++)
        if (ends[i] * WHEN_MINUTE > c.ms)
            next_ms = MIN(next_ms, ends[i] * WHEN_MINUTE);
    return MIN(at + next_ms - c.ms, w->zone ? zone_next_change(w->zone, at) : INT64_MAX);
}

int64_t hours_next(const struct hours *h, int64_t at)
{
    bool open = hours_open(h, at);

    for (const int64_t end = at + SEARCH_MS; at < end;) {
        int64_t next = INT64_MAX;
        for (size_t i = 0; i < h->count; i++)
            next = MIN(next, window_next(&h->windows[i], at));
        at = next;
        if (hours_open(h, at) != open)
            return at;
    }
    return INT64_MAX;
}

int64_t hours_since(const struct hours *h, int64_t at)
{
    int64_t since = INT64_MIN;

    for (int64_t t = at - 8 * WHEN_DAY; (t = hours_next(h, t)) <= at;)
        since = hours_open(h, t) ? t : INT64_MIN;
    return since;
}

void hours_put_opening(struct buf *b, const struct hours *h, int64_t at)
{
    const struct window *w = h->windows;

    at = hours_open(h, at) ? at : hours_next(h, at);
    for (size_t i = 0; i < h->count && !window_open(w, at); i++)
        w = &h->windows[i];
    struct clock c = clock_at(w, at);
    buf_printf(b, "%.3s %02d:%02d %s", day_name(c.day), (int)(c.ms / WHEN_HOUR),
               (int)(c.ms / WHEN_MINUTE % 60), w->zone_name);
}
