/*
 * when.c - see when.h. Invariant: what is written here is read by when_parse.c as the same duration
 * or instant, unless it was to be rounded. The C library is only asked for the offset of the local
 * zone at a given instant.
 */
#include "base/when.h"

#include "base/civil.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AT_FIRST (INT64_C(-719528) * WHEN_DAY) /* 0000-01-01T00:00:00.000Z */

/* what a clock and a calendar show */
struct clock {
    struct civil date;
    int hour, minute, second, ms;
};

static void clock_from_ms(int64_t at, struct clock *c)
{
    int64_t days = civil_floor_div(at, WHEN_DAY);
    int ms = (int)(at - days * WHEN_DAY);

    c->date = civil_from_days(days);
    c->hour = ms / (int)WHEN_HOUR;
    c->minute = ms / (int)WHEN_MINUTE % 60;
    c->second = ms / (int)WHEN_SECOND % 60;
    c->ms = ms % 1000;
}

int64_t when_local_offset(int64_t at)
{
    time_t seconds = (time_t)civil_floor_div(at, WHEN_SECOND);
    struct tm tm;

    return localtime_r(&seconds, &tm) ? tm.tm_gmtoff * WHEN_SECOND : 0;
}

/* ---- durations ---- */

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

/* ---- instants ---- */

/* A clock that is ahead of UTC by that offset. brief: without a fraction that is zero. */
static char *format_zoned(char out[WHEN_TEXT_SIZE], int64_t at, int64_t offset, char between,
                          const char *before_offset, bool brief)
{
    int away = (int)(llabs(offset) / WHEN_SECOND);
    char fraction[8] = "", seconds[8] = "";
    struct clock c;

    clock_from_ms(at + offset, &c);
    if (c.ms || !brief)
        snprintf(fraction, sizeof fraction, ".%03d", c.ms);
    if (away % 60) /* local mean time, before zones were agreed on */
        snprintf(seconds, sizeof seconds, ":%02d", away % 60);
    snprintf(out, WHEN_TEXT_SIZE, "%04d-%02d-%02d%c%02d:%02d:%02d%s%s%c%02d:%02d%s", c.date.year,
             c.date.month, c.date.day, between, c.hour, c.minute, c.second, fraction, before_offset,
             offset < 0 ? '-' : '+', away / 3600, away / 60 % 60, seconds);
    return out;
}

char *when_format_utc(char out[WHEN_TEXT_SIZE], int64_t at)
{
    struct clock c;

    if (at < AT_FIRST || at > WHEN_AT_MAX)
        return strcpy(out, "-");
    clock_from_ms(at, &c);
    snprintf(out, WHEN_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", c.date.year, c.date.month,
             c.date.day, c.hour, c.minute, c.second, c.ms);
    return out;
}

char *when_format_local(char out[WHEN_TEXT_SIZE], int64_t at)
{
    /* nobody is helped by what a zone's first offset makes of a date so old */
    int64_t offset = at < WHEN_AT_MIN ? 0 : when_local_offset(at);

    return at < AT_FIRST || at > WHEN_AT_MAX ? strcpy(out, "-")
                                             : format_zoned(out, at, offset, ' ', " ", false);
}

char *when_format_ahead(char out[WHEN_TEXT_SIZE], int64_t at, int64_t offset_ms)
{
    return format_zoned(out, at, offset_ms, 'T', "", true);
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

/* ---- clocks ---- */

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
