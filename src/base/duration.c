/*
 * duration.c - see duration.h. Invariant: a text is read exactly or refused.
 */
#include "base/duration.h"

#include "base/when.h"

#include <ctype.h>
#include <string.h>

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

int duration_scan_unit(struct scan *s, int64_t *ret_ms)
{
    return scan_unit(s, INT64_MAX, ret_ms);
}

int duration_scan(struct scan *s, int64_t *ret_ms, bool *ret_ago)
{
    int64_t total_ms = 0, unit_ms = INT64_MAX;
    bool ago = false;

    scan_blanks(s);
    if (*s->p == '-')
        return scan_fault(s, s->p, NULL, "a duration cannot be negative");
    do {
        const char *start = s->p;
        int64_t whole = 0, part = 0, scale = 1;
        if (scan_word(s, "an") || scan_word(s, "a"))
            whole = 1;
        else if (!isdigit((unsigned char)*s->p))
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
        ago = ret_ago && scan_word(s, "ago");
    } while (*s->p && !ago);
    if (ret_ago)
        *ret_ago = ago;
    *ret_ms = total_ms;
    return 0;
}
