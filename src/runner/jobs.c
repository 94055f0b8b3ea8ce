/*
 * jobs.c - keeps the tables of jobs.
 *
 * Invariant: a job is in `running` exactly while it has a slot, and in by_pid exactly while it has
 * a slot and a pid.
 */
#include "runner/jobs.h"

#include "base/mem.h"

void jobs_init(struct jobs *s, int slots)
{
    *s = (struct jobs){.running = mem_zero((size_t)slots, sizeof(struct job *))};
}

struct job *jobs_find(const struct jobs *s, uint32_t number)
{
    struct job *j = s->by_number[number % JOBS_BUCKETS];

    while (j && j->number != number)
        j = j->number_next;
    return j;
}

struct job *jobs_led_by(const struct jobs *s, pid_t pid)
{
    struct job *j = s->by_pid[(unsigned)pid % JOBS_BUCKETS];

    while (j && j->pid != pid)
        j = j->pid_next;
    return j;
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

void jobs_take_slot(struct jobs *s, struct job *j)
{
    j->slot = s->running_count;
    s->running[s->running_count++] = j;
}

void jobs_set_pid(struct jobs *s, struct job *j, pid_t pid)
{
    struct job **bucket = &s->by_pid[(unsigned)pid % JOBS_BUCKETS];

    j->pid = pid;
    j->pid_next = *bucket;
    *bucket = j;
}

void jobs_leave_slot(struct jobs *s, struct job *j)
{
    struct job *last = s->running[--s->running_count];

    s->running[j->slot] = last;
    last->slot = j->slot;
    if (!j->pid)
        return;
    struct job **at = &s->by_pid[(unsigned)j->pid % JOBS_BUCKETS];
    while (*at != j)
        at = &(*at)->pid_next;
    *at = j->pid_next;
}
