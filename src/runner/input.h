/*
 * input.h - what a handler reads, and other bytes that are passed on in memory.
 */
#ifndef DQ_RUNNER_INPUT_H
#define DQ_RUNNER_INPUT_H

#include "base/err.h"
#include "base/task.h"

#include <stdbool.h>
#include <stddef.h>

/* A sealed memfd at offset 0, the caller's, with the body of the task, or a line of JSON for
 * each. -1 with err: ERR_SYSTEM, or ERR_DATA if a body is to blame. */
int input_tasks(const struct task *tasks, size_t count, bool lines, struct err *err);
/* The same for any bytes; -1 with errno. name: for /proc. */
int input_memory(const char *name, const void *p, size_t size);

#endif
