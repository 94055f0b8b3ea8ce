/*
 * stream.h - the pipes that handlers write to.
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
/* Reads what is there, at most about max bytes, and closes the stream at its end. Verdicts are
 * reported; all else is added to the tail. Does not block. Of a job that is followed as a whole it
 * reads no more than there is room for, and then the stream is not watched until stream_resume. */
void stream_read(struct job_stream *s, struct job_context *c, size_t max);
void stream_resume(struct job_stream *s, struct job_context *c);
/* Call it after the last read: handles a last line without a newline. */
void stream_finish(struct job_stream *s, struct job_context *c);
void stream_close(struct job_stream *s, struct job_context *c); /* does nothing if it is closed */

#endif
