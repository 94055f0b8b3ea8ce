/*
 * retention_store.h - deleting tasks that finished long ago. Blocks on the database.
 */
#ifndef DQ_STORE_WORK_RETENTION_STORE_H
#define DQ_STORE_WORK_RETENTION_STORE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/row/rows.h"
#include "store/work/peek_store.h"

/* The tasks of a tag up to this one: some could not be deleted. */
struct retention_bad {
    char *tag;
    struct peek_floor last;
};

/* Where a search goes on: with which tag, behind which of its tasks. {0}: it begins. */
struct retention_place {
    char *tag; /* NULL: it begins */
    struct peek_floor floor;
    bool faults;               /* some of that tag could not be deleted */
    bool cut;                  /* the last call left tasks for the next, because bodies are long */
    bool late;                 /* or because some could not be deleted, and `until` had come */
    int64_t until;             /* set by the caller, by when_steady(); 0: none */
    struct retention_bad *bad; /* passed over by a search that begins */
    size_t bad_count;
};
void retention_store_done(struct retention_place *place);
/* The next search that begins tries all. */
void retention_store_forget(struct retention_place *place);

/* Looks at up to limit tasks of a finished status that were due more than age_ms ago, and deletes
 * those that also finished so long ago, with their attempts. faults: as rows_run. Rows that stay,
 * because they are not old or cannot be deleted, are not in the way of those behind them: *place
 * remembers up to where they stand, and the next call goes on there; after the last one its tag is
 * NULL, and the next call begins again, in each tag behind the last task that could not be deleted.
 * A call also ends after a step whose bodies are as many bytes as one statement should read
 * (rows_take), if a task could not be deleted and `until` has come, and with ERR_LOCKED if
 * dq_attempt is locked. place NULL: each call begins with the first. */
int retention_store_expire(struct db *db, enum task_status status, int64_t age_ms, size_t limit,
                           struct retention_place *place, size_t *ret_deleted,
                           struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
