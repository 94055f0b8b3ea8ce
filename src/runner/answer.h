/*
 * answer.h - what a batch handler says about its tasks, line by line of its stdout.
 */
#ifndef DQ_RUNNER_ANSWER_H
#define DQ_RUNNER_ANSWER_H

#include "runner/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reports a verdict on a task of this job that has none yet; every other line goes to the tail of
 * the output. A line that was meant as a verdict and is none is remembered for answer_fault.
 * `whole` is false for a piece of a line that was too long to keep. */
void answer_line(struct job *j, struct job_context *c, const char *line, size_t len, bool whole);

/* Why task i, which got no verdict, cannot be called done by its process's exit status 0: what the
 * first unreadable line that named it, or that named nobody, looked like. NULL: it can. */
const char *answer_fault(const struct job *j, uint32_t i);

void answer_done(struct job *j);

#endif
