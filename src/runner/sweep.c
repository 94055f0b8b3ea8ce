/*
 * sweep.c - signals sessions. Invariant: a leader whose session is signalled has not been reaped.
 */
#include "runner/sweep.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/when.h"
#include "runner/child.h"
#include "runner/session.h"

#include <signal.h>

static bool wants_term(void *ctx, pid_t session)
{
    const struct process *p = jobs_led_by(ctx, session);

    return p && p->stop != PROCESS_RUNS && !p->term_swept;
}

static bool wants_kill(void *ctx, pid_t session)
{
    const struct process *p = jobs_led_by(ctx, session);

    return p && p->killed && !p->kill_swept;
}

void sweep_signals(struct jobs *jobs)
{
    bool term = false, kill = false;

    for (size_t i = 0; i < jobs->running_count; i++) {
        term |= wants_term(jobs, jobs->running[i]->pid);
        kill |= wants_kill(jobs, jobs->running[i]->pid);
    }
    if (kill && session_kill(wants_kill, jobs, NULL) != SESSION_EMPTY)
        log_event(LOG_DEBUG, "processes of a session are left until its leader ends", "%s", "");
    if (term)
        session_term(wants_term, jobs);
    for (size_t i = 0; i < jobs->running_count; i++) {
        struct process *p = jobs->running[i];
        p->term_swept |= p->pid && p->stop != PROCESS_RUNS;
        p->kill_swept |= p->killed;
    }
}

static bool is_of(void *ctx, pid_t session)
{
    return session == ((const struct process *)ctx)->pid;
}

bool sweep_ended(struct process *p, struct orphans *orphans)
{
    const char *name = p->job ? p->job->order.tag : p->launch.plan->handler->name;
    enum session_left left = SESSION_EMPTY;
    pid_t denied = 0;

    child_signal(p->pid, SIGKILL);
    orphans_look(orphans, when_steady());
    if (orphans_since(orphans, p->launch.begun_us / 1000))
        left = session_kill(is_of, p, &denied);
    if (left == SESSION_DENIED && !p->warned)
        log_fold(when_steady_us(), LOG_WARN,
                 "not permitted to kill a process that a handler left behind", name, NULL,
                 "tag=%s session=%d pid=%d", log_quote(name), (int)p->pid, (int)denied);
    p->warned |= left == SESSION_DENIED;
    return left == SESSION_EMPTY || left == SESSION_HIDDEN ||
           (left == SESSION_DENIED && p->stop == PROCESS_RUNS);
}
