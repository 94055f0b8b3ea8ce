/*
 * start.h - starts a process for a job: prepares it, gives up a start that hangs.
 */
#ifndef DQ_RUNNER_START_H
#define DQ_RUNNER_START_H

#include "base/err.h"
#include "runner/process.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes the job's process, which launch_run is to start then. note: the job's, set to NOTES_STARTS;
 * NULL: it has none. ERR_SYSTEM: it cannot be started, and has no process. */
int start_job(struct job *j, struct process_context *c, volatile pid_t *note, struct err *err)
    __attribute__((warn_unused_result));

/* Makes a process of that plan without a job, which gets its stdin through a pipe. The rest as
 * above. */
int start_ahead(struct table *t, struct plan *plan, struct process_context *c, volatile pid_t *note,
                struct process **ret, struct err *err) __attribute__((warn_unused_result));

/* Stops a process whose start hangs, when it is due by now. False: *ret_next is when to call again.
 * True: the start is given up, and whatever comes of it is killed; the job is to be given back, the
 * reason is in err (code 0: it was to end anyway). */
bool start_watch(struct process *p, int64_t now, int64_t *ret_next, struct err *err);

/* Of a process whose start was given up, and that has ended and was not reaped. True: it has
 * executed nothing; the reason is in err (code 0: it was to end anyway). */
bool start_was_none(const struct process *p, struct err *err);

#endif
