/*
 * rows.h - statements over many rows of dq_task: a row that cannot be changed does not keep the
 * others from it. Outside src/store, only rows_take and the list of faults are used.
 */
#ifndef DQ_STORE_ROW_ROWS_H
#define DQ_STORE_ROW_ROWS_H

#include "base/err.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_STEP 500 /* most rows that one statement changes */

/* The server reads the whole body of each row that it changes or locks. Whether a row with a body
 * of this size (SIZE_MAX: unknown) goes into a statement, so that it does not take long: the first
 * always does. *bytes counts, from 0. */
bool rows_take(size_t *bytes, size_t body_size);
/* The size to pass for a task; again: it was added again while it ran, and has two bodies. */
size_t rows_size(size_t body_size, bool again);
/* What to pass to rows_take as the size of such a body, if changing the row takes row_us besides: a
 * trigger may be slow. */
size_t rows_weight(size_t body_size, int64_t row_us);

/* Rows that could not be changed, each with its reason: locked by an open transaction of another
 * session (ERR_LOCKED), or refused by the server (ERR_DATA and others). */
struct rows_fault {
    uint64_t id;
    size_t at; /* its index in the caller's array */
    struct err err;
};
struct rows_faults {
    struct rows_fault *items;
    size_t count, cap; /* initialize with {0}, free with rows_faults_done */
    bool beside;       /* they have this fault because another table is locked */
};
void rows_faults_add(struct rows_faults *f, uint64_t id, size_t at, const struct err *err);
/* The fault of a task, or NULL. */
const struct rows_fault *rows_faults_find(const struct rows_faults *f, uint64_t id);
void rows_faults_done(struct rows_faults *f);

/* Whether the cause of this error may be one of the rows, not the connection, the server or the
 * account. A missing table or right may be that of a trigger: then asks the server, outside a
 * transaction. */
bool rows_at_fault(struct db *db, int code);

/* Needs what a new row of dq_attempt needs of the table, but no row. */
#define ROWS_PROBE_ATTEMPT                                                                         \
    "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)"                     \
    " SELECT 0, 0, 0, UTC_TIMESTAMP(3), '' FROM dq_meta WHERE FALSE"

/* How a statement that ends with SKIP LOCKED has to begin: MariaDB (10.11.19) fails with 1180 if
 * innodb_lock_wait_timeout is 0. */
const char *rows_before_skip(const struct db *db);

/* A change of these rows, any part of which can be done separately and repeated. `run` is given
 * those of a part, and their indexes, which ascend; if it fails, it has rolled back its changes. */
struct rows_work {
    const struct claim_ref *refs;
    size_t count;
    void *arg;
    int (*run)(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
               struct err *err);
    /* NULL: it changes no other table. Else whether that one is locked as a table, and no row is at
     * fault: ERR_LOCKED, or 0 */
    int (*beside)(void *arg, struct err *err);
    /* 0: as below. Else (when_steady) what is left is then not tried, if a row was bad; *ret_left
     * is the first of it, or the count. Locked rows behind that may be among the faults, too */
    int64_t until;
    size_t *ret_left;
};
/* Runs it for all rows at once. If that fails because of a row, finds the locked rows (with SKIP
 * LOCKED if the server has it, else by not waiting for locks any more) and halves the rest until
 * each bad row stands alone; these are added to *faults, all others are changed. After two seconds
 * of failures a part that fails is not divided any more: all of its rows are faults, with a text
 * that says so. faults NULL: the first failure is returned.
 * careful: looks for locked rows first, for a caller that expects some and would rather not wait
 * for their locks; a wary session (db_session.h) is always careful. */
int rows_run(struct db *db, const struct rows_work *w, bool careful, struct rows_faults *faults,
             struct err *err) __attribute__((warn_unused_result));

/* Only finds the locked rows: adds them to *faults, and stores the indexes of the others in at[],
 * which has room for all. In a transaction the others stay locked by it. */
int rows_sift(struct db *db, const struct rows_work *w, struct rows_faults *faults, size_t *at,
              size_t *ret_n, struct err *err) __attribute__((warn_unused_result));
/* Runs it for a part; nothing for an empty one. */
int rows_run_part(const struct rows_work *w, const size_t *at, size_t n, struct err *err)
    __attribute__((warn_unused_result));

#endif
