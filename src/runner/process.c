/*
 * process.c - creates and frees processes.
 *
 * Invariant: a process and its job know each other, or neither knows the other.
 */
#include "runner/process.h"

#include "base/mem.h"
#include "runner/notes.h"

#include <stdlib.h>

struct process *process_new(struct table *t, struct plan *plan, volatile pid_t *note)
{
    struct process *p = mem_zero(1, sizeof *p);

    p->table = t;
    p->table->users++;
    p->until_at = JOB_NEVER;
    p->launch.process = p;
    p->launch.plan = plan;
    p->launch.setup = plan->setup;
    p->launch.in = p->launch.out = p->launch.err = p->launch.reply = -1;
    p->launch.note = note ? note : &p->launch.own_note;
    *p->launch.note = NOTES_STARTS;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        p->streams[i] = (struct process_stream){.process = p, .fd = -1};
    p->streams[PROCESS_OUT].answers = p->launch.plan->contract->on_stdout;
    p->streams[PROCESS_REPLY].answers = true;
    return p;
}

void process_join(struct process *p, struct job *j)
{
    p->job = j;
    j->process = p;
}

int64_t process_lease_term_at(const struct process *p)
{
    return p->job ? job_lease_term_at(p->job) : JOB_NEVER;
}

int64_t process_lease_kill_at(const struct process *p)
{
    return p->job ? job_lease_kill_at(p->job) : JOB_NEVER;
}

void process_leave(struct process *p)
{
    p->job->process = NULL;
    p->job = NULL;
}

void process_free(struct process *p)
{
    if (p->job)
        process_leave(p);
    launch_over(&p->launch);
    for (int i = 0; i < PROCESS_STREAMS; i++)
        lines_done(&p->streams[i].lines);
    p->table->users--;
    capture_done(&p->spare);
    free(p->fault);
    free(p);
}
