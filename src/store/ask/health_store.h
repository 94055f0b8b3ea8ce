/*
 * health_store.h - settings, clock and plans of a server, and odd rows among the
 * newest tasks. All functions block on the database and change nothing.
 */
#ifndef DQ_STORE_ASK_HEALTH_STORE_H
#define DQ_STORE_ASK_HEALTH_STORE_H

#include "store/db/db.h"

/* The global variables of these names. ret_values[i] is heap memory; NULL: this server has no such
 * variable. */
int health_store_settings(struct db *db, const char *const *names, size_t count, char **ret_values,
                          struct err *err) __attribute__((warn_unused_result));

/* How far the server's clock is ahead of this host's, within half of the round trip. */
struct health_clock {
    int64_t ahead_ms, trip_us;
};
int health_store_clock(struct db *db, struct health_clock *ret, struct err *err)
    __attribute__((warn_unused_result));

/* How the server would run a SELECT: of the first table, and over all lines of the plan. */
struct health_plan {
    char key[65], type[16];
    uint64_t rows; /* estimated, of the first table */
    bool sorts;    /* a file sort or a temporary table */
    bool loose;    /* a loose index scan: one read per group */
};
int health_store_plan(struct db *db, const struct buf *statement, struct health_plan *ret,
                      struct err *err) __attribute__((warn_unused_result));

/* Rows among the newest HEALTH_ROWS that are not as dq writes them. */
#define HEALTH_ROWS 10000
#define HEALTH_MEND_UNKEYED                                                                        \
    "UPDATE dq_task SET live = 1 WHERE status IN (0, 3, 5, 6) AND task_key IS NOT NULL"
struct health_rows {
    uint64_t unkeyed;  /* pending or running with a key, but live is not 1: its key is not unique */
    uint64_t unknown;  /* with a status that is none */
    uint64_t dateless; /* pending with a time that is no date of dq: before the year 1000 */
    uint64_t example;  /* the id of one of these */
};
int health_store_rows(struct db *db, struct health_rows *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
