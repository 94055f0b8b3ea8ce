/*
 * retention_store.h - deleting tasks that finished long ago. Blocks on the database.
 */
#ifndef DQ_STORE_WORK_RETENTION_STORE_H
#define DQ_STORE_WORK_RETENTION_STORE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/row/rows.h"
#include "store/work/peek_store.h"

/* Where a search goes on: with which tag, behind which of its tasks. {0}: it begins. */
struct retention_place {
    char *tag; /* NULL: it begins */
    struct peek_floor floor;
    bool faults; /* some of that tag could not be deleted */
    bool cut;    /* the last call left tasks for the next, because bodies are long */
};
void retention_store_done(struct retention_place *place);

/* Looks at up to limit tasks of a finished status that were due more than age_ms ago, and deletes
 * those that also finished so long ago, with their attempts. faults: as rows_run. Rows that stay,
 * because they are not old or cannot be deleted, are not in the way of those behind them: *place
 * remembers up to where they stand, and the next call goes on there; after the last one it is {0}
 * again, so that the next call tries all. A call also ends after a step whose bodies are as many
 * bytes as one statement should read (rows_take), and with ERR_LOCKED if dq_attempt is locked.
 * place NULL: each call begins with the first. */
int retention_store_expire(struct db *db, enum task_status status, int64_t age_ms, size_t limit,
                           struct retention_place *place, size_t *ret_deleted,
                           struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
