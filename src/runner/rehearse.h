/*
 * rehearse.h - runs one handler as dqd would, for a person who watches: with a runner of its own,
 * so that environment, account, limits, timeout and verdict follow the same rules.
 */
#ifndef DQ_RUNNER_REHEARSE_H
#define DQ_RUNNER_REHEARSE_H

#include "base/err.h"
#include "base/task.h"
#include "conf/handlers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rehearse;

struct rehearse_result {
    bool ran;              /* else it could not be started, see error */
    bool interrupted;      /* by INT or TERM */
    enum task_event event; /* what it would be to the task */
    int64_t retry_ms;      /* until the next attempt, without jitter; if it is retried */
    bool permanent;        /* the handler asked for no retry */
    int exit_code, signal; /* -1: it has none; 0: none */
    struct err error;      /* code 0: none */
};

/* Starts the runner. Call it before the password is read. handlers must outlive it. default_user:
 * [dqd] user. config: as struct runner_options. ERR_SYSTEM. */
int rehearse_start(const struct handlers *handlers, const char *default_user, const char *config,
                   struct rehearse **ret, struct err *err) __attribute__((warn_unused_result));
/* Runs the handler with that index for the task, whose attempt, max_attempts and version count as
 * those of the attempt, and passes its output to fn, which writes it to standard output: if that is
 * slow, the handler waits. INT and TERM stop the handler as `dq cancel` would; a second one ends
 * this process. Blocks until the handler has ended. ERR_DENIED: it would need the rights of root to
 * become the handler's account, and nothing was run. */
int rehearse_run(struct rehearse *r, const struct task *task, int handler,
                 void (*fn)(const void *p, size_t size, void *arg), void *arg,
                 struct rehearse_result *ret, struct err *err) __attribute__((warn_unused_result));
void rehearse_free(struct rehearse *r); /* ends the runner; NULL is fine */

#endif
