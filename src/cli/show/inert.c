/*
 * inert.c - see inert.h. Invariant: a character is never divided, wherever the pieces end.
 */
#include "cli/show/inert.h"

#include "base/buf.h"
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

static void put_lines(struct buf *b, const char *p, size_t len)
{
    while (len) {
        const char *end = memchr(p, '\n', len);
        size_t n = end ? (size_t)(end - p) : len;

        text_escape(b, p, n, 0);
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
    put_lines(&b, p, len - s->size);
    if (s->size)
        memcpy(s->part, p + len - s->size, s->size);
    out_take(&b);
}

void inert_print_end(struct inert *s)
{
    struct buf b = BUF_INIT;

    put_lines(&b, s->part, s->size);
    s->size = 0;
    out_take(&b);
}
