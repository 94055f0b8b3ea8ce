/*
 * lock.h - the overlap guard: one cron-style run of dqd per host and configuration.
 */
#ifndef DQ_POLLER_LOCK_H
#define DQ_POLLER_LOCK_H

#include "base/err.h"
#include "conf/conf.h"

/* Takes the lock: [dqd] lock_file, or by default dqd-<uid>-<hash of the configuration file,
 * database and host>.lock in $RUNTIME_DIRECTORY; else, for root, in /run; for others in the first
 * of these that is the account's alone: /run/dq, ~/.local/state/dq, /tmp/dqd-<uid>. The last two
 * are made if missing. *ret_fd holds it until closed (or the process ends). ERR_BUSY: another dqd
 * has it, the text names its pid; ERR_SYSTEM: the file cannot be created or is not ours. Does not
 * block. */
int lock_take(const struct conf *conf, int *ret_fd, struct err *err)
    __attribute__((warn_unused_result));

/* Checks that it could be taken at present, without creating or opening the file. ERR_CONFIG: no
 * account could, [dqd] lock_file is wrong; ERR_DENIED, ERR_SYSTEM: this account could not. */
int lock_check(const struct conf *conf, struct err *err) __attribute__((warn_unused_result));

#endif
