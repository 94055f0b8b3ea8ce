/*
 * capture.c - keeps the tail of a handler's output, and splits it into lines.
 *
 * Invariant: memory is bounded by the limit, and by CAPTURE_LINE_MAX, whatever the handler writes.
 */
#include "runner/capture.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define FIRST_CAP 512

void capture_init(struct capture *c, size_t limit)
{
    memset(c, 0, sizeof *c);
    c->limit = limit;
}

static void grow(struct capture *c, size_t want)
{
    size_t cap = c->cap ? c->cap : FIRST_CAP;

    while (cap < want)
        cap *= 2;
    if (cap > c->limit)
        cap = c->limit;
    if (cap > c->cap)
        c->data = mem_resize(c->data, c->cap = cap, 1);
}

void capture_add(struct capture *c, const char *p, size_t len)
{
    c->total += len;
    if (len > c->limit) {
        p += len - c->limit;
        len = c->limit;
        c->cut = true;
    }
    if (!len)
        return;
    size_t room = c->limit - c->len, append = MIN(len, room);
    if (append) { /* not full yet: head is 0 */
        grow(c, c->len + append);
        memcpy(c->data + c->len, p, append);
        c->len += append;
    }
    while (append < len) {
        size_t n = len - append, to_end = c->limit - c->head;
        n = MIN(n, to_end);
        memcpy(c->data + c->head, p + append, n);
        c->head = (c->head + n) % c->limit;
        append += n;
        c->cut = true;
    }
}

const char *capture_tail(struct capture *c, size_t *ret_len)
{
    size_t skip = 0;

    if (c->head) {
        char *line = mem_alloc(c->len);
        memcpy(line, c->data + c->head, c->len - c->head);
        memcpy(line + c->len - c->head, c->data, c->head);
        free(c->data);
        c->data = line;
        c->cap = c->len;
        c->head = 0;
    }
    if (c->cut)
        while (skip < 3 && skip < c->len && text_continues(c->data[skip]))
            skip++;
    *ret_len = c->len - skip;
    return c->len ? c->data + skip : "";
}

void capture_empty(struct capture *c)
{
    c->len = c->head = 0;
    c->cut = false;
}

void capture_done(struct capture *c)
{
    free(c->data);
    c->data = NULL;
}

static void emit(struct lines *l, bool whole, lines_cb *cb, void *ctx)
{
    cb(ctx, l->part.len ? l->part.data : "", l->part.len, whole && !l->overlong);
    buf_reset(&l->part);
    l->overlong = !whole;
}

void lines_add(struct lines *l, const char *p, size_t len, lines_cb *cb, void *ctx)
{
    while (len) {
        const char *newline = memchr(p, '\n', len);
        size_t n = newline ? (size_t)(newline - p) : len, room = CAPTURE_LINE_MAX - l->part.len;
        bool full = n > room;
        if (full)
            n = room;
        buf_add(&l->part, p, n);
        p += n;
        len -= n;
        if (full) {
            emit(l, false, cb, ctx);
        } else if (newline) {
            emit(l, true, cb, ctx);
            p++;
            len--;
        }
    }
}

void lines_finish(struct lines *l, lines_cb *cb, void *ctx)
{
    if (l->part.len)
        emit(l, true, cb, ctx);
}

void lines_done(struct lines *l)
{
    buf_done(&l->part);
}
