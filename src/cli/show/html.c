/*
 * html.c - see html.h.
 */
#include "cli/show/html.h"

#include "base/text.h"
#include "base/when.h"
#include "cli/show/cell.h"

#include <string.h>

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void html_put_text(struct buf *b, const char *s)
{
    BUF_LOCAL struct buf inert = BUF_INIT;

    text_escape(&inert, s, strlen(s), 0);
    for (size_t i = 0; i < inert.len; i++) {
        const char *name = entity(inert.data[i]);

        if (name)
            buf_str(b, name);
        else
            buf_chr(b, inert.data[i]);
    }
}

void html_put_count(struct buf *b, uint64_t n, bool sampled)
{
    buf_str(b, sampled ? "~" : "");
    cell_put_count(b, n);
}

void html_put_duration(struct buf *b, int64_t ms)
{
    char text[WHEN_TEXT_SIZE];

    buf_str(b, ms < 0 ? "-" : when_format_rough(text, ms));
}
