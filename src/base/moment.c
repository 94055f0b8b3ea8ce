/*
 * moment.c - see moment.h.
 *
 * Invariant: a text is read exactly or refused, and what people read in different ways is refused.
 * Dates are computed by civil.c, never by mktime, timegm or strptime, which turn 31 February into 3
 * March, a skipped hour into another one, and ignore trailing junk.
 */
#include "base/moment.h"

#include "base/duration.h"
#include "base/when.h"
#include "base/zone.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char instant_hint[] =
    "like \"+10m\", \"2026-11-21 09:00\", \"5pm\", \"tomorrow 09:00\", \"monday\", \"@1790000000\"";
#define EVENING (17 * WHEN_HOUR) /* tonight is from then on */
static const char clock_hint[] = "like 09:00, 5pm or noon";
static const char zone_hint[] = "like Europe/Berlin, UTC or +01:00";

static int scan_end(struct scan *s)
{
    scan_blanks(s);
    int n = scan_word_length(s->p);
    return *s->p ? scan_fault(s, s->p, NULL, "unexpected \"%.*s\"", n ? n : 1, s->p) : 0;
}

/* ---- parts: dates, times of day, zones */

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

/* The parts of a date, each read at that place. */
static int check_date(struct scan *s, const struct civil *c, const char *month, const char *day)
{
    if (c->month < 1 || c->month > 12)
        return scan_fault(s, month, NULL, "months go from 01 to 12");
    if (c->day < 1 || c->day > civil_days_in_month(c->year, c->month))
        return scan_fault(s, day, NULL, "%s %d has %d days", civil_month_names[c->month - 1],
                          c->year, civil_days_in_month(c->year, c->month));
    return 0;
}

int moment_scan_date(struct scan *s, int first_year, struct civil *c)
{
    const char *year = s->p;

    if (!scan_number(s, 4, false, &c->year) || *s->p != '-')
        return scan_fault(s, year, instant_hint, "no time begins");
    s->p++;
    if (!scan_number(s, 2, false, &c->month) || *s->p++ != '-' ||
        !scan_number(s, 2, false, &c->day))
        return scan_fault(s, year, NULL, "a date is written like 2026-11-21");
    if (c->year < first_year)
        return scan_fault(s, year, NULL, "years go from 1000 to 9999");
    return check_date(s, c, year + 5, year + 8);
}

int moment_scan_clock(struct scan *s, int64_t *ret_ms)
{
    int hour, minute, second = 0;
    int64_t ms = 0;
    const char *at = s->p;

    if (!scan_number(s, 2, true, &hour) || *s->p != ':')
        return scan_fault(s, at, clock_hint, "a time of day is missing");
    if (hour > 23)
        return scan_fault(s, at, NULL, "hours go from 00 to 23");
    at = ++s->p;
    if (!scan_number(s, 2, false, &minute) || minute > 59)
        return scan_fault(s, at, NULL, "minutes go from 00 to 59");
    if (*s->p == ':') {
        at = ++s->p;
        if (!scan_number(s, 2, false, &second) || second > 59)
            return scan_fault(s, at, NULL, "seconds go from 00 to 59");
        if (*s->p == '.' || *s->p == ',') {
            s->p++;
            if (scan_ms(s, &ms))
                return ERR_DATA;
        }
    }
    *ret_ms = hour * WHEN_HOUR + minute * WHEN_MINUTE + second * WHEN_SECOND + ms;
    return 0;
}

/* Skips "am" or "pm" behind a number, after blanks or at once. */
static bool scan_half(struct scan *s, bool *ret_pm)
{
    const char *p = s->p + strspn(s->p, " \t");
    struct scan ahead = {s->what, s->text, p, s->err};

    *ret_pm = scan_word(&ahead, "pm");
    if (!*ret_pm && !scan_word(&ahead, "am"))
        return false;
    s->p = ahead.p;
    return true;
}

/* An hour with am or pm, or a clock with or without. */
static int scan_hours(struct scan *s, int64_t *ret_ms)
{
    const char *at = s->p;
    int hour;
    bool pm, alone;

    if (!scan_number(s, 2, true, &hour) || isdigit((unsigned char)*s->p))
        return scan_fault(s, at, clock_hint, "a time of day is missing");
    alone = *s->p != ':';
    *ret_ms = hour * WHEN_HOUR;
    if (!alone) {
        s->p = at;
        if (moment_scan_clock(s, ret_ms))
            return ERR_DATA;
    }
    if (!scan_half(s, &pm))
        return alone ? scan_fault(s, at, clock_hint, "a time of day is missing") : 0;
    if (hour < 1 || hour > 12)
        return scan_fault(s, at, NULL, "hours go from 1 to 12 before am and pm");
    if (*ret_ms == 12 * WHEN_HOUR)
        return scan_fault(s, at, "write noon, midnight, 12:00 or 00:00",
                          "12am and 12pm mean noon to some and midnight to others");
    if (hour == 12)
        *ret_ms -= 12 * WHEN_HOUR;
    if (pm)
        *ret_ms += 12 * WHEN_HOUR;
    return 0;
}

/* A time of day, if one follows. */
static int scan_time_of_day(struct scan *s, bool *ret_given, int64_t *ret_ms)
{
    bool noon = scan_word(s, "noon");

    bool clock = !noon && isdigit((unsigned char)*s->p);

    *ret_given = noon || clock || scan_word(s, "midnight");
    *ret_ms = noon ? 12 * WHEN_HOUR : 0;
    return clock ? scan_hours(s, ret_ms) : 0;
}

/* A day with the word midnight at `word`. */
static int check_midnight(const struct scan *s, const char *word, int64_t ms)
{
    if (isdigit((unsigned char)*word) || ms)
        return 0;
    return scan_fault(s, word, "write 00:00 of the day that begins then",
                      "a day begins and ends with a midnight");
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

static bool is_abbreviation(const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isupper((unsigned char)word[i]))
            return false;
    return len >= 2 && len <= 5;
}

/* An offset from UTC or the name of a zone, if one follows. */
static int scan_zone(struct scan *s, struct moment *m)
{
    scan_blanks(s);
    if (scan_offset(s, &m->has_offset, &m->offset_ms))
        return ERR_DATA;
    size_t len = strcspn(s->p, " \t");
    if (m->has_offset || !isalpha((unsigned char)*s->p))
        return 0;
    if (memchr(s->p, '/', len)) {
        m->zone = zone_new(s->p, len);
        if (!m->zone)
            return scan_fault(s, s->p, zone_hint, "this host has no such time zone");
        s->p += len;
    } else if (is_abbreviation(s->p, len)) {
        return scan_fault(s, s->p, zone_hint, "abbreviations of time zones have several meanings");
    }
    return 0;
}

/* ---- whole texts */

/* "at" before a time of day. */
static int scan_at(struct scan *s)
{
    if (!scan_word(s, "at"))
        return 0;
    scan_blanks(s);
    return isdigit((unsigned char)*s->p) || isalpha((unsigned char)*s->p)
               ? 0
               : scan_fault(s, s->p, clock_hint, "a time of day is missing");
}

/* Behind a date: a time of day and a zone, if they follow. */
static int scan_clock_behind(struct scan *s, struct moment *m)
{
    bool timed = false;

    if (*s->p != ' ' && *s->p != '\t')
        return 0;
    scan_blanks(s);
    if (scan_at(s))
        return ERR_DATA;
    const char *clock = s->p;
    if (scan_time_of_day(s, &timed, &m->ms) || (timed && check_midnight(s, clock, m->ms)))
        return ERR_DATA;
    return timed ? scan_zone(s, m) : 0;
}

/* A date, with or without a time of day and a zone. */
static int scan_dated(struct scan *s, struct moment *m)
{
    m->kind = MOMENT_DATE;
    if (moment_scan_date(s, 1000, &m->date))
        return ERR_DATA;
    if (*s->p != 'T' && *s->p != 't')
        return scan_clock_behind(s, m);
    s->p++;
    return moment_scan_clock(s, &m->ms) ? ERR_DATA : scan_zone(s, m);
}

/* 20261121T0900[00], as calendars write it, with a zone. */
static int scan_compact(struct scan *s, struct moment *m)
{
    const char *year = s->p;
    int hour, minute, second = 0;

    m->kind = MOMENT_DATE;
    if (!scan_number(s, 4, false, &m->date.year) || !scan_number(s, 2, false, &m->date.month) ||
        !scan_number(s, 2, false, &m->date.day) || m->date.year < 1000)
        return scan_fault(s, year, NULL, "years go from 1000 to 9999");
    const char *clock = ++s->p;
    if (check_date(s, &m->date, year + 4, year + 6))
        return ERR_DATA;
    if (!scan_number(s, 2, false, &hour) || !scan_number(s, 2, false, &minute) ||
        (isdigit((unsigned char)*s->p) && !scan_number(s, 2, false, &second)) || hour > 23 ||
        minute > 59 || second > 59)
        return scan_fault(s, clock, "like 20261121T090000Z", "malformed time of day");
    m->ms = hour * WHEN_HOUR + minute * WHEN_MINUTE + second * WHEN_SECOND;
    return scan_zone(s, m);
}

/* The number of the name at the cursor, behind which that is then: the whole word, or its first
 * three letters. -1: it is none of them. */
static int scan_name(struct scan *s, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        char brief[4] = {names[i][0], names[i][1], names[i][2], '\0'};
        if (scan_word(s, names[i]) || scan_word(s, brief))
            return i;
    }
    return -1;
}

/* "24 Dec 2026", with or without a time of day and a zone. *ret_given false: nothing was read. */
static int scan_named_month(struct scan *s, bool *ret_given, struct moment *m)
{
    const char *day = s->p;

    *ret_given = scan_number(s, 2, true, &m->date.day) && (scan_blanks(s), true) &&
                 (m->date.month = scan_name(s, civil_month_names, 12) + 1) > 0;
    if (!*ret_given) {
        s->p = day;
        return 0;
    }
    m->kind = MOMENT_DATE;
    scan_blanks(s);
    const char *year = s->p;
    if (!scan_number(s, 4, false, &m->date.year) || m->date.year < 1000)
        return scan_fault(s, year, "like 24 Dec 2026", "a year is missing");
    return check_date(s, &m->date, day, day) ? ERR_DATA : scan_clock_behind(s, m);
}

/* Words for a day, if they follow. */
static int scan_day_words(struct scan *s, bool *ret_given, struct moment *m)
{
    static const char *const near[] = {"yesterday", "today", "tomorrow"};
    const char *tonight = s->p;

    *ret_given = true;
    for (int i = 0; i < 3; i++) {
        if (scan_word(s, near[i])) {
            m->kind = MOMENT_NEAR;
            m->number = i - 1;
            return 0;
        }
    }
    if (scan_word(s, "tonight")) {
        m->kind = MOMENT_NEAR;
        m->number = 0;
        m->tonight = tonight;
        return 0;
    }
    if (scan_word(s, "next")) {
        scan_blanks(s);
        m->kind = MOMENT_NEXT;
        m->number = scan_name(s, civil_weekday_names, 7);
        return m->number >= 0 ? 0
                              : scan_fault(s, s->p, "like \"next monday 09:00\"",
                                           "a day of the week is missing");
    }
    m->kind = MOMENT_WEEKDAY;
    m->number = scan_name(s, civil_weekday_names, 7);
    *ret_given = m->number >= 0;
    return 0;
}

/* A time of day, words for a day, or both in any order; then a zone. */
static int scan_clock_and_day(struct scan *s, struct moment *m)
{
    bool timed = false, named = false;

    if (scan_day_words(s, &named, m))
        return ERR_DATA;
    scan_blanks(s);
    if (named && scan_at(s))
        return ERR_DATA;
    const char *clock = s->p;
    if (scan_time_of_day(s, &timed, &m->ms))
        return ERR_DATA;
    if (!named && !timed)
        return scan_fault(s, s->p, instant_hint, *s->p ? "no time begins" : "a time is missing");
    scan_blanks(s);
    if (!named && scan_day_words(s, &named, m))
        return ERR_DATA;
    if (named && timed && check_midnight(s, clock, m->ms))
        return ERR_DATA;
    if (m->tonight && m->ms < EVENING)
        return scan_fault(s, m->tonight, "like \"tonight 11pm\"", "tonight is from 5pm on");
    if (!named)
        m->kind = MOMENT_CLOCK;
    return timed ? scan_zone(s, m) : 0;
}

/* "+10m", behind the sign. */
static int scan_distance(struct scan *s, bool back, struct moment *m)
{
    m->kind = MOMENT_FROM_NOW;
    if (duration_scan(s, &m->ms, NULL))
        return ERR_DATA;
    if (back)
        m->ms = -m->ms;
    return 0;
}

static int scan_now(struct scan *s, struct moment *m)
{
    m->kind = MOMENT_FROM_NOW;
    m->ms = 0;
    scan_blanks(s);
    if (*s->p != '+' && *s->p != '-')
        return 0;
    s->p++;
    return scan_distance(s, s->p[-1] == '-', m);
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
    return 0;
}

/* "10m ago", and for what has happened "10m". *ret_given false: it is no duration. */
static int scan_ago(struct scan *s, bool *ret_given, struct moment *m)
{
    struct err none;
    struct scan copy = {s->what, s->text, s->p, &none};
    bool ago;
    int64_t ms;

    *ret_given = duration_scan(&copy, &ms, &ago) == 0;
    if (!*ret_given)
        return 0;
    if (!ago && !m->past)
        return scan_fault(s, NULL, "+10m is ten minutes from now",
                          "this is a duration, not a time");
    m->kind = MOMENT_FROM_NOW;
    m->ms = -ms;
    s->p = copy.p;
    return 0;
}

static int scan_digits(struct scan *s, struct moment *m)
{
    size_t digits = strspn(s->p, "0123456789");
    struct scan behind = {s->what, s->text, s->p + digits, s->err};
    bool pm, given;

    if (*behind.p == ':' || scan_half(&behind, &pm))
        return scan_clock_and_day(s, m);
    if (digits == 8 && (*behind.p == 'T' || *behind.p == 't'))
        return scan_compact(s, m);
    if (digits > 8 && !*behind.p)
        return scan_fault(s, NULL, NULL, "seconds since 1970 are written @%s", s->p);
    int rc = scan_ago(s, &given, m);
    if (rc == 0 && !given)
        rc = scan_named_month(s, &given, m);
    return rc == 0 && !given ? scan_dated(s, m) : rc;
}

int moment_scan(struct scan *s, bool past, struct moment *ret)
{
    bool given = false;
    int rc;

    *ret = (struct moment){.kind = MOMENT_AT, .past = past};
    scan_blanks(s);
    if (*s->p == '+' || *s->p == '-') {
        s->p++;
        rc = scan_distance(s, s->p[-1] == '-', ret);
    } else if (*s->p == '@') {
        s->p++;
        rc = scan_epoch(s, &ret->ms);
    } else if (scan_word(s, "in")) {
        rc = scan_distance(s, false, ret);
    } else if (!strncasecmp(s->p, "now", 3) && (!s->p[3] || strchr(" \t+-", s->p[3]))) {
        s->p += 3;
        rc = scan_now(s, ret);
    } else if (isdigit((unsigned char)*s->p)) {
        rc = scan_digits(s, ret);
    } else {
        rc = scan_ago(s, &given, ret); /* "an hour ago" */
        if (rc == 0 && !given)
            rc = scan_clock_and_day(s, ret);
    }
    return rc ? rc : scan_end(s);
}

void moment_done(struct moment *m)
{
    zone_free(m->zone);
    m->zone = NULL;
}
