/*
 * process.h - a handler's process, from its start until nothing of its session is left. start.h,
 * stop.h, stream.h, sweep.h and crew.h work on it.
 *
 * It works on a job, and the job knows it meanwhile. Whether its handler is given one task or many
 * is for job.h and answer.h to know.
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
    PROCESS_START_HANGS
};

/* The pipes from it: stdout (and stderr, unless that has answers), stderr, DQ_REPLY_FD. */
enum { PROCESS_OUT, PROCESS_ERR, PROCESS_REPLY, PROCESS_STREAMS };

/* The reading end of a pipe from it. */
struct process_stream {
    struct process *process;
    int fd;       /* -1: closed */
    bool answers; /* lines for answer.h: those of DQ_REPLY_FD, or stdout; else the tail */
    bool paused;  /* it is not watched */
    struct lines lines;
};

struct process {
    struct job *job;          /* NULL: its start was given up, and the job given back */
    struct table *table;      /* which owns the plan of the launch */
    struct process *pid_next; /* of the same hash in the tables of jobs.h */
    size_t slot;              /* its place among the running ones */

    bool launching; /* the launch is not over, and may be with another thread */
    struct launch launch;
    pid_t pid; /* 0: not started */

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

/* A process to be started for the job, whose table must be set; takes over its stdin_fd. note: the
 * job's (notes.h), which is set to NOTES_STARTS; NULL: it has none. */
struct process *process_new(struct job *j, volatile pid_t *note);
/* It and its job part. Its streams must be closed. */
void process_leave(struct process *p);
/* It must not be running, nor its launch. */
void process_free(struct process *p);

#endif
