/*
 * process.h - the life of the runner process, between the fork in link.c and its end.
 */
#ifndef DQ_RUNNER_PROCESS_H
#define DQ_RUNNER_PROCESS_H

#include "runner/runner.h"

/* Serves the link until its other end is closed and every handler is gone; then ends the process. Takes the process over: closes every other
 * descriptor above 2, blocks signals. */
_Noreturn void runner_main(int sock, const struct runner_options *o);

#endif
