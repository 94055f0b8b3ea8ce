/*
 * stream.h - the pipes that handlers write to.
 */
#ifndef DQ_RUNNER_STREAM_H
#define DQ_RUNNER_STREAM_H

#include "base/err.h"
#include "runner/process.h"

#include <stddef.h>

/* Makes the pipe; its reading end is watched. *ret_end is the writing end, the caller's, which
 * blocks as programs expect. ERR_SYSTEM: call stream_close. */
int stream_open(struct process_stream *s, struct process_context *c, int *ret_end, struct err *err)
    __attribute__((warn_unused_result));
/* Reads what is there, at most about max bytes, and closes the stream at its end. Answers are
 * reported; all else is added to the tail. Does not block. Of a job that is followed as a whole it
 * reads no more than there is room for, and then the stream is not watched until stream_resume. */
void stream_read(struct process_stream *s, struct process_context *c, size_t max);
void stream_resume(struct process_stream *s, struct process_context *c);
/* Call it after the last read: handles a last line without a newline. */
void stream_finish(struct process_stream *s, struct process_context *c);
void stream_close(struct process *p, struct process_context *c); /* those that are open */

#endif
