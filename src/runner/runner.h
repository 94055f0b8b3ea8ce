/*
 * runner.h - the runner process: serves the link to its poller (link.h, which forks it), starts and
 * ends handlers.
 */
#ifndef DQ_RUNNER_RUNNER_H
#define DQ_RUNNER_RUNNER_H

#include "conf/handlers.h"

#include <sys/types.h>

struct runner_options {
    const char *handlers_path;
    /* the table to begin with; the child keeps its own copy (it is forked) */
    const struct handlers *handlers;
    int slots; /* handler processes at a time */
    /* started as root: account of handlers without `user:`; NULL or "": stay */
    const char *default_user;
    int log_level;
};

/* Serves the link until its other end is closed and every handler is gone; then ends the process.
 * Takes the process over: closes every other descriptor above 2, blocks signals. notes:
 * see notes.h. */
_Noreturn void runner_main(int sock, const struct runner_options *o, volatile pid_t *notes);

#endif
