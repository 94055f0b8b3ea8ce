/*
 * statement.h - how fast the server is, measured with the functions that dq and dqd use. All block
 * on the database.
 */
#ifndef DQ_BENCH_STATEMENT_H
#define DQ_BENCH_STATEMENT_H

#include "bench/rig.h"

#define STATEMENT_CLAIM_ROWS 500 /* claimed and settled at a time */

rig_measure statement_round_trip, statement_commit, statement_connect, statement_add,
    statement_add_bulk, statement_peek;
/* Claims and settles what statement_add_bulk added, until that or the time is used up; sets
 * FIGURE_SETTLE, too. */
rig_measure statement_claim;

/* Adds n tasks of a tag in bulk, due evenly spread over spread_ms, the first after delay_ms.
 * *ret_us, unless NULL: how long that took. */
int statement_fill(struct db *db, const char *tag, size_t n, int64_t delay_ms, int64_t spread_ms,
                   int64_t *ret_us, struct err *err) __attribute__((warn_unused_result));

#endif
