/*
 * buf.h - a byte string that grows.
 *
 * Caller-owned: `BUF_LOCAL struct buf b = BUF_INIT;` is freed when its scope ends, any other one by
 * buf_done. data is always followed by a NUL byte once anything was added, so that text can be used
 * as a C string; NULs inside count as bytes.
 */
#ifndef DQ_BASE_BUF_H
#define DQ_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data; /* NULL until something was added */
    size_t len, cap;
};
/* clang-format off */
#define BUF_INIT {NULL, 0, 0}
/* clang-format on */
#define BUF_LOCAL __attribute__((cleanup(buf_done)))

void buf_done(struct buf *b);                 /* frees, leaves an empty usable buffer */
void buf_reset(struct buf *b);                /* len = 0, memory kept */
void buf_reserve(struct buf *b, size_t more); /* room for `more` bytes behind len */
void buf_add(struct buf *b, const void *p, size_t len);
void buf_str(struct buf *b, const char *s);
void buf_chr(struct buf *b, char c);
void buf_u64(struct buf *b, unsigned long long v); /* decimal; the fast path of long id lists */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
char *buf_take(struct buf *b); /* hands the memory to the caller (never NULL), leaves b empty */

#endif
