/*
 * cron.c - see cron.h. Invariant: what is parsed has a time within each five years of the Julian
 * cycle, so a search ends.
 */
#include "base/cron.h"

#include "base/civil.h"
#include "base/scan.h"
#include "base/text.h"
#include "base/when.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>

#define BLANKS " \t"
#define CYCLE_YEARS 28 /* after which weekdays and leap years repeat, but for 2100 */
#define RARE_MS (1827 * WHEN_DAY)
#define ALL(low, high) ((UINT64_C(2) << (high)) - (UINT64_C(1) << (low)))

static const struct field {
    const char *name;
    int low, high;
    const char *values, *hint; /* names of the values, each of three letters, the first for low */
} fields[CRON_FIELDS] = {
    {"minute", 0, 59, "", "0 to 59"},
    {"hour", 0, 23, "", "0 to 23"},
    {"day of month", 1, 31, "", "1 to 31, or L for the last one"},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", "1 to 12, or jan to dec"},
    {"day of week", 0, 7, "sunmontuewedthufrisat", "0 to 7, or sun to sat"},
};
static const char five_fields[] = "minute, hour, day of month, month, day of week";

static const struct {
    const char *name, *text;
} shorthands[] = {{"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
                  {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
                  {"@annually", "0 0 1 1 *"}};
#define SHORTHANDS (sizeof shorthands / sizeof *shorthands)

/* ---- reading */

/* Reads digits, if there are any; 1000 stands for all larger numbers. */
static int scan_digits(struct scan *s)
{
    int n = 0;

    for (; isdigit((unsigned char)*s->p); s->p++)
        n = MIN(n * 10 + (*s->p - '0'), 1000);
    return n;
}

static int scan_value(struct scan *s, const struct field *f, int *ret)
{
    const char *start = s->p;
    int len = (int)strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    *ret = scan_digits(s);
    if (s->p > start && *ret >= f->low && *ret <= f->high)
        return 0;
    if (s->p > start)
        return scan_fault(s, start, f->hint, "%s %.*s is out of range", f->name,
                          (int)MIN(s->p - start, 20), start);
    for (const char *v = f->values; len == 3 && *v; v += 3)
        if (!strncasecmp(v, start, 3)) {
            *ret = f->low + (int)(v - f->values) / 3;
            s->p += 3;
            return 0;
        }
    if (!*start || strchr(BLANKS ",", *start))
        return scan_fault(s, start, f->hint, "%s: a value is missing", f->name);
    len = len ? len : (int)strcspn(start, BLANKS);
    return scan_fault(s, start, f->hint, "%s: unknown \"%.*s\"", f->name, MIN(len, 20), start);
}

static int scan_step(struct scan *s, const struct field *f, int *ret)
{
    const char *start = ++s->p;
    int most = f->high - f->low + 1;

    *ret = scan_digits(s);
    if (*ret > 0 && *ret <= most)
        return 0;
    scan_fault(s, start, *ret ? "a longer distance is written --every 90m" : NULL,
               "%s: a step goes from 1 to %d", f->name, most);
    return *ret ? ERR_STATE : ERR_DATA;
}

/* A value, a range or "*", with a step; of days, L. */
static int scan_item(struct scan *s, const struct field *f, uint64_t *bits)
{
    const char *start = s->p;
    int low = f->low, high = f->high, step = 1;
    bool star = *start == '*', range = star;
    int rc;

    if (f == &fields[CRON_DAY] && strspn(start, "Ll") == 1 && strcspn(start, BLANKS ",") == 1) {
        s->p++;
        *bits |= UINT64_C(1) << CRON_LAST_DAY;
        return 0;
    }
    if (star) {
        s->p++;
    } else {
        if (scan_value(s, f, &low))
            return ERR_DATA;
        high = low;
        range = *s->p == '-';
        if (range && (s->p++, scan_value(s, f, &high)))
            return ERR_DATA;
    }
    if (high < low) {
        scan_fault(s, start,
                   f == &fields[CRON_WEEKDAY] ? "Sunday at its end is 7" : "like 22-23,0-2",
                   "%s: a range goes from small to large", f->name);
        return ERR_STATE;
    }
    if (*s->p == '/' && !range)
        return scan_fault(s, s->p, "like 8-18/2 or */2", "%s: a step needs a range", f->name);
    if (*s->p == '/' && (rc = scan_step(s, f, &step)))
        return rc;
    for (int i = low; i <= high; i += step)
        *bits |= UINT64_C(1) << (i & 63); /* it is below: the analyzer does not see that */
    return 0;
}

static int scan_field(struct scan *s, const struct field *f, uint64_t *ret)
{
    int rc;

    while ((rc = scan_item(s, f, ret)) == 0)
        if (!*s->p || strchr(BLANKS, *s->p)) {
            return 0;
        } else if (*s->p++ != ',') {
            scan_fault(s, s->p - 1, s->p[-1] == '~' ? "a random time is written --spread" : f->hint,
                       "%s: unexpected \"%.*s\"", f->name, MAX(scan_word_length(s->p - 1), 1),
                       s->p - 1);
            return isalnum((unsigned char)s->p[-1]) && s->p[-2] != '*' ? ERR_DATA : ERR_STATE;
        }
    return rc;
}

/* Sets s to the expression that an "@" stands for. */
static int expand(struct scan *s)
{
    const char *names[SHORTHANDS], *nearest;
    size_t len = strcspn(s->p, BLANKS);
    bool alone = !s->p[len + strspn(s->p + len, BLANKS)];

    for (size_t i = 0; i < SHORTHANDS; i++) {
        names[i] = shorthands[i].name;
        if (alone && strlen(names[i]) == len && !strncmp(s->p, names[i], len)) {
            s->text = s->p = shorthands[i].text;
            return 0;
        }
    }
    if (!strncmp(s->p, "@reboot", 7)) {
        scan_fault(s, NULL, NULL,
                   "a schedule belongs to no host that could start; leave this to its crontab");
        return ERR_STATE;
    }
    if (!strncmp(s->p, "@every", 6))
        return scan_fault(s, NULL, NULL, "a distance is written --every 10m");
    nearest = text_nearest(s->p, names, SHORTHANDS);
    return scan_fault(s, NULL, NULL, "unknown name, %s%s", nearest ? "did you mean " : "use ",
                      nearest ? nearest : "@hourly, @daily, @weekly, @monthly or @yearly");
}

static int check_count(const struct scan *s)
{
    size_t count = 0;

    for (const char *p = s->p; *p; p += strspn(p, BLANKS), count++)
        p += strcspn(p, BLANKS);
    if (count == CRON_FIELDS)
        return 0;
    if (count == 6)
        return scan_fault(s, NULL, "for seconds, use --every 30s", "six fields; there are five: %s",
                          five_fields);
    return scan_fault(s, NULL, five_fields, "%zu fields instead of five", count);
}

static int check_rare(const struct scan *s, const struct cron *c)
{
    bool ever = false, rare = false;

    for (int year = 2001; year < 2001 + CYCLE_YEARS; year++) {
        int64_t start = civil_to_days(&(struct civil){year, 1, 1}) * WHEN_DAY, next = 0;
        bool found = cron_next(c, start, &next);
        ever |= found;
        rare |= !found || next - start > RARE_MS;
    }
    if (!rare)
        return 0;
    scan_fault(s, NULL, NULL,
               ever ? "such a day can be more than five years away"
                    : "this never comes: its months have no such day");
    return ERR_STATE;
}

int cron_parse(const char *text, struct cron *ret, struct err *err)
{
    struct scan s = {"cron", text, text, err}, whole = s;
    struct cron c = {{0}, true, false};
    int rc = 0;

    scan_blanks(&s);
    if ((*s.p == '@' && (rc = expand(&s))) || (rc = check_count(&s)))
        return rc;
    for (int i = 0; i < CRON_FIELDS; i++) {
        c.either &= *s.p != '*' || (i != CRON_DAY && i != CRON_WEEKDAY);
        c.elapsed |= *s.p == '*' && i <= CRON_HOUR;
        if ((rc = scan_field(&s, &fields[i], &c.bits[i])))
            return rc;
        scan_blanks(&s);
    }
    c.bits[CRON_WEEKDAY] = (c.bits[CRON_WEEKDAY] | c.bits[CRON_WEEKDAY] >> 7) & 127;
    if ((rc = check_rare(&whole, &c)) == 0)
        *ret = c;
    return rc;
}

/* ---- times */

static int lowest(uint64_t bits)
{
    return __builtin_ctzll(bits);
}

/* The days of a month that match, as bits; its first day is days since 1970. */
static uint64_t days_of(const struct cron *c, int year, int month, int64_t first_day)
{
    int count = civil_days_in_month(year, month);
    int weekday = civil_weekday(first_day);
    uint64_t dates = c->bits[CRON_DAY], weeks = 0;

    dates |= (dates >> CRON_LAST_DAY & 1) << count;
    if (!(c->bits[CRON_MONTH] >> month & 1))
        return 0;
    for (int i = 0; i < 6; i++)
        weeks |= c->bits[CRON_WEEKDAY] << 7 * i;
    weeks = weeks >> weekday << 1;
    return (c->either ? dates | weeks : dates & weeks) & ALL(1, count);
}

/* The first minute of a day that matches, from `minute` on; -1: none. */
static int next_minute(const struct cron *c, int minute)
{
    int hour = minute / 60;
    uint64_t minutes = c->bits[CRON_MINUTE] >> minute % 60,
             hours = c->bits[CRON_HOUR] & ~ALL(0, hour);

    if (c->bits[CRON_HOUR] >> hour & 1 && minutes)
        return minute + lowest(minutes);
    return hours ? lowest(hours) * 60 + lowest(c->bits[CRON_MINUTE]) : -1;
}

bool cron_next(const struct cron *c, int64_t local, int64_t *ret)
{
    int64_t minutes = civil_floor_div(local + WHEN_MINUTE - 1, WHEN_MINUTE);
    int64_t today = civil_floor_div(minutes, 1440);
    int minute = next_minute(c, (int)(minutes - today * 1440));
    struct civil date = civil_from_days(today);
    int64_t first_day = today - date.day + 1;
    uint64_t days = days_of(c, date.year, date.month, first_day);

    if (minute >= 0 && days >> date.day & 1) {
        *ret = today * WHEN_DAY + minute * WHEN_MINUTE;
        return true;
    }
    days &= ~ALL(0, date.day);
    for (int i = 0; !days; i++) {
        if (i > CYCLE_YEARS * 12)
            return false;
        first_day += civil_days_in_month(date.year, date.month);
        date.year += date.month == 12;
        date.month = date.month % 12 + 1;
        days = days_of(c, date.year, date.month, first_day);
    }
    *ret = (first_day + lowest(days) - 1) * WHEN_DAY + next_minute(c, 0) * WHEN_MINUTE;
    return true;
}

/* ---- the sentence */

static void put_value(struct buf *b, int field, int value)
{
    int ten = value / 10 % 10, one = ten == 1 ? 0 : value % 10;

    if (field == CRON_DAY && value == CRON_LAST_DAY)
        buf_str(b, "last day of the month");
    else if (field == CRON_DAY)
        buf_printf(b, "%d%s", value, one == 1 ? "st" : one == 2 ? "nd" : one == 3 ? "rd" : "th");
    else if (field == CRON_MONTH)
        buf_str(b, civil_month_names[value - 1]);
    else if (field == CRON_WEEKDAY)
        buf_printf(b, "%ss", civil_weekday_names[value % 7]);
    else if (field == CRON_FIELDS) /* the time of a day */
        buf_printf(b, "%02d:%02d", value / 60, value % 60);
    else
        buf_printf(b, "%d", value);
}

static void put_separator(struct buf *b, bool first, bool last)
{
    buf_str(b, first ? "" : last ? " and " : ", ");
}

/* "1, 3 to 5 and 7" */
static void put_list(struct buf *b, int field, uint64_t bits)
{
    for (bool first = true; bits; first = false) {
        int low = lowest(bits), n = lowest(~(bits >> low));
        n = n > 2 ? n : 1;
        bits &= ~ALL(low, low + n - 1);
        put_separator(b, first, !bits);
        put_value(b, field, low);
        if (n > 1) {
            buf_str(b, " to ");
            put_value(b, field, low + n - 1);
        }
    }
}

/* "minute 5", "minutes 5 and 10" */
static void put_field(struct buf *b, const char *name, int field, uint64_t bits)
{
    buf_printf(b, "%s%s ", name, bits & (bits - 1) ? "s" : "");
    put_list(b, field, bits);
}

/* The step of minutes that begin at 0 and divide the hour; 0: there is none. */
static int step_of(uint64_t minutes)
{
    for (int step = 1; step <= 30; step++) {
        uint64_t steps = 0;
        for (int i = 0; 60 % step == 0 && i < 60; i += step)
            steps |= UINT64_C(1) << i;
        if (steps == minutes)
            return step;
    }
    return 0;
}

static void put_times(struct buf *b, const struct cron *c)
{
    int count =
        __builtin_popcountll(c->bits[CRON_MINUTE]) * __builtin_popcountll(c->bits[CRON_HOUR]);
    int step = step_of(c->bits[CRON_MINUTE]);

    if (count <= 6)
        buf_str(b, "at ");
    for (int i = 0, minute = 0; count <= 6 && i < count; i++, minute++) {
        minute = next_minute(c, minute);
        put_separator(b, i == 0, i == count - 1);
        put_value(b, CRON_FIELDS, minute);
    }
    if (count <= 6)
        return;
    if (step)
        buf_printf(b, step == 1 ? "every minute" : "every %d minutes", step);
    else
        put_field(b, "at minute", CRON_MINUTE, c->bits[CRON_MINUTE]);
    if (c->bits[CRON_HOUR] != ALL(0, 23))
        put_field(b, " in the hour", CRON_HOUR, c->bits[CRON_HOUR]);
    else if (!step)
        buf_str(b, " of every hour");
}

void cron_put(struct buf *b, const struct cron *c)
{
    bool dates = (c->bits[CRON_DAY] & ALL(1, 31)) != ALL(1, 31),
         weeks = c->bits[CRON_WEEKDAY] != 127;
    size_t start = b->len;

    put_times(b, c);
    if (c->either && !(dates && weeks)) /* one of them has every day */
        dates = weeks = false;
    if (dates) {
        buf_str(b, " on the ");
        put_list(b, CRON_DAY, c->bits[CRON_DAY]);
    }
    if (weeks) {
        buf_str(b, !dates ? " on " : c->either ? " or on " : ", but only on ");
        put_list(b, CRON_WEEKDAY, (c->bits[CRON_WEEKDAY] & 126) | (c->bits[CRON_WEEKDAY] & 1) << 7);
    }
    if (!dates && !weeks && b->data[start + 5] == ':')
        buf_str(b, " every day");
    if (c->bits[CRON_MONTH] != ALL(1, 12)) {
        buf_str(b, " in ");
        put_list(b, CRON_MONTH, c->bits[CRON_MONTH]);
    }
}
