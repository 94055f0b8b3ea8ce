/*
 * when_parse.c - see when_parse.h. Invariant: a text is read exactly or refused; so is a local time
 * that a clock change skips or repeats, unless one of its readings is on the wrong side of now.
 */
#include "base/when_parse.h"

#include "base/duration.h"
#include "base/mem.h"
#include "base/moment.h"
#include "base/when.h"
#include "base/zone.h"

#include <stdlib.h>

int when_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
{
    struct scan s = {"duration", text, text, err};
    return duration_scan(&s, ret_ms, NULL);
}

/* ---- from what a text says about an instant to the instant */

static int64_t offset_of(const struct moment *m, int64_t at)
{
    return m->has_offset ? m->offset_ms : zone_offset(m->zone, at);
}

/* As zone_readings. */
static int readings(const struct moment *m, int64_t local, int64_t ret[2])
{
    if (!m->has_offset)
        return zone_readings(m->zone, local, ret);
    ret[0] = ret[1] = local - m->offset_ms;
    return 1;
}

/* Finds the instant at which the clock of m shows `local`. step_days 0: on that very day; else,
 * among its repetitions every step_days days, the first one after now; below 0: the last one that
 * is not after now. */
static int resolve_local(const struct moment *m, const struct scan *s, int64_t local, int step_days,
                         int64_t now_at, int64_t *ret_at)
{
    int64_t reading[2];
    char first[WHEN_TEXT_SIZE], second[WHEN_TEXT_SIZE];

    if (!m->has_offset && !m->zone && !zone_local_is_known())
        return scan_fault(s, NULL, NULL,
                          "this host knows no time zone \"%s\" (TZ) and would take it for UTC",
                          getenv("TZ"));
    int found = readings(m, local, reading);
    while ((step_days > 0 && reading[1] <= now_at) || (step_days < 0 && reading[0] > now_at))
        found = readings(m, local += step_days * WHEN_DAY, reading);
    /* of two, the other one is on the wrong side of now */
    if (found == 1 || (found == 2 && step_days && reading[0] <= now_at && reading[1] > now_at)) {
        *ret_at = reading[step_days >= 0];
        return 0;
    }
    when_format_ahead(first, reading[0], offset_of(m, reading[0]));
    when_format_ahead(second, reading[1], offset_of(m, reading[1]));
    return scan_fault(s, NULL, NULL, "the local clock %s; write %s or %s",
                      found ? "is set back and shows this twice"
                            : "is set forward and never shows this",
                      first, second);
}

/* Days from one weekday to the next, 0 to 6. */
static int days_to(int from, int to)
{
    return (to - from + 7) % 7;
}

/* The day after today that "next WEEKDAY" is: some mean the first one, others the one of the next
 * week. */
static int find_next(const struct scan *s, int64_t today, int weekday, int number, int64_t *ret_day)
{
    int64_t first = today + (days_to(weekday, number) ? days_to(weekday, number) : 7) * WHEN_DAY;
    char one[WHEN_TEXT_SIZE], other[WHEN_TEXT_SIZE];

    *ret_day = first;
    if (days_to(1, weekday) >=
        days_to(1, number)) /* not ahead in this week, which began on Monday */
        return 0;
    when_format_utc(one, first);
    when_format_utc(other, first + WHEN_WEEK);
    return scan_fault(s, NULL, NULL, "this can be %.10s or %.10s; write the date", one, other);
}

/* The instant. ERR_DATA, about the text of s: for a local time that does not exist or exists twice,
 * and a "next friday" that could be one of two days. */
static int resolve(const struct moment *m, const struct scan *s, int64_t now_at, int64_t *ret_at)
{
    int64_t today = civil_floor_div(now_at + offset_of(m, now_at), WHEN_DAY) * WHEN_DAY;
    int weekday = civil_weekday(today / WHEN_DAY);
    int64_t day = today;
    int step_days = 0;

    switch (m->kind) {
    case MOMENT_AT:
        *ret_at = m->ms;
        return 0;
    case MOMENT_FROM_NOW:
        *ret_at = now_at + m->ms;
        return 0;
    case MOMENT_DATE:
        day = civil_to_days(&m->date) * WHEN_DAY;
        break;
    case MOMENT_CLOCK:
        step_days = m->past ? -1 : 1;
        break;
    case MOMENT_NEAR:
        day += m->number * WHEN_DAY;
        break;
    case MOMENT_WEEKDAY:
        day += (m->past ? -days_to(m->number, weekday) : days_to(weekday, m->number)) * WHEN_DAY;
        step_days = m->past ? -7 : 7;
        break;
    case MOMENT_NEXT:
        if (find_next(s, today, weekday, m->number, &day))
            return ERR_DATA;
        break;
    }
    return resolve_local(m, s, day + m->ms, step_days, now_at, ret_at);
}

/* ---- texts */

static int parse(const char *text, bool past, int64_t now_at, int64_t *ret_at, struct err *err)
{
    struct scan s = {"time", text, text, err};
    LOCAL_BY(moment_done) struct moment m = {0};
    int64_t at = 0;

    int rc = moment_scan(&s, past, &m);
    if (rc == 0)
        rc = resolve(&m, &s, now_at, &at);
    if (rc < 0)
        return rc;
    if (at < WHEN_AT_MIN || at > WHEN_AT_MAX)
        return scan_fault(&s, NULL, NULL, "out of range: years go from 1000 to 9999");
    *ret_at = at;
    return 0;
}

int when_parse_instant(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
{
    return parse(text, false, now_at, ret_at, err);
}

int when_parse_past(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
{
    return parse(text, true, now_at, ret_at, err);
}

int when_parse_check(const char *text, bool past, struct err *err)
{
    struct scan s = {"time", text, text, err};
    LOCAL_BY(moment_done) struct moment m = {0};

    return moment_scan(&s, past, &m);
}

int when_parse_sql(const char *text, int64_t *ret_at, struct err *err)
{
    struct scan s = {"time", text, text, NULL};
    struct civil c = {0};
    int64_t clock = 0;

    if (moment_scan_date(&s, 0, &c) || *s.p++ != ' ' || moment_scan_clock(&s, &clock) || *s.p)
        return err_set(err, ERR_FATAL, "the server sent an invalid time: \"%.40s\"", text);
    *ret_at = civil_to_days(&c) * WHEN_DAY + clock;
    return 0;
}
