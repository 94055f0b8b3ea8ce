/*
 * settle.h - how attempts ended, kept until the database has recorded it.
 */
#ifndef DQ_POLLER_SETTLE_H
#define DQ_POLLER_SETTLE_H

#include "poller/breaker.h"
#include "poller/context.h"
#include "poller/hold.h"
#include "poller/minute.h"
#include "poller/tags.h"
#include "store/row/rows.h"
#include "store/row/task_array.h"
#include "store/work/settle_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settle_item {
    struct settlement s; /* error and output are owned */
    struct tag_state *tag;
    int64_t queued_us;
    int64_t leased_us; /* as of the job: the task stays ours until its result is recorded */
    int64_t tried_us;  /* when a renewal was last sent, even if it failed */
    int64_t again_us;  /* it could not be recorded, and is tried again then; 0: not tried yet */
    int64_t hold_us;   /* how long it was kept back last */
    bool refused;      /* for a reason that is not its own: others of its tag would be, too */
    bool said;         /* that was logged */
};

/* The output of an attempt that another session has ended. */
struct settle_output {
    struct claim_ref ref;
    void *output;
    size_t size;
};

struct settle_results {
    const struct context *ctx;
    struct minute *minute;
    struct breakers *breakers;
    struct holds *holds; /* of their limits */
    struct settle_item *items;
    size_t count, cap;
    /* while dq_attempt is locked as a table: results that need it are tried again then, together */
    int64_t held_until_us, held_us;
    struct settle_output *outputs;
    size_t output_count, output_cap;
    bool dear_first; /* of what takes long to record */
    uint32_t turns;
};

void settle_init(struct settle_results *q, const struct context *ctx, struct minute *minute,
                 struct breakers *breakers, struct holds *holds);
void settle_free(struct settle_results *q);

/* Queues a result; copies error and output. leased_us: when the claim or the last renewal of
 * the task was sent. */
void settle_queue(struct settle_results *q, const struct settlement *s, struct tag_state *tag,
                  int64_t leased_us);
/* Queues the output of an attempt whose task was cancelled or taken back; copies it. Its row of
 * dq_attempt was written by the session that ended it. One that the server refuses is dropped,
 * which is logged. */
void settle_queue_output(struct settle_results *q, const struct claim_ref *ref, const void *output,
                         size_t size);
/* Whether there are such outputs. */
bool settle_has_outputs(const struct settle_results *q);
/* Results that are not recorded yet. */
size_t settle_count(const struct settle_results *q);
/* Puts their claims into refs[], which has room for settle_count. */
void settle_claims(const struct settle_results *q, struct claim_ref *refs);
/* Drops the results of earlier attempts that would count as results of these tasks, which are about
 * to be claimed (pending) or have been: their rows went back in time. */
void settle_overtaken(struct settle_results *q, const struct task_array *tasks);
/* Whether there are results that the server has refused, for a reason that is none of theirs. */
bool settle_refused(const struct settle_results *q);
/* Whether there are results, all of which failed to be recorded since then. */
bool settle_stuck(const struct settle_results *q, int64_t since_us);

/* --- the duty --- */

/* The other work of dqd, for which results wait a little. */
struct settle_load {
    size_t jobs;     /* claimed or running */
    size_t running;  /* of these: started */
    int64_t next_us; /* when tasks are claimed next; NEVER_US: not at the moment */
};
/* When results are to be recorded: the sooner, the less else there is to do. */
int64_t settle_next(const struct settle_results *q, const struct settle_load *load);
/* Records the results whose time has come, at most one statement's worth. *ret_back: some of the
 * tasks became pending again. Asks the database. 1: some of these were added again, and may be
 * due; 0; or a negative code with err: all stay queued. */
int settle_flush(struct settle_results *q, bool *ret_back, struct err *err);

/* Another duty, while there are outputs. Stores one of them. 0, or a negative code with err if it
 * is to be tried again: it is locked, or the connection broke. */
int settle_flush_output(struct settle_results *q, struct err *err);

/* --- leases of tasks whose result waits: renewed like those of tasks that run, so that nobody
 * repeats what has been done --- */

/* Whether this attempt is one of them. */
bool settle_has(const struct settle_results *q, const struct claim_ref *ref);
/* When the claim or last renewal of the oldest of them was sent; NEVER_US: there is none. Results
 * that have waited for too many leases are left out, here and below. */
int64_t settle_leased_us(const struct settle_results *q);
/* One statement's renewals: of leases from old_us or before, which have not been tried since
 * round_us. Sent at now_us. */
struct settle_turn {
    int64_t old_us, round_us, now_us, row_us; /* row_us: what renewing a row has taken */
    size_t bytes;                             /* of their bodies */
    bool cut; /* some are left for the next statement, because bodies are long */
};
bool settle_turn_take(struct settle_turn *turn, int64_t leased_us, int64_t tried_us, size_t bytes);
/* Puts those whose turn it is into refs[], which has room for settle_count. Returns how many. */
size_t settle_refs(struct settle_results *q, struct settle_turn *turn, struct claim_ref *refs);
/* All that settle_refs reported at sent_us, but for these faults, was renewed. */
void settle_renewed(struct settle_results *q, int64_t sent_us, const struct rows_faults *faults);

#endif
