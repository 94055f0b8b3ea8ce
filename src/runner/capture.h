/*
 * capture.h - what is kept of a handler's output: the last bytes of it, and for a batch the lines
 * of its stdout.
 */
#ifndef DQ_RUNNER_CAPTURE_H
#define DQ_RUNNER_CAPTURE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define CAPTURE_LINE_MAX (16 * 1024)

/* The tail of a stream. Memory grows with what comes, up to limit. */
struct capture {
    char *data;
    size_t limit, cap;
    size_t len;  /* bytes kept */
    size_t head; /* where the oldest byte is, once len == limit */
    bool cut;    /* older bytes were dropped */
};
void capture_init(struct capture *c, size_t limit);
void capture_add(struct capture *c, const char *p, size_t len);
/* The tail in one piece; c->len bytes less those of a character that was cut in two at the front.
 * Owned by c. */
const char *capture_tail(struct capture *c, size_t *ret_len);
void capture_done(struct capture *c);

/* Lines put together from pieces. A line over CAPTURE_LINE_MAX is handed over in pieces that are
 * not whole. */
struct lines {
    struct buf part;
    bool overlong; /* the rest of the present line is not whole either */
};
/* without the newline */
typedef void lines_cb(void *ctx, const char *line, size_t len, bool whole);
void lines_add(struct lines *l, const char *p, size_t len, lines_cb *cb, void *ctx);
void lines_finish(struct lines *l, lines_cb *cb, void *ctx); /* the last line needs no newline */
void lines_done(struct lines *l);

#endif
