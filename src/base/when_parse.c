/*
 * when_parse.c - see when_parse.h.
 *
 * Invariant: a text is read exactly or refused. Dates are computed by civil.c, never by mktime,
 * timegm or strptime, which turn 31 February into 3 March, a skipped hour into another one, and
 * ignore trailing junk.
 */
#include "base/when_parse.h"

#include "base/civil.h"
#include "base/scan.h"
#include "base/when.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- durations ---- */

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"ms", 1},
    {"msec", 1},
    {"s", WHEN_SECOND},
    {"sec", WHEN_SECOND},
    {"secs", WHEN_SECOND},
    {"second", WHEN_SECOND},
    {"seconds", WHEN_SECOND},
    {"m", WHEN_MINUTE},
    {"min", WHEN_MINUTE},
    {"mins", WHEN_MINUTE},
    {"minute", WHEN_MINUTE},
    {"minutes", WHEN_MINUTE},
    {"h", WHEN_HOUR},
    {"hour", WHEN_HOUR},
    {"hours", WHEN_HOUR},
    {"d", WHEN_DAY},
    {"day", WHEN_DAY},
    {"days", WHEN_DAY},
    {"w", WHEN_WEEK},
    {"week", WHEN_WEEK},
    {"weeks", WHEN_WEEK},
};
static const char unit_hint[] = "use ms, s, m, h, d or w";

static int scan_unit(struct scan *s, int64_t largest_ms, int64_t *ret_ms)
{
    int n = scan_word_length(s->p);

    if (!n)
        return scan_fault(s, s->p, unit_hint, "a unit is missing");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strncmp(units[i].name, s->p, (size_t)n) || units[i].name[n])
            continue;
        if (units[i].ms >= largest_ms)
            return scan_fault(s, s->p, "units go from large to small, each once",
                              "unit \"%s\" is out of order", units[i].name);
        *ret_ms = units[i].ms;
        s->p += n;
        return 0;
    }
    return scan_fault(s, s->p, unit_hint, "unknown unit \"%.*s\"", n, s->p);
}

static int scan_duration(struct scan *s, int64_t *ret_ms)
{
    int64_t total_ms = 0, unit_ms = INT64_MAX;

    scan_blanks(s);
    if (*s->p == '-')
        return scan_fault(s, s->p, NULL, "a duration cannot be negative");
    do {
        const char *start = s->p;
        int64_t whole = 0, part = 0, scale = 1;
        if (!isdigit((unsigned char)*s->p))
            return scan_fault(s, s->p, "like 10m, 1h30m, 2d", "a number is missing");
        for (; isdigit((unsigned char)*s->p); s->p++)
            whole = whole <= WHEN_MAX_DURATION_MS ? whole * 10 + (*s->p - '0') : whole;
        if (*s->p == '.') {
            s->p++;
            if (scan_fraction(s, &part, &scale))
                return ERR_DATA;
        }
        scan_blanks(s);
        if (!*s->p && !whole && !part && unit_ms == INT64_MAX)
            break; /* "0" needs no unit */
        if (scan_unit(s, unit_ms, &unit_ms))
            return ERR_DATA;
        if (part * unit_ms % scale)
            return scan_fault(s, start, NULL, "finer than a millisecond");
        if (whole > WHEN_MAX_DURATION_MS / unit_ms ||
            (total_ms += whole * unit_ms + part * unit_ms / scale) > WHEN_MAX_DURATION_MS)
            return scan_fault(s, start, NULL, "longer than %d days",
                              (int)(WHEN_MAX_DURATION_MS / WHEN_DAY));
        scan_blanks(s);
    } while (*s->p);
    *ret_ms = total_ms;
    return 0;
}

int when_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
{
    struct scan s = {"duration", text, text, err};
    return scan_duration(&s, ret_ms);
}

/* ---- instants ---- */

static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
static const char *const weekday_names[] = {"sunday",   "monday", "tuesday", "wednesday",
                                            "thursday", "friday", "saturday"};
static const char instant_hint[] =
    "like \"+10m\", \"2026-11-21 09:00\", \"09:00\", \"tomorrow 09:00\", \"monday\", \"@1790000000\"";

/* The instants at which the local clock shows `local` (the instant at which UTC would), earliest
 * first. 1: ret[0] = ret[1]. 2: a clock set back shows it twice. 0: a clock set forward skips it;
 * ret is what it would be by the offsets before and after. */
static int local_readings(int64_t local, int64_t ret[2])
{
    /* No zone has ever been 16 hours away from UTC or changed twice within three days: at most one
     * change lies between. */
    int64_t before = when_local_offset(local - 16 * WHEN_HOUR),
            after = when_local_offset(local + 16 * WHEN_HOUR);
    int64_t by_before = local - before, by_after = local - after;

    if (before == after) {
        ret[0] = ret[1] = by_before;
        return 1;
    }
    bool holds_before = when_local_offset(by_before) == before,
         holds_after = when_local_offset(by_after) == after;
    if (holds_before != holds_after) {
        ret[0] = ret[1] = holds_before ? by_before : by_after;
        return 1;
    }
    ret[0] = before > after ? by_before : by_after;
    ret[1] = before > after ? by_after : by_before;
    return holds_before ? 2 : 0;
}

/* A decimal fraction of a second in ms, rounded up: a time given in microseconds must not come
 * early. */
static int scan_ms(struct scan *s, int64_t *ret_ms)
{
    int64_t part, scale;

    if (scan_fraction(s, &part, &scale))
        return ERR_DATA;
    *ret_ms = (part * 1000 + scale - 1) / scale;
    return 0;
}

static int scan_date(struct scan *s, int first_year, struct civil *c)
{
    const char *year = s->p, *month = year + 5, *day = year + 8;

    if (!scan_number(s, 4, false, &c->year) || *s->p != '-')
        return scan_fault(s, year, instant_hint, "no time begins");
    s->p++;
    if (!scan_number(s, 2, false, &c->month) || *s->p++ != '-' ||
        !scan_number(s, 2, false, &c->day))
        return scan_fault(s, year, NULL, "a date is written like 2026-11-21: malformed");
    if (c->year < first_year)
        return scan_fault(s, year, NULL, "years go from 1000 to 9999: wrong");
    if (c->month < 1 || c->month > 12)
        return scan_fault(s, month, NULL, "months go from 01 to 12: wrong");
    if (c->day < 1 || c->day > civil_days_in_month(c->year, c->month))
        return scan_fault(s, day, NULL, "%s %d has %d days: wrong", month_names[c->month - 1],
                          c->year, civil_days_in_month(c->year, c->month));
    return 0;
}

/* HH:MM[:SS[.fraction]]. *ret_ms: since midnight; the fraction may round up to the next second, or
 * day. */
static int scan_clock(struct scan *s, int64_t *ret_ms)
{
    int hour, minute, second = 0;
    int64_t ms = 0;
    const char *at = s->p;

    if (!scan_number(s, 2, true, &hour) || *s->p != ':')
        return scan_fault(s, at, "like 09:00", "a time of day is missing");
    if (hour > 23)
        return scan_fault(s, at, NULL, "hours go from 00 to 23: wrong");
    at = ++s->p;
    if (!scan_number(s, 2, false, &minute) || minute > 59)
        return scan_fault(s, at, NULL, "minutes go from 00 to 59: wrong");
    if (*s->p == ':') {
        at = ++s->p;
        if (!scan_number(s, 2, false, &second) || second > 59)
            return scan_fault(s, at, NULL, "seconds go from 00 to 59: wrong");
        if (*s->p == '.' || *s->p == ',') {
            s->p++;
            if (scan_ms(s, &ms))
                return ERR_DATA;
        }
    }
    *ret_ms = hour * WHEN_HOUR + minute * WHEN_MINUTE + second * WHEN_SECOND + ms;
    return 0;
}

/* Z, UTC, +HH:MM, +HHMM, +HH (and seconds, as old local times have them). *ret_given: there was
 * one. */
static int scan_offset(struct scan *s, bool *ret_given, int64_t *ret_offset)
{
    int part[3] = {0, 0, 0};
    const char *start = s->p;

    *ret_offset = 0;
    *ret_given = scan_word(s, "z") || scan_word(s, "utc");
    if (*ret_given || (*s->p != '+' && *s->p != '-'))
        return 0;
    s->p++;
    for (int i = 0; i < 3; i++) {
        if (i && *s->p == ':')
            s->p++;
        else if (i && !isdigit((unsigned char)*s->p))
            break;
        if (!scan_number(s, 2, false, &part[i]) || part[i] > (i ? 59 : 23))
            return scan_fault(s, start, "like +01:00", "malformed offset from UTC");
    }
    *ret_given = true;
    *ret_offset = part[0] * WHEN_HOUR + part[1] * WHEN_MINUTE + part[2] * WHEN_SECOND;
    if (*start == '-')
        *ret_offset = -*ret_offset;
    return 0;
}

/* The C library takes a zone that it does not find for UTC. What has digits may be a rule,
 * "CET-1CEST", and no file. */
static bool zone_is_known(const char *zone)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", zone && *zone == '/' ? "" : "/usr/share/zoneinfo/",
             zone ? zone : "");
    return !zone || strpbrk(zone, ":0123456789") || !strcmp(zone, "UTC") || getenv("TZDIR") ||
           access(path, R_OK) == 0;
}

/* Finds the instant at which the local clock shows `local`. step_days 0: on that very day; else the
 * first one after now among its repetitions every step_days days. */
static int resolve_local(const struct scan *s, int64_t local, int step_days, int64_t now_at,
                         int64_t *ret_at)
{
    int64_t reading[2];
    char first[WHEN_TEXT_SIZE], second[WHEN_TEXT_SIZE];
    int found = local_readings(local, reading);

    if (!zone_is_known(getenv("TZ")))
        return scan_fault(s, NULL, NULL,
                          "this host knows no time zone \"%s\" (TZ) and would take it for UTC",
                          getenv("TZ"));
    while (step_days && reading[1] <= now_at)
        found = local_readings(local += step_days * WHEN_DAY, reading);
    if (found == 1 || (found == 2 && step_days && reading[0] <= now_at)) {
        *ret_at = reading[1];
        return 0;
    }
    when_format_offset(first, reading[0]);
    when_format_offset(second, reading[1]);
    return scan_fault(s, NULL, NULL, "the local clock %s; write %s or %s",
                      found ? "is set back and shows this twice"
                            : "is set forward and never shows this",
                      first, second);
}

/* A word for a day. *ret_day: midnight of it as a UTC clock would have it; *ret_step_days: 7 for a
 * weekday, else 0. */
static int scan_day_word(struct scan *s, int64_t today, int64_t *ret_day, int *ret_step_days)
{
    static const char *const near[] = {"yesterday", "today", "tomorrow"};
    int weekday = (int)((today / WHEN_DAY % 7 + 7 + 4) % 7); /* 1970-01-01 was a Thursday */

    for (int i = 0; i < 3; i++) {
        if (scan_word(s, near[i])) {
            *ret_day = today + (i - 1) * WHEN_DAY;
            *ret_step_days = 0;
            return 0;
        }
    }
    for (int i = 0; i < 7; i++) {
        char brief[4] = {weekday_names[i][0], weekday_names[i][1], weekday_names[i][2], '\0'};
        if (scan_word(s, weekday_names[i]) || scan_word(s, brief)) {
            *ret_day = today + (i - weekday + 7) % 7 * WHEN_DAY;
            *ret_step_days = 7;
            return 0;
        }
    }
    return scan_fault(s, s->p, instant_hint, *s->p ? "no time begins" : "a time is missing");
}

static int scan_end(struct scan *s)
{
    scan_blanks(s);
    int n = scan_word_length(s->p);
    return *s->p ? scan_fault(s, s->p, NULL, "unexpected \"%.*s\"", n ? n : 1, s->p) : 0;
}

/* A date, with or without a time of day and an offset. */
static int scan_dated(struct scan *s, int64_t now_at, int64_t *ret_at)
{
    struct civil c = {0};
    int64_t clock = 0, offset;
    bool zoned = false;

    if (scan_date(s, 1000, &c))
        return ERR_DATA;
    const char *end = s->p;
    bool timed = *end == 'T' || *end == 't';
    if (timed)
        s->p++;
    else
        scan_blanks(s);
    if (timed || (s->p > end && isdigit((unsigned char)*s->p))) {
        if (scan_clock(s, &clock))
            return ERR_DATA;
        scan_blanks(s);
        if (scan_offset(s, &zoned, &offset))
            return ERR_DATA;
    }
    if (scan_end(s))
        return ERR_DATA;
    if (!zoned)
        return resolve_local(s, civil_to_days(&c) * WHEN_DAY + clock, 0, now_at, ret_at);
    *ret_at = civil_to_days(&c) * WHEN_DAY + clock - offset;
    return 0;
}

/* A word for a day, a time of day, or both. */
static int scan_relative_day(struct scan *s, int64_t now_at, int64_t *ret_at)
{
    int64_t day = civil_floor_div(now_at + when_local_offset(now_at), WHEN_DAY) * WHEN_DAY,
            clock = 0;
    int step_days = 1;
    bool named = !isdigit((unsigned char)*s->p);

    if (named && scan_day_word(s, day, &day, &step_days))
        return ERR_DATA;
    scan_blanks(s);
    if ((!named || isdigit((unsigned char)*s->p)) && scan_clock(s, &clock))
        return ERR_DATA;
    return scan_end(s) ? ERR_DATA : resolve_local(s, day + clock, step_days, now_at, ret_at);
}

/* Seconds since the epoch, behind the '@'. */
static int scan_epoch(struct scan *s, int64_t *ret_at)
{
    int64_t seconds = 0, ms = 0;
    bool negative = *s->p == '-';

    s->p += negative;
    if (!isdigit((unsigned char)*s->p))
        return scan_fault(s, s->p, "like @1790000000", "seconds since 1970 are missing");
    for (; isdigit((unsigned char)*s->p); s->p++)
        seconds = seconds < WHEN_AT_MAX ? seconds * 10 + (*s->p - '0') : seconds;
    if (*s->p == '.') {
        s->p++;
        if (scan_ms(s, &ms))
            return ERR_DATA;
    }
    /* Too many digits: out of range in any case, but without an overflow. */
    int64_t at = seconds < WHEN_AT_MAX ? seconds * WHEN_SECOND + ms : WHEN_AT_MAX + 1;
    *ret_at = negative ? -at : at;
    return scan_end(s);
}

int when_parse_instant(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
{
    struct scan s = {"time", text, text, err};
    int64_t at = now_at, delta = 0;
    int rc;

    scan_blanks(&s);
    size_t digits = strspn(s.p, "0123456789");
    if (*s.p == '+' || *s.p == '-') {
        bool back = *s.p++ == '-';
        rc = scan_duration(&s, &delta);
        at += back ? -delta : delta;
    } else if (*s.p == '@') {
        s.p++;
        rc = scan_epoch(&s, &at);
    } else if (scan_word(&s, "now")) {
        rc = scan_end(&s);
    } else if (digits && s.p[digits] != ':') {
        rc = scan_dated(&s, now_at, &at);
    } else {
        rc = scan_relative_day(&s, now_at, &at);
    }
    if (rc)
        return rc;
    if (at < WHEN_AT_MIN || at > WHEN_AT_MAX)
        return scan_fault(&s, NULL, NULL, "out of range: years go from 1000 to 9999");
    *ret_at = at;
    return 0;
}

int when_parse_sql(const char *text, int64_t *ret_at, struct err *err)
{
    struct scan s = {"time", text, text, NULL};
    struct civil c = {0};
    int64_t clock = 0;

    if (scan_date(&s, 0, &c) || *s.p++ != ' ' || scan_clock(&s, &clock) || *s.p)
        return err_set(err, ERR_FATAL, "the server sent an invalid time: \"%.40s\"", text);
    *ret_at = civil_to_days(&c) * WHEN_DAY + clock;
    return 0;
}
