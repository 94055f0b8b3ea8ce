/*
 * when.c - durations and instants.
 *
 * Invariant: what is read is exact or refused. Dates are computed here (days from civil), never by
 * mktime, timegm or strptime, which turn 31 February into 3 March, a skipped hour into another one,
 * and ignore trailing junk; the C library is only asked for the offset of the local zone at a given
 * instant.
 */
#include "base/when.h"
#include "base/scan.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AT_FIRST (INT64_C(-719528) * WHEN_DAY)   /* 0000-01-01T00:00:00.000Z */
#define AT_MIN (INT64_C(-354285) * WHEN_DAY)     /* 1000-01-01T00:00:00.000Z */
#define AT_MAX (INT64_C(2932897) * WHEN_DAY - 1) /* 9999-12-31T23:59:59.999Z */

/* ---- civil dates */

struct civil {
    int year, month, day, hour, minute, second, ms;
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar; years begin in March, so that leap
 * days come last. */
static int64_t days_from_civil(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t era = floor_div(y, 400), year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static void civil_from_days(int64_t days, struct civil *c)
{
    days += 719468;
    int64_t era = floor_div(days, 146097), day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */
    c->day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    c->month = (int)(month < 10 ? month + 3 : month - 9);
    c->year = (int)(year_of_era + era * 400 + (c->month <= 2));
}

static int days_in_month(int year, int month)
{
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 ? 28 + leap : 30 + (month + month / 8) % 2;
}

/* The instant at which a clock in UTC shows c. */
static int64_t civil_to_ms(const struct civil *c)
{
    return days_from_civil(c->year, c->month, c->day) * WHEN_DAY + c->hour * WHEN_HOUR +
           c->minute * WHEN_MINUTE + c->second * WHEN_SECOND + c->ms;
}

static void civil_from_ms(int64_t at, struct civil *c)
{
    int64_t days = floor_div(at, WHEN_DAY);
    int ms = (int)(at - days * WHEN_DAY);

    civil_from_days(days, c);
    c->hour = ms / (int)WHEN_HOUR;
    c->minute = ms / (int)WHEN_MINUTE % 60;
    c->second = ms / (int)WHEN_SECOND % 60;
    c->ms = ms % 1000;
}

/* ---- the local zone */

/* What the local clock is ahead of UTC at an instant, in ms. */
static int64_t local_offset(int64_t at)
{
    time_t seconds = (time_t)floor_div(at, WHEN_SECOND);
    struct tm tm;

    return localtime_r(&seconds, &tm) ? tm.tm_gmtoff * WHEN_SECOND : 0;
}

/* The instants at which the local clock shows `local` (the instant at which UTC would), earliest
 * first. 1: ret[0] = ret[1]. 2: a clock set back shows it twice. 0: a clock set forward skips it;
 * ret is what it would be by the offsets before and after. */
static int local_readings(int64_t local, int64_t ret[2])
{
    /* No zone has ever been 16 hours away from UTC or changed twice within three days: at most one
     * change lies between. */
    int64_t before = local_offset(local - 16 * WHEN_HOUR),
            after = local_offset(local + 16 * WHEN_HOUR);
    int64_t by_before = local - before, by_after = local - after;

    if (before == after) {
        ret[0] = ret[1] = by_before;
        return 1;
    }
    bool holds_before = local_offset(by_before) == before,
         holds_after = local_offset(by_after) == after;
    if (holds_before != holds_after) {
        ret[0] = ret[1] = holds_before ? by_before : by_after;
        return 1;
    }
    ret[0] = before > after ? by_before : by_after;
    ret[1] = before > after ? by_after : by_before;
    return holds_before ? 2 : 0;
}

/* The local clock with its offset, "2026-11-21T10:00:00.250+01:00". brief: no fraction where it is
 * zero. */
static char *format_zoned(char out[WHEN_TEXT_SIZE], int64_t at, char between,
                          const char *before_offset, bool brief)
{
    /* what a zone's first offset would make of it helps nobody */
    int64_t offset = at < AT_MIN ? 0 : local_offset(at);
    int away = (int)(llabs(offset) / WHEN_SECOND);
    char fraction[8] = "", seconds[8] = "";
    struct civil c;

    civil_from_ms(at + offset, &c);
    if (c.ms || !brief)
        snprintf(fraction, sizeof fraction, ".%03d", c.ms);
    if (away % 60) /* local mean time, before zones were agreed on */
        snprintf(seconds, sizeof seconds, ":%02d", away % 60);
    snprintf(out, WHEN_TEXT_SIZE, "%04d-%02d-%02d%c%02d:%02d:%02d%s%s%c%02d:%02d%s", c.year,
             c.month, c.day, between, c.hour, c.minute, c.second, fraction, before_offset,
             offset < 0 ? '-' : '+', away / 3600, away / 60 % 60, seconds);
    return out;
}

/* ---- durations */

int when_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
{
    struct scan s = {"duration", text, text, err};
    return scan_duration(&s, ret_ms);
}

char *when_format_duration(char out[WHEN_TEXT_SIZE], int64_t ms)
{
    static const struct {
        uint64_t ms;
        char name;
    } parts[] = {{WHEN_DAY, 'd'}, {WHEN_HOUR, 'h'}, {WHEN_MINUTE, 'm'}, {WHEN_SECOND, 's'}};
    uint64_t left = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    char *p = out;

    if (ms < 0)
        *p++ = '-';
    if (left && left < WHEN_SECOND) {
        sprintf(p, "%dms", (int)left);
        return out;
    }
    *p = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t n = left / parts[i].ms;
        left %= parts[i].ms;
        bool fraction = parts[i].ms == WHEN_SECOND && left;
        if (n || fraction)
            p += sprintf(p, "%llu", (unsigned long long)n);
        if (fraction) {
            p += sprintf(p, ".%03d", (int)left);
            while (p[-1] == '0')
                p--;
        }
        if (n || fraction)
            p += sprintf(p, "%c", parts[i].name);
    }
    return *out ? out : strcpy(out, "0s");
}

char *when_format_rough(char out[WHEN_TEXT_SIZE], int64_t ms)
{
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    /* Rounded so that the exact form has two parts at most. */
    int64_t grain = size < 10 * WHEN_SECOND ? (size < WHEN_SECOND ? 1 : 10)
                    : size < WHEN_MINUTE    ? 100
                    : size < WHEN_HOUR      ? WHEN_SECOND
                    : size < WHEN_DAY       ? WHEN_MINUTE
                                            : WHEN_HOUR;
    int64_t rest = ms % grain;

    ms -= rest;
    if (llabs(rest) * 2 >= grain && llabs(ms) < INT64_MAX - grain)
        ms += rest < 0 ? -grain : rest > 0 ? grain : 0;
    return when_format_duration(out, ms);
}

/* ---- instants */

static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
static const char *const weekday_names[] = {"sunday",   "monday", "tuesday", "wednesday",
                                            "thursday", "friday", "saturday"};
static const char instant_hint[] =
    "like \"+10m\", \"2026-11-21 09:00\", \"09:00\", \"tomorrow 09:00\", \"monday\", \"@1790000000\"";

/* A decimal fraction of a second in ms, rounded up: what is asked for by the microsecond must not
 * come early. */
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
    if (c->day < 1 || c->day > days_in_month(c->year, c->month))
        return scan_fault(s, day, NULL, "%s %d has %d days: wrong", month_names[c->month - 1],
                          c->year, days_in_month(c->year, c->month));
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
 * first one after now among the repetitions every so many days. */
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
    format_zoned(first, reading[0], 'T', "", true);
    format_zoned(second, reading[1], 'T', "", true);
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
        return resolve_local(s, civil_to_ms(&c) + clock, 0, now_at, ret_at);
    *ret_at = civil_to_ms(&c) + clock - offset;
    return 0;
}

/* A word for a day, a time of day, or both. */
static int scan_relative_day(struct scan *s, int64_t now_at, int64_t *ret_at)
{
    int64_t day = floor_div(now_at + local_offset(now_at), WHEN_DAY) * WHEN_DAY, clock = 0;
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
        seconds = seconds < AT_MAX ? seconds * 10 + (*s->p - '0') : seconds;
    if (*s->p == '.') {
        s->p++;
        if (scan_ms(s, &ms))
            return ERR_DATA;
    }
    /* Too many digits: out of range in any case, but without an overflow. */
    int64_t at = seconds < AT_MAX ? seconds * WHEN_SECOND + ms : AT_MAX + 1;
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
    if (at < AT_MIN || at > AT_MAX)
        return scan_fault(&s, NULL, NULL, "out of range: years go from 1000 to 9999");
    *ret_at = at;
    return 0;
}

char *when_format_utc(char out[WHEN_TEXT_SIZE], int64_t at)
{
    struct civil c;

    if (at < AT_FIRST || at > AT_MAX)
        return strcpy(out, "-");
    civil_from_ms(at, &c);
    snprintf(out, WHEN_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", c.year, c.month, c.day,
             c.hour, c.minute, c.second, c.ms);
    return out;
}

char *when_format_local(char out[WHEN_TEXT_SIZE], int64_t at)
{
    return at < AT_FIRST || at > AT_MAX ? strcpy(out, "-") : format_zoned(out, at, ' ', " ", false);
}

char *when_format_sql(char out[WHEN_TEXT_SIZE], int64_t at)
{
    char *t = strchr(when_format_utc(out, at), 'T'), *z = strchr(out, 'Z');

    if (t && z) {
        *t = ' ';
        *z = '\0';
    }
    return out;
}

int when_parse_sql(const char *text, int64_t *ret_at, struct err *err)
{
    struct scan s = {"time", text, text, NULL};
    struct civil c = {0};
    int64_t clock = 0;

    if (scan_date(&s, 0, &c) || *s.p++ != ' ' || scan_clock(&s, &clock) || *s.p)
        return err_set(err, ERR_FATAL, "the server sent an invalid time: \"%.40s\"", text);
    *ret_at = civil_to_ms(&c) + clock;
    return 0;
}

/* ---- clocks */

static int64_t clock_us(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t when_host_wall(void)
{
    return clock_us(CLOCK_REALTIME) / 1000;
}

int64_t when_steady(void)
{
    return when_steady_us() / 1000;
}

int64_t when_steady_us(void)
{
    return clock_us(CLOCK_BOOTTIME);
}
