/*
 * jobs.h - finds the runner's jobs by number, and their processes: by pid, and all of them.
 */
#ifndef DQ_RUNNER_JOBS_H
#define DQ_RUNNER_JOBS_H

#include "runner/process.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JOBS_BUCKETS 1024

struct jobs {
    struct job *by_number[JOBS_BUCKETS];
    struct process *by_pid[JOBS_BUCKETS];
    struct process **running; /* also while they are being started */
    size_t running_count, running_cap;
    size_t taken; /* slots: of running processes that have a job */
};

struct job *jobs_find(const struct jobs *s, uint32_t number); /* NULL: there is none */
struct process *jobs_led_by(const struct jobs *s, pid_t pid); /* NULL: there is none */
void jobs_add(struct jobs *s, struct job *j);                 /* its number must be free */
void jobs_remove(struct jobs *s, struct job *j);
void jobs_add_process(struct jobs *s, struct process *p);
void jobs_set_pid(struct jobs *s, struct process *p, pid_t pid);
void jobs_remove_process(struct jobs *s, struct process *p);

#endif
