/*
 * flight.h - tasks on their way: claimed, handed to the runner, started, ended.
 */
#ifndef DQ_POLLER_FLIGHT_H
#define DQ_POLLER_FLIGHT_H

#include "base/task.h"
#include "conf/handlers.h"
#include "poller/tags.h"
#include "store/task_array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct poller;

/* Bodies that wait for a slot take at most this much memory; a single longer one is let through
 * alone. */
#define BODIES_MOST ((size_t)16 << 20)

/* A handlers table stays until the last job that was started by it has ended. */
struct handlers_table {
    struct handlers *handlers;
    unsigned users; /* jobs, and the poller itself for the current one */
};

/* A task in flight. */
struct flight_task {
    uint64_t id, version;
    uint32_t attempt, max_attempts;
    int64_t expected_at;
    bool lost;  /* the row is no longer ours: whatever the handler does is not recorded */
    bool ended; /* its result has been queued for settling */
};

/* JOB_SHORT came with its bodies, those of a JOB_LONG are loaded when there is room for them. */
enum job_kind { JOB_SHORT, JOB_LONG };
enum job_state { JOB_HELD, JOB_SENT, JOB_STARTED };
/* A job: one handler process, one task or a batch. */
struct flight_job {
    uint32_t number; /* index in flight.jobs */
    enum job_kind kind;
    enum job_state state;
    struct tag_state *tag;
    struct handlers_table *table;
    uint32_t handler;
    struct task *tasks; /* with bodies, until handed over; NULL afterwards */
    struct flight_task *flight;
    uint32_t count, open; /* tasks; of these not ended */
    uint32_t cursor;      /* where the next verdict is looked for first */
    size_t body_bytes;
    bool measured;       /* body_bytes is what the bodies really have */
    bool singly;         /* loading several at once failed */
    int64_t leased_us;   /* when the claim or the last renewal was sent */
    int64_t deadline_us; /* leased_us + lease: not ours for sure after this */
    int64_t start_us;    /* 0: not yet */
    pid_t pid;
    bool killed; /* a kill was sent */
};

/* Oldest first. */
struct held_jobs {
    struct flight_job **jobs;
    size_t count, cap;
};

struct flight {
    struct flight_job **jobs; /* by number; NULL: free */
    size_t cap, count;
    size_t free; /* where to look for a free number */
    /* JOB_HELD by kind, so that no short body waits for the loading of a long one */
    struct held_jobs held[2];
    size_t sent_bytes[2]; /* bodies handed over, not yet started, by kind */
};

void flight_take(struct poller *p, struct tag_state *t, struct task_array *won,
                 int64_t sent_us); /* tasks become jobs; empties won */
void flight_release(struct poller *p, struct task_array *won,
                    const char *why); /* gives claimed tasks back unstarted; empties won */
int64_t flight_next(const struct poller *p);
int flight_load(struct poller *p,
                /* duty: hands held jobs over; bodies of the first long one, a statement a time */
                struct err *err);
bool flight_holds(const struct poller *p); /* whether there are held jobs */
void flight_return_held(struct poller *p, const char *why);
struct flight_job *flight_job_new(struct poller *p, struct tag_state *t,
                                  /* of the current table; tasks are still empty */
                                  uint32_t count);
/* at that place among the held jobs of its kind */
void flight_hold(struct poller *p, struct flight_job *j, size_t at);
void flight_release_task(struct poller *p, struct flight_job *j, struct flight_task *f,
                         const char *why);
const struct handler *flight_handler(const struct flight_job *j);
void flight_end_task(struct flight_job *j, struct flight_task *f);
/* gives its open tasks back, frees it */
void flight_release_job(struct poller *p, struct flight_job *j, const char *why);
void flight_job_free(struct poller *p, struct flight_job *j);
void flight_free(struct poller *p);

#endif
