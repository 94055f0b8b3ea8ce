/*
 * rights.h - what is left of root's rights in a process that takes on another account: to signal
 * any process.
 *
 * The poller needs it: the runner and its handlers belong to root and to other accounts, and a task
 * is given back only when they are known to be dead.
 */
#ifndef DQ_RUNNER_RIGHTS_H
#define DQ_RUNNER_RIGHTS_H

#include "base/err.h"

/* Makes this process, which is root's, one of that account with all its groups, for good. Of
 * root's rights it keeps CAP_KILL, put away, unless the system does not let it. Asks the
 * account database. */
int rights_become(const char *user, struct err *err) __attribute__((warn_unused_result));

/* Takes CAP_KILL into use, if it was kept, and puts it away. */
void rights_raise(void);
void rights_lower(void);

#endif
