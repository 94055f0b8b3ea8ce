/*
 * crew.h - the runner's jobs and processes: starts, stops and reaps them when it is time.
 */
#ifndef DQ_RUNNER_CREW_H
#define DQ_RUNNER_CREW_H

#include "runner/jobs.h"
#include "runner/orphans.h"
#include "runner/queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct crew {
    int slots;
    volatile pid_t *notes; /* see notes.h */
    struct jobs jobs;
    struct queue queue;
    struct orphans orphans;
    size_t launching, ending; /* of the running processes */
    int64_t ending_at;        /* when to look at sessions again that could not be emptied */
    bool sweep;               /* the rest of a session must get a signal */
    int64_t watch_at;         /* no job has a deadline before this */
    int64_t tell_at;          /* when crew_tell reports again; JOB_NEVER: nothing stays */
    int64_t tell_from;        /* not before: a report costs a look at all processes */
    struct process_context c;
};

/* Must be called by the first thread of the process. The caller fills w->c. */
void crew_init(struct crew *w, int slots, volatile pid_t *notes);

/* Queues a job. t is its table. */
void crew_add(struct crew *w, struct job *j, struct table *t);
/* Gives a queued job back to the poller, and frees it. why: the fault; NULL: none. */
void crew_give_back(struct crew *w, struct job *j, int cannot_start, const char *why);
/* Stops a process that has a job. */
void crew_stop(struct crew *w, struct process *p, enum process_stop why);

enum crew_starts {
    CREW_DONE, /* no other job can start now */
    CREW_MORE, /* there may be others: call again */
    /* a start hangs, and another thread owns the loop: the caller must not touch anything */
    CREW_LEFT,
};
/* Starts some of the jobs that may start. */
enum crew_starts crew_start(struct crew *w);

/* Stops what is past a deadline, and sets watch_at to the next one. Cheap if none is due. */
void crew_watch(struct crew *w);
/* Makes crew_watch look at that time at the latest. */
void crew_watch_from(struct crew *w, int64_t at);
/* Sends the signals of stopped processes to the rest of their sessions, outside their groups, if
 * there is anything to send: goes through all processes of the host. */
void crew_sweep(struct crew *w);
/* Handles starts that took long and are over, and children that have ended. */
void crew_reap(struct crew *w);
/* Call it often: reports now and then what becomes of processes of the table that stay. */
void crew_tell(struct crew *w, struct table *t);
/* Call it when something was read from a process: its job may be over although it is not. */
void crew_heard(struct crew *w, struct process *p);
/* Processes that stay of tables that are old now end when they are idle. */
void crew_renew(struct crew *w);
/* Whether it is time to reap although no child has ended. */
bool crew_has_ending(const struct crew *w);

#endif
