/*
 * poller.h - dqd's first process: owns the database connection, claims, keeps and settles tasks,
 * and hands them to the runner.
 *
 * The poller never forks handlers and may block on the database; the runner is not held up by it.
 */
#ifndef DQ_POLLER_POLLER_H
#define DQ_POLLER_POLLER_H

#include "base/err.h"
#include "conf/conf.h"
#include "conf/handlers.h"

#include <stdint.h>

enum poller_mode {
    POLLER_ONCE,     /* until nothing is due and nothing runs */
    POLLER_FOR,      /* claims for a while, then lets the running handlers finish */
    POLLER_RESIDENT, /* until TERM or INT */
};

struct poller_options {
    const char *conf_path;     /* as given; NULL: the default search */
    struct conf *conf;         /* taken over */
    struct handlers *handlers; /* taken over */
    enum poller_mode mode;
    int64_t for_ms;          /* POLLER_FOR */
    const char *const *tags; /* globs: only tags that match one; NULL-terminated; NULL: all */
    int slots;               /* 0: as configured */
    int log_level;           /* 0: as configured */
    /* of the overlap guard (lock.h), taken over; closed when claiming ends; -1: none */
    int lock_fd;
    /* of the program, which executes itself again after its runner has died; NULL: it ends */
    char **argv;
};

/* Runs until the mode says to end. Forks the runner first, then reads the password, then changes to
 * [dqd] user if started as root. Signals: TERM, INT stop claiming, give back what has not started
 * and let running handlers finish (drain_timeout); a second one kills and gives back; HUP reloads
 * the files. Returns 0, or a negative code with err: ERR_UNAVAILABLE and ERR_LOST if the database
 * stayed away or read-only (in POLLER_ONCE when the first connection is refused, or for a lease
 * later on; in POLLER_FOR at the end), ERR_DENIED, ERR_CONFIG at the start, in POLLER_FOR whatever
 * the server still refuses at the end, ERR_SYSTEM when the runner died. Blocks SIGTERM, SIGINT,
 * SIGHUP and ignores SIGPIPE for the process. */
int poller_run(struct poller_options *o, struct err *err) __attribute__((warn_unused_result));

#endif
