/*
 * attempt_store.h - the recorded attempts of tasks: dq_attempt. All functions block on the
 * database.
 */
#ifndef DQ_STORE_FLEET_ATTEMPT_STORE_H
#define DQ_STORE_FLEET_ATTEMPT_STORE_H

#include "base/column.h"
#include "base/task.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"

struct task_attempt {
    uint64_t task_id, version; /* its key: of the task, and of the claim */
    uint32_t attempt;
    char *host;
    uint32_t pid;
    int64_t start_at, finish_at;
    int outcome;           /* enum task_outcome */
    int exit_code, signal; /* -1, 0: none */
    char *error;
    void *output;
    size_t output_size;
};
/* clang-format off */
/* Its columns, as TASK_COLUMNS in base/task.h: X(in dq_attempt, name, type, field, cut at, flags,
 * get, help). get is in src/cli/verb/cmd_show.c. Those of the key are not shown. */
#define ATTEMPT_STORE_KEY(X)                                                                              \
    X("task_id", "task", ID, task_id, 0, COLUMN_NEEDED, NULL, "number of its task")                       \
    X("version", "version", U64, version, 0, COLUMN_NEEDED, NULL, "of the task while it ran")
#define ATTEMPT_STORE_COLUMNS(X)                                                                          \
    X("attempt", "attempt", U32, attempt, 0, COLUMN_NEEDED, NULL, "number")                               \
    X("start_time", "started", TIME, start_at, 0, COLUMN_MOVES, NULL, "when its handler was started")     \
    X("finish_time", "finished", TIME, finish_at, 0, COLUMN_NEEDED, NULL, "when the handler ended")       \
    X(NULL, "took", MS, start_at, 0, 0, get_took, "how long it took")                                     \
    X("outcome", "outcome", OUTCOME, outcome, 0, COLUMN_NEEDED, NULL, "how it ended")                     \
    X("exit_code", "exit", EXIT, exit_code, 0, COLUMN_MOVES, NULL, "exit status")                         \
    X("`signal`", "signal", SIGNAL, signal, 0, COLUMN_MOVES, NULL, "signal that ended it")                \
    X("host", "host", TEXT, host, 0, COLUMN_MOVES, NULL, "where it ran")                                  \
    X("pid", "pid", SOME, pid, 0, COLUMN_MOVES, NULL, "process id of dqd there")                          \
    X("error_stack", "error", TEXT, error, 60, COLUMN_MOVES, NULL, "why it failed")                       \
    X("output", "output", BYTES, output, 0, COLUMN_MOVES, NULL, "end of its output")
/* clang-format on */
extern const struct column attempt_store_columns[];
extern const size_t attempt_store_column_count;

/* Lists the attempts of a task that have ended, oldest first. Free *ret with attempt_store_free. */
int attempt_store_list(struct db *db, uint64_t id, struct task_attempt **ret, size_t *ret_count,
                       struct err *err) __attribute__((warn_unused_result));
/* Calls fn for each attempt of several tasks, by task and age; `a` is valid until it returns. One
 * result, fetched row by row: fn must not use the connection. */
int attempt_store_each(struct db *db, const uint64_t *ids, size_t n,
                       void (*fn)(const struct task_attempt *a, void *arg), void *arg,
                       struct err *err) __attribute__((warn_unused_result));
void attempt_store_free(struct task_attempt *a, size_t count);

/* Adds a row of dq_attempt for each of refs that is running, with the columns of its task. Call it
 * before their UPDATE, in the same transaction, with the rows locked. */
int attempt_store_add_running(struct db *db, const struct claim_ref *refs, size_t count,
                              enum task_outcome outcome, struct err *err)
    __attribute__((warn_unused_result));

/* Adds the output of an attempt that another session has ended (cancelled, taken back) to its row,
 * unless the row has one, or is gone. Text that does not fit into a packet of the server loses its
 * beginning. */
int attempt_store_add_output(struct db *db, const struct claim_ref *ref, const void *output,
                             size_t size, struct err *err) __attribute__((warn_unused_result));

/* Deletes rows of dq_attempt for attempts that have not ended yet: they belong to earlier tasks
 * with the same ids (before a TRUNCATE, or a partial restore). Call it after an insert returned
 * ERR_DUPLICATE, in the transaction that repeats the insert. */
int attempt_store_drop_stale(struct db *db, const struct claim_ref *refs, size_t count,
                             struct err *err) __attribute__((warn_unused_result));

#endif
