/*
 * input.h - what a handler reads, and other bytes that are passed on in memory.
 */
#ifndef DQ_RUNNER_INPUT_H
#define DQ_RUNNER_INPUT_H

#include "base/err.h"
#include "base/task.h"

#include <stddef.h>

/* Return a sealed memfd at offset 0, the caller's, or -1 with err: ERR_SYSTEM, or ERR_DATA if this
 * body is to blame. input_body has the bytes, input_batch a line of JSON for each task. */
int input_body(const void *body, size_t size, struct err *err);
int input_batch(const struct task *tasks, size_t count, struct err *err);
/* The same for any bytes; -1 with errno. name: for /proc. */
int input_memory(const char *name, const void *p, size_t size);

#endif
