/*
 * rows.h - one bad row costs itself: statements over many rows of dq_task that fail because of some
 * of them. Private to src/store, but for the list of faults.
 */
#ifndef DQ_STORE_ROWS_H
#define DQ_STORE_ROWS_H

#include "base/err.h"
#include "store/db.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_STEP 500 /* most rows that one statement changes */

/* Rows that could not be changed, each with its reason: locked by somebody's open transaction
 * (ERR_LOCKED), or refused by the server (ERR_DATA and others). */
struct rows_fault {
    uint64_t id;
    size_t at; /* its index in the caller's array */
    struct err err;
};
struct rows_faults {
    struct rows_fault *items;
    size_t count, cap; /* init with {0}, rows_faults_done at the end */
};
void rows_faults_add(struct rows_faults *f, uint64_t id, size_t at, const struct err *err);
/* NULL: it has none */
const struct rows_fault *rows_faults_find(const struct rows_faults *f, uint64_t id);
void rows_faults_done(struct rows_faults *f);

/* Whether a failure may be due to one of the rows, and not to the connection, the server or the
 * account. */
bool rows_at_fault(const struct db *db, int code);

/* What a statement that ends with SKIP LOCKED begins with. MariaDB (10.11.19) answers 1180 to it
 * where no lock is waited for. */
const char *rows_before_skip(const struct db *db);

/* A change of rows 0 to count - 1 (at most ROWS_STEP), of which any part can be done alone and
 * again. `run` gets indexes, in ascending order; what it changes when it fails, it rolls back. */
struct rows_work {
    size_t count;
    void *arg;
    uint64_t (*id)(const void *arg, size_t i);
    int (*run)(void *arg, const size_t *at, size_t n, struct err *err);
};
/* Runs it for all rows in one piece. If that fails because of a row, finds the locked rows (by SKIP
 * LOCKED if the server has it), halves the rest until the bad ones are single, and adds these to
 * *faults; all the others are done. careful: locked rows are looked for first, for a caller that
 * expects some and would rather not wait for their locks. faults NULL: the first failure is
 * returned. After two seconds of failures what has not been done yet counts as locked. */
int rows_run(struct db *db, const struct rows_work *w, bool careful, struct rows_faults *faults,
             struct err *err) __attribute__((warn_unused_result));

/* Its first part alone: adds the locked rows to *faults, and puts the indexes of the others into
 * at[] (room for all). Within a transaction these stay locked by us. */
int rows_sift(struct db *db, const struct rows_work *w, struct rows_faults *faults, size_t *at,
              size_t *ret_n, struct err *err) __attribute__((warn_unused_result));

#endif
