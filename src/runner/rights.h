/*
 * rights.h - drops root privileges for those of another account, except the one to signal any
 * process.
 *
 * The poller needs that one: the runner and its handlers belong to root and to other accounts, and
 * a task is given back only after they are known to be dead.
 */
#ifndef DQ_RUNNER_RIGHTS_H
#define DQ_RUNNER_RIGHTS_H

#include "base/err.h"

/* Makes this process, which must be root's, one of that account with all its groups, for good.
 * Keeps CAP_KILL, but not in effect, unless the system refuses that. Does nothing if the account is
 * root. Asks the account database. */
int rights_become(const char *user, struct err *err) __attribute__((warn_unused_result));

/* Put CAP_KILL into effect, if it was kept, and out of effect again. */
void rights_raise(void);
void rights_lower(void);

#endif
