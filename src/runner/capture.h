/*
 * capture.h - keeps a handler's output: the last bytes of it, and for a batch also the lines of its
 * stdout.
 */
#ifndef DQ_RUNNER_CAPTURE_H
#define DQ_RUNNER_CAPTURE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_LINE_MAX 16384

/* The tail of a stream. Memory grows with the output, up to limit bytes. */
struct capture {
    char *data;
    size_t limit, cap;
    size_t len;     /* bytes kept */
    size_t head;    /* index of the oldest byte, once len == limit */
    bool cut;       /* older bytes were dropped */
    uint64_t total; /* bytes that were added */
};
void capture_init(struct capture *c, size_t limit);
void capture_add(struct capture *c, const char *p, size_t len);
/* The tail in one piece, without the rest of a UTF-8 character that was cut at its front. Owned by
 * c, valid until the next call. */
const char *capture_tail(struct capture *c, size_t *ret_len);
void capture_empty(struct capture *c); /* drops what is kept; total stays */
void capture_done(struct capture *c);

/* Splits output into lines. A line longer than CAPTURE_LINE_MAX is delivered in pieces that are not
 * `whole`. */
struct lines {
    struct buf part;
    bool overlong; /* the rest of the current line is not whole either */
};
/* Called for each line, without its newline. */
typedef void lines_cb(void *ctx, const char *line, size_t len, bool whole);
void lines_add(struct lines *l, const char *p, size_t len, lines_cb *cb, void *ctx);
/* Delivers a last line that has no newline. */
void lines_finish(struct lines *l, lines_cb *cb, void *ctx);
void lines_done(struct lines *l);

#endif
