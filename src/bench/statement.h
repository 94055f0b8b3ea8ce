/*
 * statement.h - how fast the server is, measured with the functions that dq and dqd use.
 *
 * Each measure takes about `ms` and sets one figure, or leaves it as it was if nothing could be
 * counted. All block on the database.
 */
#ifndef DQ_BENCH_STATEMENT_H
#define DQ_BENCH_STATEMENT_H

#include "bench/figure.h"
#include "store/db/db.h"

#define STATEMENT_CLAIM_ROWS 500 /* claimed and settled at a time */

int statement_round_trip(struct db *db, int64_t ms, struct figure *ret, struct err *err)
    __attribute__((warn_unused_result));
int statement_commit(struct db *db, int64_t ms, struct figure *ret, struct err *err)
    __attribute__((warn_unused_result));
/* New connections, by these settings. */
int statement_connect(const struct conf_mysql *conf, int64_t ms, struct figure *ret,
                      struct err *err) __attribute__((warn_unused_result));
int statement_add(struct db *db, int64_t ms, struct figure *ret, struct err *err)
    __attribute__((warn_unused_result));
int statement_add_bulk(struct db *db, int64_t ms, struct figure *ret, struct err *err)
    __attribute__((warn_unused_result));
int statement_peek(struct db *db, int64_t ms, struct figure *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Claims and settles what statement_add_bulk added, until that or the time is used up. history:
 * write a row for each attempt. */
int statement_claim(struct db *db, bool history, int64_t ms, struct figure *ret_claim,
                    struct figure *ret_settle, struct err *err) __attribute__((warn_unused_result));

/* Adds n tasks of a tag in bulk, due evenly spread over spread_ms, the first after delay_ms.
 * *ret_us, unless NULL: how long that took. */
int statement_fill(struct db *db, const char *tag, size_t n, int64_t delay_ms, int64_t spread_ms,
                   int64_t *ret_us, struct err *err) __attribute__((warn_unused_result));

#endif
