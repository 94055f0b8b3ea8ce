/*
 * retention_store.h - deleting tasks that finished long ago. Blocks on the database.
 */
#ifndef DQ_STORE_WORK_RETENTION_STORE_H
#define DQ_STORE_WORK_RETENTION_STORE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/row/rows.h"
#include "store/work/peek_store.h"

/* Behind which tasks of which tag a search goes on, because they could not be deleted. {0}: it
 * begins. */
struct retention_place {
    char *tag; /* NULL: it begins */
    struct peek_floor floor;
    bool cut; /* the last call left tasks for the next, because bodies are long */
};
void retention_store_done(struct retention_place *place);

/* Deletes up to limit tasks of a finished status that finished, and were due, more than age_ms ago,
 * with their attempts. faults: as rows_run. Rows that cannot be deleted are not in the way of
 * those behind them: *place remembers up to where they stand, and the next call goes on there; once
 * all others have been deleted, it is {0} again, so that the next call tries all. A call ends after
 * a step of which it could delete nothing, or whose bodies are as many bytes as one statement
 * should read (rows_take). place NULL: each call begins with the first. */
int retention_store_expire(struct db *db, enum task_status status, int64_t age_ms, size_t limit,
                           struct retention_place *place, size_t *ret_deleted,
                           struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
