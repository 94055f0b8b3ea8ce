/*
 * stop.c - sends TERM and KILL to the leaders of jobs.
 *
 * Invariant: KILL is sent before the deadline, whatever else happens.
 */
#include "runner/stop.h"

#include "runner/child.h"

#include <signal.h>
#include <sys/param.h>

void stop_job(struct job *j, enum job_stop why, int64_t now)
{
    if (j->stop != JOB_RUNS || (j->pid && child_has_ended(j->pid)))
        return;
    j->stop = why;
    j->stop_at = now;
    if (j->pid)
        child_signal(j->pid, SIGTERM);
}

int64_t stop_watch(struct job *j, int64_t now)
{
    int64_t lease_at = job_lease_term_at(j);
    int64_t timeout_at = j->begun_us / 1000 + j->plan->handler->timeout_ms;
    int64_t stop_at = MIN(lease_at, timeout_at);

    if (j->stop == JOB_RUNS) {
        if (now < stop_at)
            return stop_at;
        stop_job(j, lease_at < timeout_at ? JOB_LEASE_ENDS : JOB_TIMED_OUT, now);
        if (j->stop == JOB_RUNS)
            return JOB_NEVER;
    }
    if (j->killed)
        return JOB_NEVER;
    int64_t grace_at = j->stop_at + j->plan->handler->kill_grace_ms;
    int64_t lease_kill_at = job_lease_kill_at(j), kill_at = MIN(grace_at, lease_kill_at);
    if (now < kill_at)
        return kill_at;
    j->killed = true;
    child_signal(j->pid, SIGKILL);
    return JOB_NEVER;
}
