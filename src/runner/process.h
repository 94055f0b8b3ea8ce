/*
 * process.h - a handler's process, from its start until nothing of its session is left. start.h,
 * stop.h, stream.h, sweep.h and crew.h work on it.
 *
 * It works on a job, and the job knows it meanwhile. Whether its handler is given one task or many
 * is for job.h and answer.h to know, and what it does without a job for keep.h.
 */
#ifndef DQ_RUNNER_PROCESS_H
#define DQ_RUNNER_PROCESS_H

#include "base/json.h"
#include "runner/capture.h"
#include "runner/job.h"
#include "runner/launch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Why it is ended before it ends by itself. */
enum process_stop {
    PROCESS_RUNS, /* it is not */
    PROCESS_TIMED_OUT,
    PROCESS_LEASE_ENDS,
    PROCESS_CANCELLED,
    PROCESS_LOST,
    PROCESS_SHUT_DOWN,
    PROCESS_START_HANGS,
    PROCESS_NOT_READY, /* in time */
    PROCESS_AT_FAULT,  /* it has not kept to the contract: see `fault` */
    PROCESS_RETIRED    /* it is not needed any more */
};

/* The pipes from it: stdout (and stderr, unless that has answers), stderr, DQ_REPLY_FD; and, if it
 * stays, the one to its stdin. */
enum { PROCESS_OUT, PROCESS_ERR, PROCESS_REPLY, PROCESS_IN, PROCESS_STREAMS };

/* Our end of a pipe. */
struct process_stream {
    struct process *process;
    int fd;       /* -1: closed */
    bool answers; /* lines for answer.h: those of DQ_REPLY_FD, or stdout; else the tail */
    bool paused;  /* it is not watched */
    struct lines lines;
};

/* What keep.c knows of a process that stays. */
struct process_kept {
    bool ready;           /* it has said so */
    bool left;            /* it gets no further job */
    bool idle;            /* ready, without a job, and in the list of its plan */
    int64_t idle_at;      /* since when */
    struct process *next; /* there */
    uint64_t mark;        /* of the files in restart_on, when it was started */
    int done;             /* jobs */
    int64_t age_at;       /* when it is too old */
    int64_t memory;       /* of its session, when that was looked at last */
    int64_t input, fed;   /* bytes of its job's input; those that were written to it */
    bool full;            /* its stdin */
    bool closed;          /* it has closed a pipe, which is its fault unless it ends at once */
};

struct process {
    struct job *job;          /* NULL: none */
    struct process_kept kept; /* if its contract is to stay */
    struct table *table;      /* which owns the plan of the launch */
    struct process *pid_next; /* of the same hash in the tables of jobs.h */
    size_t at;                /* its place among the running ones */

    bool launching; /* the launch is not over, and may be with another thread */
    bool abandoned; /* its start was given up: it is freed when the launch is over */
    struct launch launch;
    pid_t pid; /* 0: not started */

    int64_t begun_us; /* its job; steady clock */
    int64_t until_at; /* when it is to be stopped, if it still runs, and why */
    enum process_stop until_why;
    char *fault;            /* why it is PROCESS_AT_FAULT */
    struct capture spare;   /* the tail of what it has written without a job */
    enum process_stop stop; /* TERM was sent, or will be when it has been started */
    int64_t stop_at;
    bool killed;
    int64_t dropped_at;          /* when its start was given up */
    bool ending;                 /* it has ended, something of its session is still there */
    bool term_swept, kill_swept; /* the rest of its session has got the signal, too */
    bool warned;
    struct process_stream streams[PROCESS_STREAMS];
};

/* What all processes use. */
struct process_context {
    int epoll; /* streams are watched here, data.ptr is the struct process_stream */
    struct launcher *launcher;
    struct proto_out *out;
    struct json_reader *json;
};

/* A process of that plan to be started. note: see notes.h, set to NOTES_STARTS; NULL: it has none.
 */
struct process *process_new(struct table *t, struct plan *plan, volatile pid_t *note);
void process_join(struct process *p, struct job *j);
/* It and its job part. */
void process_leave(struct process *p);
/* When its job's lease requires TERM, and KILL; JOB_NEVER: it has none. */
int64_t process_lease_term_at(const struct process *p);
int64_t process_lease_kill_at(const struct process *p);
/* It must not be running, nor its launch. */
void process_free(struct process *p);

#endif
