/*
 * input.h - what a handler reads, and other bytes that are passed on in memory.
 */
#ifndef DQ_RUNNER_INPUT_H
#define DQ_RUNNER_INPUT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/task.h"

#include <stddef.h>

/* The tasks, a line of JSON for each. */
void input_put_lines(struct buf *b, const struct task *tasks, size_t count);
/* A sealed memfd at offset 0, the caller's, with a long input. -1 with err: ERR_SYSTEM, or ERR_DATA
 * if a body is to blame. */
int input_long(const void *p, size_t size, struct err *err);
/* The same for any bytes; -1 with errno. name: for /proc. */
int input_memory(const char *name, const void *p, size_t size);

#endif
