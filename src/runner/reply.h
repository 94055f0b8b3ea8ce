/*
 * reply.h - the runner's reports to the poller. Nothing here blocks: reports are queued in o.
 */
#ifndef DQ_RUNNER_REPLY_H
#define DQ_RUNNER_REPLY_H

#include "base/err.h"
#include "runner/process.h"
#include "runner/proto.h"
#include "runner/verdict.h"

#include <stdint.h>

/* Sets the text, and behind it the last line of the output: what it said about its failure. */
void reply_explain(struct capture *tail, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

void reply_started(struct proto_out *o, const struct process *p);
void reply_verdict(struct proto_out *o, const struct job *j, const struct verdict *v);
/* Reports the output since the last time; the job is followed. */
void reply_fresh(struct proto_out *o, struct job *j);
/* Reports the output, the results of all tasks that have none yet, as the wait status of the
 * process implies, and the end of its job. */
void reply_ended(struct proto_out *o, struct process *p, int status);
/* The same of a job whose tasks have all been answered by a process that goes on. */
void reply_answered(struct proto_out *o, struct job *j);
/* why NULL: no fault */
void reply_returned(struct proto_out *o, const struct job *j, int cannot_start, const char *why);
/* text_fd: a sealed memfd, closed once sent; -1: none, see error */
void reply_reloaded(struct proto_out *o, uint64_t digest, int text_fd, const char *error);
void reply_pong(struct proto_out *o, uint64_t n);

#endif
