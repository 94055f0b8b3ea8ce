/*
 * zone_rule.c - see zone_rule.h. Invariant: every number of a rule is in its range.
 */
#include "base/zone_rule.h"

#include "base/civil.h"
#include "base/when.h"

#include <ctype.h>
#include <string.h>
#include <sys/param.h>

static bool take_number(const char **p, int most, int *ret)
{
    int n = 0;

    if (!isdigit((unsigned char)**p))
        return false;
    for (; isdigit((unsigned char)**p) && n <= most; (*p)++)
        n = n * 10 + (**p - '0');
    *ret = n;
    return n <= most;
}

/* "CET" or "<+0330>". */
static bool take_name(const char **p)
{
    const char *start = *p;

    if (*start == '<') {
        const char *end = strchr(start, '>');
        *p = end ? end + 1 : start;
        return end;
    }
    while (isalpha((unsigned char)**p))
        (*p)++;
    return *p - start >= 3;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(const char **p, int most_hours, int64_t *ret_ms)
{
    int hours, minutes = 0, seconds = 0;
    bool negative = **p == '-';

    *p += negative || **p == '+';
    if (!take_number(p, most_hours, &hours))
        return false;
    if (**p == ':' && ((*p)++, !take_number(p, 59, &minutes)))
        return false;
    if (**p == ':' && ((*p)++, !take_number(p, 59, &seconds)))
        return false;
    int64_t ms = hours * WHEN_HOUR + minutes * WHEN_MINUTE + seconds * WHEN_SECOND;
    *ret_ms = negative ? -ms : ms;
    return true;
}

static bool take_point(const char **p)
{
    bool point = **p == '.';
    *p += point;
    return point;
}

static bool take_day(const char **p, struct zone_rule_change *c)
{
    c->kind = **p == 'M' || **p == 'J' ? **p : '0';
    *p += c->kind != '0';
    if (c->kind != 'M')
        return take_number(p, 365, &c->day) && (c->kind == '0' || c->day > 0);
    return take_number(p, 12, &c->month) && take_point(p) && take_number(p, 5, &c->week) &&
           take_point(p) && take_number(p, 6, &c->day) && c->month > 0 && c->week > 0;
}

static bool take_change(const char **p, struct zone_rule_change *c)
{
    c->time_ms = 2 * WHEN_HOUR;
    if (*(*p)++ != ',' || !take_day(p, c))
        return false;
    if (**p != '/')
        return true;
    (*p)++;
    return take_time(p, 167, &c->time_ms);
}

/* POSIX counts offsets westwards. */
bool zone_rule_parse(const char *text, struct zone_rule *ret)
{
    const char *p = text;
    int64_t west;

    *ret = (struct zone_rule){0};
    if (!take_name(&p) || !take_time(&p, 24, &west))
        return false;
    ret->standard_ms = -west;
    if (!*p)
        return true;
    ret->changes = true;
    ret->summer_ms = ret->standard_ms + WHEN_HOUR;
    if (!take_name(&p))
        return false;
    if (*p && *p != ',') {
        if (!take_time(&p, 24, &west))
            return false;
        ret->summer_ms = -west;
    }
    return take_change(&p, &ret->begin) && take_change(&p, &ret->end) && !*p;
}

/* The day of a change in a year, since 1970. */
static int64_t change_day(const struct zone_rule_change *c, int year)
{
    struct civil first = {.year = year, .month = c->kind == 'M' ? c->month : 1, .day = 1};
    int64_t days = civil_to_days(&first);

    if (c->kind != 'M') {
        bool after_leap_day = c->kind == 'J' && c->day >= 60 && civil_days_in_month(year, 2) == 29;
        return days + c->day - (c->kind == 'J') + after_leap_day;
    }
    int day = (c->day - civil_weekday(days) + 7) % 7 + (c->week - 1) * 7;
    return days + (day < civil_days_in_month(year, c->month) ? day : day - 7);
}

static int64_t begin_at(const struct zone_rule *r, int year)
{
    return change_day(&r->begin, year) * WHEN_DAY + r->begin.time_ms - r->standard_ms;
}

static int64_t end_at(const struct zone_rule *r, int year)
{
    return change_day(&r->end, year) * WHEN_DAY + r->end.time_ms - r->summer_ms;
}

int64_t zone_rule_offset(const struct zone_rule *r, int64_t at)
{
    if (!r->changes)
        return r->standard_ms;
    int year = civil_from_days(civil_floor_div(at + r->standard_ms, WHEN_DAY)).year;
    int64_t begin = begin_at(r, year), end = end_at(r, year);
    bool summer = begin < end ? at >= begin && at < end : at >= begin || at < end;
    return summer ? r->summer_ms : r->standard_ms;
}

int64_t zone_rule_next_change(const struct zone_rule *r, int64_t at)
{
    int year = civil_from_days(civil_floor_div(at, WHEN_DAY)).year;
    int64_t next = INT64_MAX;

    for (int i = 0; r->changes && i < 6; i++) { /* both of three years: any order of them will do */
        int64_t change = i % 2 ? end_at(r, year + i / 2 - 1) : begin_at(r, year + i / 2 - 1);
        if (change > at)
            next = MIN(next, change);
    }
    return next;
}
