/*
 * answer.h - the verdicts of a batch handler on its tasks, one per line of its stdout.
 */
#ifndef DQ_RUNNER_ANSWER_H
#define DQ_RUNNER_ANSWER_H

#include "runner/job.h"
#include "runner/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True: the line is a verdict on a task of this job that had none yet. The caller must report *ret,
 * which is valid until json is used again. Any other line is added to the tail of the output, and
 * one that seems to be meant as a verdict is also kept for answer_fault. `whole` is false for a
 * piece of a line that is longer than CAPTURE_LINE_MAX. */
bool answer_line(struct job *j, struct json_reader *json, const char *line, size_t len, bool whole,
                 struct verdict *ret);

/* Why task i, which has no verdict, must not count as done if its process exits with status 0: a
 * message that quotes the first unreadable line which named it, or which named no single task.
 * NULL: there is no reason. Owned by j. */
const char *answer_fault(const struct job *j, uint32_t i);

#endif
