/*
 * job.h - the state of one job in the runner, from the order that brings it until it is reported as
 * ended or given back. start.h, stop.h, stream.h and finish.h work on it.
 */
#ifndef DQ_RUNNER_JOB_H
#define DQ_RUNNER_JOB_H

#include "base/json.h"
#include "runner/capture.h"
#include "runner/message.h"
#include "runner/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lane;
struct launch;
struct launcher;

#define JOB_NEVER INT64_MAX /* for times: not at all */

/* Why a job is ended before its process ends by itself. */
enum job_stop {
    JOB_RUNS, /* it is not */
    JOB_TIMED_OUT,
    JOB_LEASE_ENDS,
    JOB_CANCELLED,
    JOB_LOST,
    JOB_SHUT_DOWN,
    JOB_START_HANGS
};

/* The reading end of a pipe from the handler. */
struct job_stream {
    struct job *job;
    int fd;        /* -1: closed */
    bool verdicts; /* a batch's stdout: lines; else the tail */
    bool paused;   /* it is not watched */
};

struct job {
    uint32_t number;
    struct message_job order; /* as it came; tag, key and ids are the job's own copies */
    const uint64_t *ids;      /* order.ids */
    struct job *number_next;  /* of the same hash in the tables of jobs.h */
    struct job *pid_next;
    size_t slot;             /* its place among the running ones */
    struct lane *lane;       /* of its tag */
    struct job *prev, *next; /* in the lane or among the early ones, while it waits */
    struct table *table;     /* NULL: the digest is unknown */
    const struct plan *plan;

    int64_t start_us; /* not before; 0: its time has come */
    int64_t deadline_at;
    int64_t lease_ms; /* how far away the deadline was when it was set */
    int stdin_fd;     /* -1: none, or handed over */
    uint32_t open;    /* tasks that are not reported yet */
    bool *reported;
    char **unread, *unread_any; /* see answer.h */

    struct launch *launch; /* its start, until that is over */
    volatile pid_t *note;  /* see notes.h; NULL: it has none */
    pid_t pid;             /* 0: not started */
    int64_t begun_us;      /* just before the fork; steady clock */
    enum job_stop stop;    /* TERM was sent, or will be when it has been started */
    int64_t stop_at;
    bool killed;
    int64_t dropped_at; /* when its start was given up */
    /* its start was given up: STARTED was not reported, because only its end shows whether anything
     * was executed */
    bool unsure;
    bool ending;                 /* its leader has ended, something of its session is still there */
    bool term_swept, kill_swept; /* the rest of its session has got the signal, too */
    bool warned;
    struct job_stream streams[2];
    struct capture tail;
    bool followed, whole;
    struct capture fresh; /* if it is: what it has written since it was last asked */
    struct lines lines;
};

/* What all jobs use. */
struct job_context {
    int epoll; /* streams are watched here, data.ptr is the struct job_stream */
    struct launcher *launcher;
    struct proto_out *out;
    struct json_reader *json;
};

/* Creates a job from an order. Takes over its descriptor, copies what it points to. now: steady
 * clock, ms. */
struct job *job_new(uint32_t number, const struct message_job *m, int64_t now);
void job_free(struct job *j); /* it must not be running; NULL is fine */
bool job_is_batch(const struct job *j);
/* Begins to keep its output in `fresh`, which then has the tail so far; or ends that. */
void job_follow(struct job *j, bool begin);

/* A deadline is only ever moved into the future. */
void job_set_deadline(struct job *j, int64_t deadline_at, int64_t now);
/* When TERM is due, so that the handler has its grace, and KILL, so that it is dead by the
 * deadline. */
int64_t job_lease_term_at(const struct job *j);
int64_t job_lease_kill_at(const struct job *j);

#endif
