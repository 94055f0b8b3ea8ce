/*
 * retention_store.h - deleting tasks that finished long ago. Blocks on the database.
 */
#ifndef DQ_STORE_RETENTION_STORE_H
#define DQ_STORE_RETENTION_STORE_H

#include "base/task.h"
#include "store/db.h"
#include "store/rows.h"

/* Deletes up to limit tasks of a finished status that finished, and were due, more than age_ms ago,
 * with their attempts. faults: as rows_run. */
int retention_store_expire(struct db *db, enum task_status status, int64_t age_ms, size_t limit,
                           size_t *ret_deleted, struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
