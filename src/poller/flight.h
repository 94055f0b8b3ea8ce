/*
 * flight.h - jobs: tasks that were claimed, from the claim until all of them have ended.
 */
#ifndef DQ_POLLER_FLIGHT_H
#define DQ_POLLER_FLIGHT_H

#include "base/task.h"
#include "conf/handlers.h"
#include "poller/context.h"
#include "poller/handlers_table.h"
#include "poller/minute.h"
#include "poller/settle.h"
#include "poller/tags.h"
#include "store/row/task_array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bodies that wait for a slot take at most this much memory; a single longer one is let through
 * alone. */
#define FLIGHT_BODIES_MOST ((size_t)16 << 20)

/* A task in flight. */
struct flight_task {
    uint64_t id, version; /* version 0: it is lost, and another attempt may have its version */
    uint32_t attempt, max_attempts;
    int64_t expected_at, late_from_at, expires_at;
    int64_t start_at;    /* not before, because of a rate; 0: when it is due */
    int64_t late_us;     /* then: the distance of two starts */
    int64_t close_at;    /* not then or later, because of hours; 0: at any time */
    int64_t first_at;    /* when it was first due */
    uint32_t output_seq; /* of the last chunk of its output, see follow.h */
    bool lost;           /* the row is no longer ours: whatever the handler does is not recorded */
    bool ended;          /* its result has been queued for settling */
    bool again;          /* it was added again */
};

/* JOB_SHORT came with its bodies; those of a JOB_LONG are loaded when there is room for them. */
enum job_kind { JOB_SHORT, JOB_LONG };
enum job_state { JOB_HELD, JOB_SENT, JOB_STARTED };
/* A job: one handler process, one task or a batch. */
struct flight_job {
    uint32_t number;
    enum job_kind kind;
    enum job_state state;
    struct tag_state *tag;
    struct handlers_table *table;
    uint32_t handler;   /* its index in the table */
    struct task *tasks; /* with bodies, until handed over; NULL afterwards */
    struct flight_task *flight;
    uint32_t count, open; /* tasks; of these not ended */
    uint32_t cursor;      /* where the next verdict is looked for first */
    size_t body_bytes;
    bool measured;       /* body_bytes is what the bodies really have */
    bool singly;         /* loading several at once failed */
    int64_t claimed_us;  /* when the claim was sent */
    int64_t leased_us;   /* the same, or when the last renewal was sent */
    int64_t tried_us;    /* when a renewal was last sent, even if it failed */
    int64_t deadline_us; /* leased_us + lease: certainly not ours after this */
    int64_t start_us;    /* 0: not yet */
    pid_t pid;
    bool killed; /* a kill was sent */
    bool lost;   /* some of its tasks are */
    bool blamed; /* one of its tasks has failed with the process, and counts for the others */
};

/* Oldest first. */
struct held_jobs {
    struct flight_job **jobs;
    size_t count, cap;
};

struct flight {
    const struct context *ctx;
    struct look *look;
    struct settle_results *results;
    struct minute *minute;
    struct flight_job **jobs; /* by number; NULL: free */
    size_t cap, count;
    size_t most; /* of those that the runner has, by the limit of its files */
    size_t free; /* where to look for a free number */
    /* JOB_HELD by kind, so that no short body waits for the loading of a long one */
    struct held_jobs held[2];
    size_t sent_bytes[2]; /* bodies handed over, not yet started, by kind */
    bool renewing;        /* a round of renewals is not finished: long bodies wait */
};

void flight_init(struct flight *f, const struct context *ctx, struct look *look,
                 struct settle_results *results, struct minute *minute);
void flight_free(struct flight *f); /* with its jobs */

/* --- jobs --- */

/* A new job of count tasks, which are still empty. It is neither held nor sent. */
struct flight_job *flight_job_new(struct flight *f, struct tag_state *t,
                                  struct handlers_table *table, uint32_t handler, uint32_t count);
/* Not of a held one. */
void flight_job_free(struct flight *f, struct flight_job *j);
/* How many there are. */
size_t flight_count(const struct flight *f);
/* The job of that number; NULL: there is none. */
struct flight_job *flight_job(const struct flight *f, uint32_t number);
/* All jobs, one per call: begin with *at = 0; NULL: that was all. The one returned may be freed
 * before the next call. */
struct flight_job *flight_each(const struct flight *f, uint32_t *at);
const struct handler *flight_handler(const struct flight_job *j);
/* The name of the limit that it was started under, whatever the tag's handler is meanwhile. */
const char *flight_limit(const struct flight_job *j);

/* The job was given to the runner; tasks and bodies are freed. */
void flight_sent(struct flight *f, struct flight_job *j);
/* Its handler runs since start_us. */
void flight_started(struct flight *f, struct flight_job *j, int64_t start_us, pid_t pid);

/* --- jobs that wait to be handed over: JOB_HELD --- */

/* Puts a job at that place among those of its kind. */
void flight_hold(struct flight *f, struct flight_job *j, size_t at);
size_t flight_held(const struct flight *f, enum job_kind kind);              /* how many */
struct flight_job *flight_first(const struct flight *f, enum job_kind kind); /* NULL: none */
void flight_unhold(struct flight *f, const struct flight_job *j);
void flight_unhold_all(struct flight *f);
/* Whether it may be handed over now, without too many files or too much memory in use. */
bool flight_has_room(const struct flight *f, const struct flight_job *j);

/* --- tasks --- */

size_t flight_task_count(const struct flight *f);
/* Puts their claims into refs[], which has room for flight_task_count. */
void flight_refs(const struct flight *f, struct claim_ref *refs);
/* Whether we work on this claim, or its result waits, even if its lease has ended: the runner stops
 * its handler then, and reports. */
bool flight_keeps(const struct flight *f, const struct claim_ref *ref);
/* The attempt has ended, and nothing of it is recorded. */
void flight_end_task(struct flight_job *j, struct flight_task *t);
/* The attempt has ended. Its result is queued, unless the task has ended before or is lost. id and
 * version of the settlement are filled in. */
void flight_settle_task(struct flight *f, struct flight_job *j, struct flight_task *t,
                        struct settlement *s);
/* Gives a task back that was never started. */
void flight_give_back_task(struct flight *f, struct flight_job *j, struct flight_task *t,
                           const char *why);
/* Gives back those that have not ended, and frees the job. */
void flight_give_back_job(struct flight *f, struct flight_job *j, const char *why);
/* Gives claimed tasks of a tag back that never became jobs; empties won. sent_us: of the claim. */
void flight_give_back(struct flight *f, struct tag_state *t, struct task_array *won,
                      int64_t sent_us, const char *why);

#endif
