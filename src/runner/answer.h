/*
 * answer.h - what a handler says about its tasks, a line each: on DQ_REPLY_FD, or on the stdout of
 * a handler that may use that and writes nothing there.
 */
#ifndef DQ_RUNNER_ANSWER_H
#define DQ_RUNNER_ANSWER_H

#include "runner/job.h"
#include "runner/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* reply: the line is from DQ_REPLY_FD; else from stdout. `whole` is false for a piece of
 * a line that is longer than CAPTURE_LINE_MAX.
 *
 * True: the line is a verdict on a task of this job that had none yet. The caller must report
 * *ret, which is valid until json is used again. An answer that is to count at the end becomes
 * j->answer: the process may yet change its mind. Any other line of stdout is added to the tail of
 * the output; one that seems to be meant as an answer, and any of DQ_REPLY_FD, is kept for
 * answer_fault. */
bool answer_line(struct job *j, struct json_reader *json, const char *line, size_t len, bool whole,
                 bool reply, struct verdict *ret);

/* Why task i, which has no verdict, must not count as done if its process exits with status 0: a
 * message that quotes the first unreadable line which named it, or which named no single task.
 * NULL: there is no reason. Owned by j. */
const char *answer_fault(const struct job *j, uint32_t i);

#endif
