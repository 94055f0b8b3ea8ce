/*
 * csv.c - see csv.h. Invariant: what RFC 4180 does not allow is refused, not guessed.
 */
#include "cli/show/csv.h"

#include <string.h>

bool csv_is_open(bool open, const char *line, size_t len)
{
    const char *end = line + len;

    while (line < end && (line = memchr(line, '"', (size_t)(end - line)))) {
        open = !open; /* a doubled quote does so twice */
        line++;
    }
    return open;
}

/* A field behind its opening quote; returns where it ends, behind the closing one. NULL: it does
 * not. */
static const char *take_quoted(const char *p, const char *end, struct buf *out)
{
    for (;;) {
        const char *quote = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
        if (!quote)
            return NULL;
        buf_add(out, p, (size_t)(quote - p));
        p = quote + 1;
        if (p == end || *p != '"')
            return p;
        buf_chr(out, '"');
        p++;
    }
}

int csv_field(const char **at, const char *end, struct buf *out, struct err *err)
{
    const char *p = *at;

    if (p < end && *p == '"') {
        p = take_quoted(p + 1, end, out);
        if (!p)
            return err_set(err, ERR_DATA, "its quotes are not closed");
        if (p < end && *p != ',')
            return err_set(
                err, ERR_DATA,
                "there is text behind the closing quote; inside quotes, a quote is written twice");
    } else {
        const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        const char *start = p;
        p = comma ? comma : end;
        if (start < p && memchr(start, '"', (size_t)(p - start)))
            return err_set(
                err, ERR_DATA,
                "it contains a quote; put the field between quotes, and write this one twice");
        buf_add(out, start, (size_t)(p - start));
    }
    buf_chr(out, '\0');
    if (p == end)
        return 0;
    *at = p + 1;
    return 1;
}
