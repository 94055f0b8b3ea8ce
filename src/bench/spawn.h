/*
 * spawn.h - starting programs, and how many this host starts in a second.
 */
#ifndef DQ_BENCH_SPAWN_H
#define DQ_BENCH_SPAWN_H

#include "bench/rig.h"

#include <sys/types.h>

/* Starts argv[0] with its standard output and error in the file `output`, and default signal
 * dispositions. */
int spawn_start(const char *const *argv, const char *output, pid_t *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Waits for its end and returns its status as waitpid(2) gives it. After timeout_ms, or when
 * stop_asked(), it gets TERM, and KILL if that does not help. */
int spawn_wait(pid_t pid, int64_t timeout_ms);

/* Shells that do nothing: one at a time, and as many at a time as is fastest. */
rig_measure spawn_one_by_one, spawn_parallel;

#endif
