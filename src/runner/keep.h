/*
 * keep.h - processes that stay: which of them gets the next job, when another one is started, and
 * when one has to go. crew.c starts, stops and reaps them like all others.
 *
 * Such a process says on DQ_REPLY_FD that it is ready, gets a job's lines on stdin, and answers
 * each on DQ_REPLY_FD. Then it is idle, until it gets another job or the end of file. A process
 * that says anything else is at fault, and stopped.
 */
#ifndef DQ_RUNNER_KEEP_H
#define DQ_RUNNER_KEEP_H

#include "runner/jobs.h"
#include "runner/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether it is one of those. */
bool keep_is(const struct process *p);
/* Whether one of the waiting jobs of the plan, of any tag, need not wait longer: an idle process
 * can have it, another one is to be started for it, or it has to be given back (kept.why). */
bool keep_wants(const struct plan *plan);
/* Why all of them have to be given back, to be freed; NULL: they have not. Tells each reason once.
 */
char *keep_refusal(struct plan *plan);
/* None can be started, for this reason. */
void keep_refuse(struct plan *plan, const char *why);
/* The note of a process to be started (notes.h); NULL: there is none left. */
volatile pid_t *keep_note(volatile pid_t *notes);
/* How long this process may stay: up to a tenth less, so that not all are replaced at once. */
int64_t keep_age_ms(int64_t age_ms, pid_t pid);
/* It is about to be started. */
void keep_begin(struct process *p);
/* It was executed: it is idle if it is ready already, else it has to be in time. */
void keep_started(struct process *p);
/* An idle process; those that were started before a file of restart_on changed are retired, and if
 * that happens to three in a row before their first job, the tag rests. NULL: there is none. */
struct process *keep_take(struct plan *plan, int64_t now);
/* Gives it the job, which has waited so far. */
void keep_give(struct process *p, struct job *j, struct process_context *c);
/* Its stdin takes more of the input. */
void keep_feed(struct process *p, struct process_context *c);
/* A line of DQ_REPLY_FD, or the end of file there. */
void keep_line(struct process *p, struct process_context *c, const char *line, size_t len,
               bool whole);
void keep_deaf(struct process *p);
/* What it has written without a job. */
void keep_spare(struct process *p, const char *line, size_t len);
/* Whether all tasks of its job are answered. */
bool keep_has_answered(const struct process *p);
/* Its job is over: it waits for another one, or is retired. */
void keep_done(struct process *p, int64_t now);
/* It gets no further job. */
void keep_leave(struct process *p);
/* Retires it if that is due. */
void keep_watch(struct process *p, int64_t now);
/* A start has failed: if processes or descriptors are short, those that have been idle longest are
 * retired, unless room for a start is being made already: a shortage fails many starts at once.
 * When they have to be watched; JOB_NEVER: none is. */
int64_t keep_make_room(const struct jobs *jobs, int failure);
/* Whether it has read nothing of its job, and ended for another reason than what it said. */
bool keep_unread(const struct process *p);
/* It has ended with this wait status, or could not be started (-1), and is about to be freed. */
void keep_ended(struct process *p, int status);
/* Whether jobs need not be given back although its start hangs: others of its plan will do them. */
bool keep_can_wait(const struct process *p);
/* Reports how many each handler of the table has, what they weigh, and why one was replaced last.
 * False: none has any. Looks at all processes of the host, once. */
bool keep_tell(struct table *t, struct jobs *jobs, struct proto_out *out);

#endif
