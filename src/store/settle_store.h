/*
 * settle_store.h - how attempts end: results of our own. Blocks on the database.
 */
#ifndef DQ_STORE_SETTLE_STORE_H
#define DQ_STORE_SETTLE_STORE_H

#include "base/task.h"
#include "store/claim_ref.h"
#include "store/db.h"
#include "store/rows.h"

/* The end of an attempt. */
struct settlement {
    uint64_t id, version; /* as claimed */
    /* TASK_SUCCEED, TASK_TRY_LATER, TASK_GIVE_UP, TASK_RELEASE, TASK_TAKE_BACK */
    enum task_event event;
    enum task_outcome outcome;
    /* TASK_TRY_LATER: due so long after the statement; otherwise the expected time stays */
    int64_t retry_delay_ms;
    /* by the database's clock as the poller knows it; TASK_TIME_NONE: never started */
    int64_t start_at, finish_at;
    int exit_code, signal; /* -1, 0: none */
    const char *error;     /* NULL: none */
    const void *output;    /* tail; NULL: none */
    size_t output_size;
};
/* Settles all of them: successes in one UPDATE, the others with their rows of dq_attempt in one
 * short transaction. applied[i] tells whether the row was still ours, also after an earlier call
 * with the same settlement broke off with ERR_LOST: calling again with the same array is safe and
 * never applies one twice. history_all: successes get a row of dq_attempt too. A release that says
 * no error (never started, as dqd is stopping) leaves none. The beginning of an output that does
 * not fit into max_allowed_packet is cut off, and a line says so. A row of dq_attempt that is there
 * already for that task and version is from before a TRUNCATE or a partial restore, and gives way.
 * faults, careful: as rows_run; those in *faults are not applied. */
int settle_store_settle(struct db *db, const struct claim_owner *owner, const struct settlement *s,
                        size_t count, bool history_all, bool careful, bool *applied,
                        struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
