/*
 * startup.h - what dqd's first process sets up for itself before it begins its work.
 */
#ifndef DQ_POLLER_STARTUP_H
#define DQ_POLLER_STARTUP_H

#include "base/err.h"
#include "conf/conf.h"
#include "store/db/db_session.h"
#include "store/row/claim_ref.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/* Blocks TERM, INT and HUP, which *ret_fd then reports (signalfd), and ignores PIPE. 0 or
 * ERR_SYSTEM.
 */
int startup_signals(int *ret_fd, struct err *err) __attribute__((warn_unused_result));
/* If the process is root's: gives that up for the account, "": none. *ret_dropped: whether it did.
 * 0 or a negative code with err. */
int startup_drop_root(const char *user, bool *ret_dropped, struct err *err)
    __attribute__((warn_unused_result));
/* Raises RLIMIT_FSIZE as far as it goes: it applies to files in memory, too, to which bodies are
 * written. The runner, and with it the handlers, must have been started before: they keep the limit
 * as it was given, which is also returned. */
void startup_lift_file_limit(struct rlimit *ret_given);
/* This process as the owner of tasks, with a new token. host is the caller's buffer for its name. 0
 * or ERR_SYSTEM. */
int startup_owner(struct claim_owner *o, char *host, size_t size, struct err *err)
    __attribute__((warn_unused_result));
/* What sessions of a poller need. */
struct db_session startup_session(const struct conf *conf);

#endif
