/*
 * finish.h - reports how the job of a process that has ended did.
 */
#ifndef DQ_RUNNER_FINISH_H
#define DQ_RUNNER_FINISH_H

#include "runner/process.h"

/* The leader has ended, and nothing else of its session is left: reaps it and reports all that is
 * left to report. */
void finish_process(struct process *p, struct process_context *c);

#endif
