/*
 * start.h - starts a job: prepares it, takes the outcome, gives up a start that hangs.
 */
#ifndef DQ_RUNNER_START_H
#define DQ_RUNNER_START_H

#include "base/err.h"
#include "runner/job.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes j->launch, which launch_run is to run then. note: the job's, set to NOTES_STARTS; NULL: it
 * has none. ERR_SYSTEM: it cannot be started. */
int start_job(struct job *j, struct job_context *c, volatile pid_t *note, struct err *err)
    __attribute__((warn_unused_result));

/* The launch is over: takes the outcome and frees it. 0: it runs, or has run: STARTED is to be
 * reported unless it is `unsure`. ERR_SYSTEM: it could not be started. */
int start_over(struct job *j, pid_t *ret_pid, struct err *err) __attribute__((warn_unused_result));

/* Stops a job whose start hangs, when it is due by now. False: *ret_next is when to call again.
 * True: the start is given up, and whatever comes of it is killed; the job is to be given back, the
 * reason is in err (code 0: it was to end anyway). */
bool start_watch(struct job *j, int64_t now, int64_t *ret_next, struct err *err);

/* Of an `unsure` job whose leader has ended and was not reaped. True: it has executed nothing; the
 * reason is in err (code 0: it was to end anyway). */
bool start_was_none(const struct job *j, struct err *err);

#endif
