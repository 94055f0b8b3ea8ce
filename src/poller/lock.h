/*
 * lock.h - the overlap guard: one cron-style run of dqd per host and configuration.
 */
#ifndef DQ_POLLER_LOCK_H
#define DQ_POLLER_LOCK_H

#include "base/err.h"
#include "conf/conf.h"

/* Takes the lock: [dqd] lock_file, or by default dqd-<uid>-<hash of the configuration file and
 * database>.lock in $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR, else /run for root and /tmp for
 * others. *ret_fd holds it until closed (or the process ends). ERR_BUSY: another one has it, the
 * text names its pid; ERR_SYSTEM: the file cannot be made or is not ours. Does not block. */
int lock_take(const struct conf *conf, int *ret_fd, struct err *err)
    __attribute__((warn_unused_result));

/* Whether it could be taken as things are, without making or opening anything. ERR_CONFIG: not by
 * anybody, [dqd] lock_file is wrong; ERR_DENIED: not by this account. */
int lock_check(const struct conf *conf, struct err *err) __attribute__((warn_unused_result));

#endif
