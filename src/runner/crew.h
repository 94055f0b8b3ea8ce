/*
 * crew.h - the runner's jobs from their place in the line to their end: which starts next, what is
 * stopped when, what has ended.
 */
#ifndef DQ_RUNNER_CREW_H
#define DQ_RUNNER_CREW_H

#include "runner/job.h"
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
    size_t launching, ending; /* of the running jobs */
    int64_t ending_at;        /* sessions that could not be emptied are looked at again */
    bool sweep;               /* a signal is to reach the rest of a session */
    int64_t watch_at;         /* no deadline of any job is before this */
    struct job_context c;
};

/* To be called by the first thread of the process. c is the caller's to fill. */
void crew_init(struct crew *w, int slots, volatile pid_t *notes);

/* A job that came in waits for its turn. */
void crew_add(struct crew *w, struct job *j, struct table *t);
/* One that waits goes back to the poller. why NULL: for no fault. */
void crew_give_back(struct crew *w, struct job *j, bool cannot_start, const char *why);
/* One that has a slot is to end. */
void crew_stop(struct crew *w, struct job *j, enum job_stop why);

enum crew_starts {
    CREW_DONE, /* no more can start */
    CREW_MORE, /* there may be more */
    /* a start hangs, and another thread has taken over: the caller leaves everything alone */
    CREW_LEFT,
};
/* Starts some of what may start. */
enum crew_starts crew_start(struct crew *w);

/* Looks at every deadline, if one may have come, and notes the next. */
void crew_watch(struct crew *w);
void crew_watch_from(struct crew *w, int64_t at);
/* Signals reach what is not in the group of its leader. */
void crew_sweep(struct crew *w);
/* Takes what became of starts that took long, and of children. */
void crew_reap(struct crew *w);
bool crew_has_ending(const struct crew *w); /* it is time to reap though no child has ended */

#endif
