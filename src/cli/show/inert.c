/*
 * inert.c - see inert.h. Invariant: a character is never divided, wherever the pieces end.
 */
#include "cli/show/inert.h"

#include "base/text.h"
#include "cli/show/out.h"

#include <string.h>
#include <unistd.h>

/* How many bytes at the end of a text may be the beginning of a longer character. */
static size_t unfinished(const char *p, size_t len)
{
    for (size_t n = 1; n <= 3 && n <= len; n++) {
        unsigned char c = (unsigned char)p[len - n];
        size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        if (c >= 0xc0 || c < 0x80)
            return whole > n ? n : 0;
    }
    return 0;
}

static size_t backslashes(const char *p, size_t len)
{
    size_t n = 0;

    while (len--)
        n += *p++ == '\\';
    return n;
}

static void put_lines(struct buf *b, const char *p, size_t len, bool commands)
{
    while (len) {
        const char *end = memchr(p, '\n', len);
        size_t n = end ? (size_t)(end - p) : len, begin = b->len;

        text_escape(b, p, n, 0);
        if (commands && b->len - begin == n + backslashes(p, n)) {
            b->len = begin;
            buf_add(b, p, n);
        }
        if (end)
            buf_chr(b, '\n');
        n += end ? 1 : 0;
        p += n;
        len -= n;
    }
}

void inert_print(struct inert *s, const char *p, size_t len)
{
    BUF_LOCAL struct buf joined = BUF_INIT;
    struct buf b = BUF_INIT;

    if (!isatty(STDOUT_FILENO)) {
        buf_add(&b, p, len);
        out_take(&b);
        return;
    }
    if (s->size) {
        buf_add(&joined, s->part, s->size);
        buf_add(&joined, p, len);
        p = joined.data;
        len = joined.len;
    }
    s->size = unfinished(p, len);
    put_lines(&b, p, len - s->size, false);
    if (s->size)
        memcpy(s->part, p + len - s->size, s->size);
    out_take(&b);
}

void inert_print_end(struct inert *s)
{
    struct buf b = BUF_INIT;

    put_lines(&b, s->part, s->size, false);
    s->size = 0;
    out_take(&b);
}

void inert_take(struct buf *b)
{
    struct buf shown = BUF_INIT;

    if (isatty(STDOUT_FILENO)) {
        put_lines(&shown, b->data, b->len, true);
        buf_done(b);
        *b = shown;
    }
    out_take(b);
}
