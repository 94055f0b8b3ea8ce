/*
 * sweep.h - the signals of jobs for what is in their sessions, but not in their leaders' groups.
 */
#ifndef DQ_RUNNER_SWEEP_H
#define DQ_RUNNER_SWEEP_H

#include "runner/jobs.h"
#include "runner/orphans.h"

#include <stdbool.h>

/* TERM and KILL reach the rest of the sessions whose leaders' groups have got them since the last
 * call. Goes through all processes of the host, once for all jobs. */
void sweep_signals(struct jobs *jobs);

/* The leader of a job has ended: kills the rest. Whether nothing is left that could still act. What
 * may not be killed is waited for only if the next attempt must not run beside it: after a
 * time-out, a cancellation, the end of a lease. */
bool sweep_ended(struct job *j, struct orphans *orphans);

#endif
