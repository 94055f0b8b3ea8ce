/*
 * body.h - loads bodies that did not come with the claim.
 */
#ifndef DQ_POLLER_BODY_H
#define DQ_POLLER_BODY_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/flight.h"

#include <stdbool.h>

/* Whether all bodies of the job are loaded. */
bool body_loaded(const struct flight_job *j);
/* Makes one statement for the first held JOB_LONG: asks how long its bodies are, or loads some.
 * Tasks whose body is gone or cannot be read leave the job, which may be empty afterwards; tasks
 * that are too much for one process become jobs of their own behind it. 0 or a negative code with
 * err. */
int body_step(const struct context *ctx, struct flight *f, struct flight_job *j, struct err *err);

#endif
