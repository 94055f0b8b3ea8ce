/*
 * launch.h - starts processes from a loop that a start cannot block.
 *
 * The loop starts a process in its own thread, which waits until the program is executed. If that
 * takes long, because a program, a directory or the account database does not answer, another
 * thread takes over the loop and leaves that start to the first. Threads never end, because the
 * handlers that they have started would be killed with them (PR_SET_PDEATHSIG). The first thread of
 * the process starts nothing, so that its only children are orphans (orphans.h).
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
struct process;

enum launch_stage { LAUNCH_LOOKS_UP, LAUNCH_FORKS, LAUNCH_DROPPED };

/* The start of a process. */
struct launch {
    struct process *process;
    struct launch *next;
    const struct job *job; /* what it is started for; NULL: for whatever will come */
    struct plan *plan;
    const struct setup *setup; /* NULL: must be looked up */
    int in, out, err, reply;   /* close-on-exec; -1: none, for in: /dev/null */
    volatile pid_t *note;      /* gets the pid, as soon as there is one, see notes.h */
    pid_t own_note;            /* what note points to if the job has none */
    int64_t begun_at;
    /* the loop was taken over from it: it counts in its plan's `hanging` or `given_up` */
    bool slow;
    bool given_up; /* launch_drop was called */
    /* the outcome */
    int64_t begun_us; /* just before the fork; steady clock */
    pid_t pid;
    struct setup *fresh; /* what was looked up; NULL: nothing was */
    struct err failure;  /* code 0: the process was started */
    atomic_int stage;
};

/* Its launch is over or was not run: closes the descriptors, and keeps what was looked up for the
 * next start of the same handler. */
void launch_over(struct launch *a);

struct launcher;
typedef void launch_loop(void *ctx);

/* Creates the threads, and calls loop in one of them. When launch_run returns false, loop must
 * return at once without touching anything, because another thread has called it. It ends by ending
 * the process: launcher_run returns only on failure, with ERR_SYSTEM. */
int launcher_run(struct launcher *l, launch_loop *loop, void *ctx, struct err *err)
    __attribute__((warn_unused_result));
/* One per process, never freed. null_fd: stdin of jobs that have none. nice: what handlers' own
 * values are added to. files: RLIMIT_NOFILE of handlers. NULL: errno says why. */
struct launcher *launcher_new(int null_fd, int nice, const struct rlimit *files);
/* to poll(2): readable when launcher_take has one */
int launcher_fd(const struct launcher *l);
/* Starts the process. True: the launch is over, with whatever outcome. False: it took long, and
 * another thread has taken over the loop. */
bool launch_run(struct launcher *l, struct launch *a) __attribute__((warn_unused_result));
/* Launches that took long and are over by now, as a list; NULL: none. */
struct launch *launcher_take(struct launcher *l);
/* Gives up a launch that takes long. True: nothing of the handler will be executed. False: that is
 * not known yet; the process, if there is one, is killed, and the launch will be over in a moment
 * unless the process is stuck in the kernel. */
bool launch_drop(struct launch *a);

#endif
