/*
 * stream.h - the pipes on which handlers write their output.
 */
#ifndef DQ_RUNNER_STREAM_H
#define DQ_RUNNER_STREAM_H

#include "base/err.h"
#include "runner/job.h"

#include <stddef.h>

/* Makes the pipe; its reading end is watched. *ret_end is the writing end, the caller's, which
 * blocks as programs expect. ERR_SYSTEM: call stream_close. */
int stream_open(struct job_stream *s, struct job_context *c, int *ret_end, struct err *err)
    __attribute__((warn_unused_result));
/* Takes what is there, about max bytes; closes it at its end. Verdicts are reported, all else
 * goes to the tail. Does not block. */
void stream_read(struct job_stream *s, struct job_context *c, size_t max);
/* The last line needs no newline: takes it. */
void stream_finish(struct job_stream *s, struct job_context *c);
void stream_close(struct job_stream *s, struct job_context *c); /* nothing if it is closed */

#endif
