/*
 * process.c - creates and frees processes.
 *
 * Invariant: a process and its job know each other, or neither knows the other.
 */
#include "runner/process.h"

#include "base/mem.h"
#include "runner/notes.h"

#include <stdlib.h>

struct process *process_new(struct job *j, volatile pid_t *note)
{
    struct process *p = mem_zero(1, sizeof *p);

    p->job = j;
    j->process = p;
    p->table = j->table;
    p->table->users++;
    p->launch.process = p;
    p->launch.job = j;
    p->launch.plan = &j->table->plans[j->order.handler];
    p->launch.setup = p->launch.plan->setup;
    p->launch.in = j->order.stdin_fd;
    p->launch.out = p->launch.err = p->launch.reply = j->order.stdin_fd = -1;
    p->launch.note = note ? note : &p->launch.own_note;
    *p->launch.note = NOTES_STARTS;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        p->streams[i] = (struct process_stream){.process = p, .fd = -1};
    p->streams[PROCESS_OUT].answers = p->launch.plan->contract->on_stdout;
    p->streams[PROCESS_REPLY].answers = true;
    return p;
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
    free(p);
}
