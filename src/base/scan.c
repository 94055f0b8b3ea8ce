/*
 * scan.c - a cursor over a short text.
 *
 * Invariant: p never moves past the end, and a fault shows at most 80 bytes of the text.
 */
#include "base/scan.h"
#include "base/when.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

int scan_fault(const struct scan *s, const char *at, const char *hint, const char *fmt, ...)
{
    char message[256], place[48] = "";
    size_t shown = strnlen(s->text, 81), character = 1;
    bool cut = shown > 80;

    if (cut)
        for (shown = 80; shown && is_continuation(s->text[shown]); shown--)
            ;
    if (at) {
        for (const char *c = s->text; c < at; c++)
            character += !is_continuation(c[1]);
        snprintf(place, sizeof place, " at character %zu", character);
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    return err_set(s->err, ERR_DATA, "%s \"%.*s%s\": %s%s%s%s%s", s->what, (int)shown, s->text,
                   cut ? "..." : "", message, place, hint ? " (" : "", hint ? hint : "",
                   hint ? ")" : "");
}

void scan_blanks(struct scan *s)
{
    s->p += strspn(s->p, " \t");
}

int scan_word_length(const char *p)
{
    size_t n = strcspn(p, " \t0123456789");
    if (n > 40)
        for (n = 40; n && is_continuation(p[n]); n--)
            ;
    return (int)n;
}

bool scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    if (strncasecmp(s->p, word, n) || (s->p[n] && s->p[n] != ' ' && s->p[n] != '\t'))
        return false;
    s->p += n;
    return true;
}

bool scan_number(struct scan *s, size_t digits, bool fewer, int *ret)
{
    size_t n = strspn(s->p, "0123456789");

    if (n > digits)
        n = digits;
    if (n < digits - fewer)
        return false;
    for (*ret = 0; n; n--)
        *ret = *ret * 10 + (*s->p++ - '0');
    return true;
}

int scan_fraction(struct scan *s, int64_t *ret, int64_t *ret_scale)
{
    const char *start = s->p;

    *ret = 0;
    *ret_scale = 1;
    for (; isdigit((unsigned char)*s->p); s->p++, *ret_scale *= 10) {
        if (s->p - start == 9)
            return scan_fault(s, s->p, NULL, "more than nine digits behind the point");
        *ret = *ret * 10 + (*s->p - '0');
    }
    return s->p > start ? 0 : scan_fault(s, s->p, NULL, "a digit is missing behind the point");
}

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

int scan_duration(struct scan *s, int64_t *ret_ms)
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
            return scan_fault(s, start, NULL, "longer than 3660 days");
        scan_blanks(s);
    } while (*s->p);
    *ret_ms = total_ms;
    return 0;
}
