/*
 * job.h - the work of one order: its tasks, their verdicts, its lease and what it has printed, from
 * the order that brings it until it is reported as ended or given back. A process (process.h) does
 * it.
 */
#ifndef DQ_RUNNER_JOB_H
#define DQ_RUNNER_JOB_H

#include "runner/capture.h"
#include "runner/message.h"
#include "runner/plan.h"
#include "runner/verdict.h"

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct process;

#define JOB_NEVER INT64_MAX /* for times: not at all */

struct job {
    uint32_t number;
    /* as it came, with tag, key, ids and input of its own; start_us is 0 when its time has come,
     * and stdin_fd -1 when it has a process */
    struct message_job order;
    const uint64_t *ids;     /* order.ids */
    struct job *number_next; /* of the same hash in the tables of jobs.h */
    struct process *process; /* works on it; NULL: none yet */
    struct lane *lane;       /* of its tag */
    struct job *prev, *next; /* in the lane or among the early ones, while it waits */
    struct table *table;     /* NULL: the digest is unknown */
    const struct plan *plan;

    int64_t deadline_at;
    int64_t lease_ms; /* how far away the deadline was when it was set */
    uint32_t open;    /* tasks that are not reported yet */
    bool *reported;
    struct job_id *by_id;       /* see answer.c; NULL: nobody has asked for an id yet */
    bool replied;               /* a line was written to DQ_REPLY_FD */
    bool answered;              /* the last one there is an answer, if it is to count at the end */
    struct verdict answer;      /* with a text of its own */
    char **unread, *unread_any; /* see answer.h */

    struct capture tail; /* of its output */
    bool followed, whole;
    struct capture fresh; /* if it is followed: what is new since it was last asked */
};

/* Creates a job from an order. Takes over its descriptor, copies what it points to. now: steady
 * clock, ms. */
struct job *job_new(uint32_t number, const struct message_job *m, int64_t now);
void job_free(struct job *j); /* no process may work on it; NULL is fine */
/* Begins to keep its output in `fresh`, which then has the tail so far; or ends that. */
void job_follow(struct job *j, bool begin);

/* A deadline is only ever moved into the future. */
void job_set_deadline(struct job *j, int64_t deadline_at, int64_t now);
/* When TERM is due, so that the handler has its grace, and KILL, so that it is dead by the
 * deadline. */
int64_t job_lease_term_at(const struct job *j);
int64_t job_lease_kill_at(const struct job *j);

#endif
