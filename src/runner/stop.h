/*
 * stop.h - ends processes before they end by themselves: at a timeout, at the end of the
 * lease, on an order.
 */
#ifndef DQ_RUNNER_STOP_H
#define DQ_RUNNER_STOP_H

#include "runner/process.h"

#include <stdint.h>

/* Sends TERM; stop_watch sends KILL later. Only the first reason counts. Does nothing if the
 * process has ended already: it may have done so in time, because this process may have been
 * frozen. */
void stop_process(struct process *p, enum process_stop why, int64_t now);
/* Sends a running process the signals that are due. Returns when to call again; JOB_NEVER: never.
 */
int64_t stop_watch(struct process *p, int64_t now);

#endif
