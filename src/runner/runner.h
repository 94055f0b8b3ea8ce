/*
 * runner.h - the runner process, which link.h forks: serves the link to the poller, and starts and
 * ends handlers.
 */
#ifndef DQ_RUNNER_RUNNER_H
#define DQ_RUNNER_RUNNER_H

#include "conf/handlers.h"

#include <sys/types.h>

struct runner_options {
    const char *handlers_path;
    /* the first table; the runner has a copy of its own, because it is forked */
    const struct handlers *handlers;
    int slots; /* handler processes at a time */
    /* if started as root: account of handlers without `user:`; NULL or "": root */
    const char *default_user;
    const char *config; /* dqd's own file, for DQ_CONFIG; NULL: none */
    int log_level;
};

/* Serves the link until its other end is closed and every handler is gone, and then ends the
 * process. Takes over the process: closes all other descriptors above 2, blocks signals. notes: see
 * notes.h. */
_Noreturn void runner_main(int sock, const struct runner_options *o, volatile pid_t *notes);

#endif
