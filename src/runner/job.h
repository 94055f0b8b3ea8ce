/*
 * job.h - one job in the runner, from the message that brings it to the report of its end.
 */
#ifndef DQ_RUNNER_JOB_H
#define DQ_RUNNER_JOB_H

#include "base/buf.h"
#include "base/json.h"
#include "runner/capture.h"
#include "runner/launch.h"
#include "runner/message.h"
#include "runner/plan.h"
#include "runner/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JOB_NEVER INT64_MAX

enum job_stop {
    JOB_RUNS,
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
};

struct job {
    uint32_t number;
    struct job *number_next; /* of the same hash in the tables of jobs.h */
    struct job *pid_next;
    size_t slot;             /* its place among the running ones */
    struct lane *lane;       /* of its tag */
    struct job *prev, *next; /* in the lane or among the early ones, while it waits */
    struct table *table;     /* NULL: the digest is unknown */
    const struct plan *plan;

    uint64_t digest;
    uint32_t handler;
    int64_t start_us;   /* not before; 0: its time has come */
    int64_t vouched_us; /* the poller has said that it may start until then */
    int64_t deadline_at;
    int64_t lease_ms; /* how long the deadline was away when it was set */
    int stdin_fd;     /* -1: none, or handed over */
    bool stdin_lost;  /* the descriptor did not arrive */
    char *tag, *key;
    uint32_t attempt, max_attempts;
    int64_t expected_at;
    uint64_t token;
    uint32_t count, open; /* tasks; of these not reported yet */
    uint64_t *ids;
    bool *reported;
    char **unread, *unread_any; /* see answer.h */

    struct launch *launch;      /* its start, as long as that takes */
    volatile pid_t *note;       /* where the poller finds who leads it */
    pid_t pid;                  /* 0: not started */
    int64_t start_at, begun_us; /* steady clock, ms and us */
    enum job_stop stop; /* why it is to end: TERM was sent, or will be when it has been started */
    int64_t stop_at;
    bool killed;
    int64_t dropped_at; /* when its start was given up */
    /* its start was given up: whether it executed anything is known at its end, and STARTED was not
     * reported */
    bool unsure;
    bool ending;                 /* its leader has ended, something of its session is still there */
    bool term_swept, kill_swept; /* the rest of its session has got the signal, too */
    bool warned;
    struct job_stream streams[2];
    struct capture tail;
    struct lines lines;
};

/* What all jobs use. */
struct job_context {
    int epoll; /* streams are watched here, data.ptr is the struct job_stream */
    struct launcher *launcher;
    struct proto_out *out;
    struct json_reader *json;
};

/* Of that message; the descriptor is the job's from now on, texts are copied. */
struct job *job_new(uint32_t number, const struct message_job *m, int64_t now);
void job_free(struct job *j); /* of one that does not run; NULL is fine */
bool job_is_batch(const struct job *j);

/* Prepares its launch, which is to be run then. note: see struct launch, NULL: nobody looks; it is
 * set to PROCESS_STARTS. ERR_SYSTEM: it cannot be started. */
int job_start(struct job *j, struct job_context *c, volatile pid_t *note, struct err *err)
    __attribute__((warn_unused_result));
/* Takes what became of it; frees the launch. 0: it runs, or has run: STARTED is to be reported
 * unless it is `unsure`. ERR_SYSTEM: it could not be started. */
int job_launched(struct job *j, pid_t *ret_pid, struct err *err)
    __attribute__((warn_unused_result));
/* Frees what became of a start that nobody waits for. */
void job_launch_free(struct launch *a);
void job_set_deadline(struct job *j, int64_t deadline_at, int64_t now);
/* TERM, and later KILL; only the first reason counts. Nothing if the process has ended already: in
 * time for all we know, because this process may have been frozen. */
void job_stop(struct job *j, enum job_stop why, int64_t now);
/* Stops and kills what is to be by now. Returns when to look again. */
int64_t job_watch(struct job *j, int64_t now);
/* The same while its start hangs. True: it is given up, and whatever comes of it is killed; it is
 * to be returned, the reason is in err (code 0: it was to end anyway). */
bool job_watch_launch(struct job *j, int64_t now, int64_t *ret_next, struct err *err);
/* From when on a waiting job would be stopped as soon as it runs. */
int64_t job_late_at(const struct job *j);
/* Takes what a stream holds, at most max bytes; closes it at its end. */
void job_read(struct job_stream *s, struct job_context *c, size_t max);
/* The leader has ended, and nothing else of its session is left: reaps it, reports all that is left
 * to report. */
void job_finish(struct job *j, struct job_context *c);
/* Reports that it was not run. why NULL: for no fault. */
void job_return(struct job *j, struct job_context *c, bool cannot_start, const char *why);

#endif
