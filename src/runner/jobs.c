/*
 * jobs.c - keeps the tables of jobs and processes.
 *
 * Invariant: a process is in by_pid exactly while it is in `running` and has a pid.
 */
#include "runner/jobs.h"

#include "base/mem.h"

struct job *jobs_find(const struct jobs *s, uint32_t number)
{
    struct job *j = s->by_number[number % JOBS_BUCKETS];

    while (j && j->number != number)
        j = j->number_next;
    return j;
}

struct process *jobs_led_by(const struct jobs *s, pid_t pid)
{
    struct process *p = s->by_pid[(unsigned)pid % JOBS_BUCKETS];

    while (p && p->pid != pid)
        p = p->pid_next;
    return p;
}

void jobs_add(struct jobs *s, struct job *j)
{
    struct job **bucket = &s->by_number[j->number % JOBS_BUCKETS];

    j->number_next = *bucket;
    *bucket = j;
}

void jobs_remove(struct jobs *s, struct job *j)
{
    struct job **at = &s->by_number[j->number % JOBS_BUCKETS];

    while (*at != j)
        at = &(*at)->number_next;
    *at = j->number_next;
}

void jobs_add_process(struct jobs *s, struct process *p)
{
    MEM_ROOM(s->running, s->running_count, s->running_cap);
    p->at = s->running_count;
    s->running[s->running_count++] = p;
}

void jobs_set_pid(struct jobs *s, struct process *p, pid_t pid)
{
    struct process **bucket = &s->by_pid[(unsigned)pid % JOBS_BUCKETS];

    p->pid = pid;
    p->pid_next = *bucket;
    *bucket = p;
}

void jobs_remove_process(struct jobs *s, struct process *p)
{
    struct process *last = s->running[--s->running_count];

    s->running[p->at] = last;
    last->at = p->at;
    if (!p->pid)
        return;
    struct process **at = &s->by_pid[(unsigned)p->pid % JOBS_BUCKETS];
    while (*at != p)
        at = &(*at)->pid_next;
    *at = p->pid_next;
}
