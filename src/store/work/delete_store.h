/*
 * delete_store.h - deleting finished tasks with their attempts. Blocks on the database.
 */
#ifndef DQ_STORE_WORK_DELETE_STORE_H
#define DQ_STORE_WORK_DELETE_STORE_H

#include "store/db/db.h"
#include "store/fleet/event_store.h"
#include "store/row/claim_ref.h"
#include "store/row/rows.h"

struct delete_store_how {
    struct event_act *act; /* recorded in the same transaction; NULL: not */
    int tries;             /* if it deadlocks, or the connection breaks; at least 1 */
    bool careful;          /* as rows_run */
    int64_t until;         /* as in rows_work; 0: none */
};
struct delete_store_done {
    size_t deleted;
    bool lost;    /* the answer to a try was lost: tasks that are gone count as deleted */
    size_t tried; /* of refs: all, or those before `until` */
};
/* Deletes those of refs (at most ROWS_STEP) that are finished and still at that version, with their
 * attempts, in one short transaction if no row fails. *ret is also set after an error. faults: as
 * rows_run. */
int delete_store_refs(struct db *db, const struct claim_ref *refs, size_t count,
                      const struct delete_store_how *how, struct delete_store_done *ret,
                      struct rows_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

#endif
