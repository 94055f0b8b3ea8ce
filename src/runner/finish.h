/*
 * finish.h - reports how a job ended, or gives it back.
 */
#ifndef DQ_RUNNER_FINISH_H
#define DQ_RUNNER_FINISH_H

#include "runner/job.h"

#include <stdbool.h>

/* The leader has ended, and nothing else of its session is left: reaps it and reports all that is
 * left to report. */
void finish_job(struct job *j, struct job_context *c);
/* Reports that no task of it was run. why NULL: for no fault. */
void finish_return(struct job *j, struct job_context *c, bool cannot_start, const char *why);

#endif
