/*
 * launch.h - a loop that starts processes, and is not held up if a start hangs.
 *
 * The loop starts them in its own thread, which waits until the program is executed. If that takes
 * long, because a program, a directory or the account database does not answer, another thread
 * takes the loop over and leaves that start to the first. Threads never end: the handlers they have
 * started would be killed with them (PR_SET_PDEATHSIG). The first thread of the process starts
 * nothing, so that its children are orphans only (orphans.h).
 */
#ifndef DQ_RUNNER_LAUNCH_H
#define DQ_RUNNER_LAUNCH_H

#include "base/err.h"
#include "runner/plan.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct job;

enum launch_stage { LAUNCH_LOOKS_UP, LAUNCH_FORKS, LAUNCH_DROPPED };

/* One start. */
struct launch {
    struct launch *next;
    /* what is to be started; the loop sets job to NULL when it does not care any more, see
     * launch_drop */
    struct job *job;
    struct table *table; /* keeps the plan */
    struct plan *plan;
    const struct setup *setup; /* NULL: to be looked up */
    int in, out, err;          /* close-on-exec; -1: none, for in: /dev/null */
    volatile pid_t *note;      /* of the process, as soon as there is one */
    pid_t own_note;            /* for note to point to */
    int64_t begun_at;
    /* the loop was taken over from it; it counts in its plan's `hanging`, or `given_up` */
    bool slow;
    bool given_up; /* launch_drop was called */
    /* what came of it */
    int64_t start_us; /* steady clock, just before the fork */
    pid_t pid;
    struct setup *fresh; /* what was looked up, now the caller's; NULL: nothing was */
    struct err failure;  /* code 0: it runs, or ran */
    atomic_int stage;
};

/* Of a job that has its table, with the job's stdin, which is the launch's from now on. note: see
 * notes.h, set to NOTES_STARTS; NULL: nobody reads it. */
struct launch *launch_new(struct job *j, volatile pid_t *note);
/* Of one that is over, or was not run: closes its descriptors and keeps what was looked up for the
 * next start by the same plan. */
void launch_free(struct launch *a);

struct launcher;
typedef void launch_loop(void *ctx);

/* Makes the threads, and calls loop in one of them. Whenever launch_run returns false the loop
 * returns at once and touches nothing, because another thread has called it. It ends by ending the
 * process. ERR_SYSTEM, or does not return. */
int launcher_run(struct launcher *l, launch_loop *loop, void *ctx, struct err *err)
    __attribute__((warn_unused_result));
/* One per process; never freed. null_fd: stdin of jobs without one; files: RLIMIT_NOFILE of
 * handlers. NULL: errno says why. */
struct launcher *launcher_new(int null_fd, int nice, const struct rlimit *files);
/* to poll(2): readable when launcher_take has something */
int launcher_fd(const struct launcher *l);
/* Starts it. True: it is over, whatever came of it. False: it took long, and another thread has
 * taken over the loop. */
bool launch_run(struct launcher *l, struct launch *a) __attribute__((warn_unused_result));
/* Those that took long and are over, whatever came of them; NULL: none. */
struct launch *launcher_take(struct launcher *l);
/* Gives up one that took long. True: nothing of the handler will be executed. False: it is not
 * known yet whether something was; it is killed, and over in a moment unless it is stuck in the
 * kernel. */
bool launch_drop(struct launch *a);

#endif
