/*
 * rlimit.h - limits that the system sets for this process (ulimit, LimitSTACK= of a systemd unit).
 */
#ifndef DQ_BASE_RLIMIT_H
#define DQ_BASE_RLIMIT_H

#include "base/err.h"

#include <stdbool.h>

/* For the beginning of a program: with a smaller stack, it would die of SIGSEGV somewhere; with
 * less of the others, dqd could start no handler. From now on, a write beyond the limit of a file's
 * size raises no signal, and fails with EFBIG. ERR_SYSTEM: a limit is too low. */
int rlimit_check(bool starts_handlers, struct err *err) __attribute__((warn_unused_result));

#endif
