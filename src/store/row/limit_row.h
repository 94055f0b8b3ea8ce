/*
 * limit_row.h - a row of dq_limit.
 */
#ifndef DQ_STORE_ROW_LIMIT_ROW_H
#define DQ_STORE_ROW_LIMIT_ROW_H

#include "base/hours.h"
#include "base/limit.h"
#include "store/db/db.h"

struct limit_row {
    struct limit limit; /* its texts are those below */
    char *name, *reason, *actor;
    char *paused_by, *pause_reason, *hold_reason;
    char *hours_text;
    struct hours *hours;
    char *bad; /* why its rate or hours cannot be read: it counts as closed; NULL: they can */
    uint64_t version;
    bool is_pattern;
    bool is_strict; /* it says more than a pause */
    int64_t update_at;
    int64_t now_at;   /* the clock at that statement */
    uint64_t running; /* tasks under it that run, if asked for */
};
void limit_row_done(struct limit_row *l);

/* Appends "SELECT ... FROM dq_limit g", for limit_row_read. running: an expression; NULL: none. */
void limit_row_put_select(struct buf *sql, const char *running);
extern const unsigned limit_row_columns;
/* Fills *ret, which the caller frees with limit_row_done. Reads files of zones. */
void limit_row_read(const struct db_rows *r, struct limit_row *ret);

/* A row of dq_limit by which more than any number of tasks may start, at any time: a claim has to
 * lock it. And one that is paused or held. */
#define LIMIT_ROW_STRICT(alias)                                                                    \
    "(" LIMIT_ROW_STOPS(alias) " OR " alias "running IS NOT NULL OR " alias                        \
                               "rate IS NOT NULL OR " alias "hours IS NOT NULL OR " alias          \
                               "breaker > 0)"
#define LIMIT_ROW_STOPS(alias)                                                                     \
    "(" alias "paused_until > UTC_TIMESTAMP(3) OR " LIMIT_ROW_HELD(alias) ")"
#define LIMIT_ROW_HELD(alias) alias "held_until > UTC_TIMESTAMP(3)"

#endif
