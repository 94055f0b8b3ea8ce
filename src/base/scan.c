/*
 * scan.c - a cursor over a short text.
 *
 * Invariant: p never moves past the end, and a fault shows at most 80 bytes of the text.
 */
#include "base/scan.h"

#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int scan_fault(const struct scan *s, const char *at, const char *hint, const char *fmt, ...)
{
    char message[256], place[48] = "";
    size_t shown = strnlen(s->text, 81), character = 1;
    bool cut = shown > 80;

    if (cut)
        shown = text_cut(s->text, 80);
    if (at) {
        for (const char *c = s->text; c < at; c++)
            character += !text_continues(c[1]);
        snprintf(place, sizeof place, "at character %zu: ", character);
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    return err_set(s->err, ERR_DATA, "%s \"%.*s%s\": %s%s%s%s%s", s->what, (int)shown, s->text,
                   cut ? "..." : "", place, message, hint ? " (" : "", hint ? hint : "",
                   hint ? ")" : "");
}

void scan_blanks(struct scan *s)
{
    s->p += strspn(s->p, " \t");
}

int scan_word_length(const char *p)
{
    size_t n = strcspn(p, " \t0123456789");
    return (int)(n > 40 ? text_cut(p, 40) : n);
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
