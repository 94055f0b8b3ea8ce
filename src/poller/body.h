/*
 * body.h - bodies that do not come along with a claim.
 */
#ifndef DQ_POLLER_BODY_H
#define DQ_POLLER_BODY_H

#include "poller/flight.h"

bool body_loaded(const struct flight_job *j); /* all of its bodies */
/* One statement for the first of the held long jobs: asks how long its bodies are, or loads some.
 * Tasks whose body is gone or cannot be read leave the job, which may be empty afterwards; what is
 * too much for one process becomes jobs of their own behind it. */
int body_step(struct poller *p, struct flight_job *j, struct err *err);

#endif
