/*
 * sweep.h - sends the signals of leaders to processes of their sessions outside the leaders'
 * groups.
 */
#ifndef DQ_RUNNER_SWEEP_H
#define DQ_RUNNER_SWEEP_H

#include "runner/jobs.h"
#include "runner/orphans.h"

#include <stdbool.h>

/* Sends TERM and KILL to the rest of those sessions whose leaders' groups got them since the last
 * call. Goes through all processes of the host, once for all sessions. */
void sweep_signals(struct jobs *jobs);

/* The leader has ended: kills the rest of its session. True: nothing is left that could
 * still act. A process that this account may not kill counts only if the next attempt must not run
 * beside it: after a timeout, a cancellation, the end of a lease. */
bool sweep_ended(struct process *p, struct orphans *orphans);

#endif
