/*
 * buf.c - a byte string that grows.
 *
 * Invariant: once data is not NULL, len < cap and data[len] is a NUL byte.
 */
#include "base/buf.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf)BUF_INIT;
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void buf_reserve(struct buf *b, size_t more)
{
    if (b->cap - b->len > more)
        return;
    /* SIZE_MAX cannot be had, so that an overflow ends like any other exhaustion. */
    size_t need = more < SIZE_MAX - b->len ? b->len + more + 1 : SIZE_MAX;
    size_t cap = b->cap < 64 ? 64 : b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;
    b->cap = MAX(cap, need);
    b->data = mem_resize(b->data, b->cap, 1);
    b->data[b->len] = '\0';
}

void buf_add(struct buf *b, const void *p, size_t len)
{
    buf_reserve(b, len);
    if (len)
        memcpy(b->data + b->len, p, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_chr(struct buf *b, char c)
{
    buf_reserve(b, 1);
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
}

void buf_u64(struct buf *b, unsigned long long v)
{
    char digits[24];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    buf_add(b, digits + at, sizeof digits - at);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    buf_reserve(b, 0);
    int n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
    if (n >= 0 && (size_t)n >= b->cap - b->len) {
        buf_reserve(b, (size_t)n);
        n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    if (n > 0)
        b->len += (size_t)n;
    b->data[b->len] = '\0';
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

char *buf_take(struct buf *b)
{
    buf_reserve(b, 0);
    char *data = b->data;
    *b = (struct buf)BUF_INIT;
    return data;
}
