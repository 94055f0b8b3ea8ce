/*
 * answer.h - what a batch handler says about its tasks, line by line of its stdout.
 */
#ifndef DQ_RUNNER_ANSWER_H
#define DQ_RUNNER_ANSWER_H

#include "runner/job.h"
#include "runner/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True: the line is a verdict on a task of this job that has had none: the caller reports *ret,
 * which lives until json is used again. Every other line goes to the tail of the output; one that
 * was meant as a verdict and is none is remembered for answer_fault. `whole` is false for a piece
 * of a line that was too long to keep. */
bool answer_line(struct job *j, struct json_reader *json, const char *line, size_t len, bool whole,
                 struct verdict *ret);

/* Why task i, which got no verdict, cannot be called done by its process's exit status 0: what the
 * first unreadable line that named it, or that named nobody, looked like. NULL: it can. */
const char *answer_fault(const struct job *j, uint32_t i);

#endif
