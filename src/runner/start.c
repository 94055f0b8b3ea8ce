/*
 * start.c - prepares launches, takes their outcome, and gives them up if they hang.
 *
 * Invariant: while j->launch is set, the launch may be with another thread (launch.h).
 */
#include "runner/start.h"

#include "base/when.h"
#include "runner/child.h"
#include "runner/launch.h"
#include "runner/notes.h"
#include "runner/stop.h"
#include "runner/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

#define START_MAX_MS 10000 /* until a program is executed: an automatic mount takes seconds */
/* After KILL, before the program was executed. A process that is still there then is stuck in the
 * kernel and will execute nothing. */
#define DROP_WAIT_MS 1000
#define DROP_LOOK_MS 20

int start_job(struct job *j, struct job_context *c, volatile pid_t *note, struct err *err)
{
    int rc;

    if (j->plan->given_up)
        return err_set(err, ERR_SYSTEM, "an earlier start still hangs");
    if (j->order.stdin_fd == PROTO_FD_LOST)
        return err_set(err, ERR_SYSTEM, "stdin: %s", strerror(EMFILE));
    struct launch *a = launch_new(j, note);
    capture_init(&j->tail, j->plan->handler->output_limit);
    j->streams[0].verdicts = job_is_batch(j);
    rc = stream_open(&j->streams[0], c, &a->out, err);
    a->err = a->out;
    if (!rc && job_is_batch(j))
        rc = stream_open(&j->streams[1], c, &a->err, err);
    j->stdin_fd = -1;
    if (rc) {
        *a->note = 0;
        launch_free(a);
        return rc;
    }
    j->launch = a;
    j->note = note;
    return 0;
}

int start_over(struct job *j, pid_t *ret_pid, struct err *err)
{
    struct launch *a = j->launch;
    int rc = a->failure.code;

    j->launch = NULL;
    if (rc) {
        *err = a->failure;
    } else {
        *ret_pid = a->pid;
        j->unsure = a->given_up;
        j->begun_us = a->start_us;
    }
    launch_free(a);
    return rc;
}

static void explain_hang(const struct job *j, bool looked_up, struct err *err)
{
    const struct handler *h = j->plan->handler;
    char after[WHEN_TEXT_SIZE];

    when_format_duration(after, START_MAX_MS);
    if (looked_up)
        err_set(err, ERR_SYSTEM,
                "starting %s has hung for %s: check the file systems of the program and of cwd",
                j->plan->argv[0], after);
    else
        err_set(err, ERR_SYSTEM, "user %s: the account database has not answered for %s",
                h->user ? h->user : "of dqd", after);
}

bool start_watch(struct job *j, int64_t now, int64_t *ret_next, struct err *err)
{
    struct launch *a = j->launch;
    int64_t limit_at = a->begun_at + START_MAX_MS, kill_at = job_lease_kill_at(j);

    if (j->stop != JOB_RUNS && j->stop_at + j->plan->handler->kill_grace_ms < kill_at)
        kill_at = j->stop_at + j->plan->handler->kill_grace_ms;
    *ret_next = MIN(limit_at, kill_at);
    if (now < *ret_next)
        return false;
    if (!a->given_up) {
        j->dropped_at = now;
        stop_job(j, limit_at < kill_at ? JOB_START_HANGS : JOB_LEASE_ENDS, now);
    }
    bool begun = !launch_drop(a);
    if (begun && (*a->note <= 0 || now - j->dropped_at < DROP_WAIT_MS)) {
        *ret_next = now + DROP_LOOK_MS;
        return false;
    }
    if (j->stop == JOB_START_HANGS)
        explain_hang(j, begun, err);
    *a->note = NOTES_CLEARED; /* the process executes nothing, and its pid may outlive it */
    a->job = NULL;
    j->launch = NULL;
    return true;
}

bool start_was_none(const struct job *j, struct err *err)
{
    if (!child_never_executed(j->pid))
        return false;
    if (j->stop == JOB_START_HANGS)
        explain_hang(j, true, err);
    return true;
}
