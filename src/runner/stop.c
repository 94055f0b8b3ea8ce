/*
 * stop.c - sends TERM and KILL to processes.
 *
 * Invariant: KILL is sent before the deadline, whatever else happens.
 */
#include "runner/stop.h"

#include "runner/child.h"

#include <signal.h>
#include <sys/param.h>

void stop_process(struct process *p, enum process_stop why, int64_t now)
{
    if (p->stop != PROCESS_RUNS || (p->pid && child_has_ended(p->pid)))
        return;
    p->stop = why;
    p->stop_at = now;
    if (p->pid)
        child_signal(p->pid, SIGTERM);
}

int64_t stop_watch(struct process *p, int64_t now)
{
    int64_t lease_at = process_lease_term_at(p), stop_at = MIN(lease_at, p->until_at);

    if (p->stop == PROCESS_RUNS) {
        if (now < stop_at)
            return stop_at;
        stop_process(p, lease_at < p->until_at ? PROCESS_LEASE_ENDS : p->until_why, now);
        if (p->stop == PROCESS_RUNS)
            return JOB_NEVER;
    }
    if (p->killed)
        return JOB_NEVER;
    int64_t grace_at = p->stop_at + p->launch.plan->handler->kill_grace_ms;
    int64_t lease_kill_at = process_lease_kill_at(p), kill_at = MIN(grace_at, lease_kill_at);
    if (now < kill_at)
        return kill_at;
    p->killed = true;
    child_signal(p->pid, SIGKILL);
    return JOB_NEVER;
}
