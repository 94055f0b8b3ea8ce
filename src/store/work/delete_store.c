/*
 * delete_store.c - see delete_store.h.
 *
 * Invariant: a task is deleted only while it is finished and at the version that was listed, and
 * with its attempts. A row that cannot be deleted does not keep others from it (rows.h).
 */
#include "store/work/delete_store.h"
#include "store/db/db_latest.h"
#include "store/row/sql.h"

/* locks: those that can be deleted are locked first, because another session was quicker with some:
 * which were deleted here could not be told afterwards. */
static int delete_rows(struct db *db, const struct claim_ref *refs, size_t count, bool locks,
                       struct event_act *act, size_t *ret_deleted, struct err *err)
{
    struct claim_ref locked[ROWS_STEP];
    uint64_t rows = 0;

    int rc = db_begin(db, err);
    if (rc == 0 && locks) {
        rc = claim_ref_find(db, locked, count, &count, err, "? AND ? FOR UPDATE",
                            SQL_STATUSES(TASK_FINISHED), CLAIM_REF_THESE(refs, count));
        refs = locked;
    }
    /* without FORCE INDEX, all rows may be read, and their locks waited for */
    if (rc == 0 && count)
        rc = sql_exec(db, &rows, err, "DELETE t FROM dq_task t FORCE INDEX (PRIMARY) WHERE ? AND ?",
                      SQL_STATUSES(TASK_FINISHED), CLAIM_REF_THESE(refs, count));
    if (rc == 0 && act && rows < count)
        rc = err_set(err, ERR_TRANSIENT, "another session has changed some of the tasks");
    /* only of tasks that are gone: one that was retried meanwhile keeps its history */
    if (rc == 0 && rows)
        rc = sql_exec(
            db, NULL, err,
            "DELETE a FROM dq_attempt a FORCE INDEX (PRIMARY) LEFT JOIN dq_task t FORCE INDEX (PRIMARY)"
            " ON t.id = a.task_id WHERE t.id IS NULL AND " SQL_BY_KEY("a.attempt") "a.task_id IN ?",
            SQL_IDS(refs, count));
    if (rc == 0 && rows)
        rc = event_store_add(db, act, refs, rows, err);
    rc = db_end(db, rc, err);
    if (rc == 0)
        *ret_deleted = (size_t)rows;
    return rc;
}

struct deleting {
    struct db *db;
    struct event_act *act;
    int tries;
    size_t deleted;
    bool lost; /* the answer to a try was lost */
};

/* After a lost answer, tasks that are gone count as deleted: it does not matter by whom. */
static int delete_some(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
                       struct err *err)
{
    struct deleting *w = arg;
    struct claim_ref left[ROWS_STEP];
    size_t count = 0, deleted = 0;
    bool lost = false;
    int rc = 0;

    (void)at;
    for (int tries = 0; tries < w->tries; tries++) {
        rc = delete_rows(w->db, refs, n, tries > 0, w->act, &deleted, err);
        lost |= rc == ERR_LOST;
        if (rc != ERR_LOST && rc != ERR_TRANSIENT)
            break;
    }
    if (rc == 0 && lost) {
        rc = db_latest_begin(w->db, err);
        if (rc == 0)
            rc = claim_ref_find(w->db, left, n, &count, err, "id IN ?", SQL_IDS(refs, n));
        db_latest_end(w->db);
        deleted = n - count;
    }
    w->lost |= lost;
    if (rc == 0)
        w->deleted += deleted;
    return rc;
}

int delete_store_refs(struct db *db, const struct claim_ref *refs, size_t count,
                      const struct delete_store_how *how, struct delete_store_done *ret,
                      struct rows_faults *faults, struct err *err)
{
    struct deleting w = {db, how->act, how->tries, 0, false};
    size_t tried = count;
    const struct rows_work work = {refs, count, &w, delete_some, NULL, how->until, &tried};
    int rc = rows_run(db, &work, how->careful, faults, err);

    *ret = (struct delete_store_done){w.deleted, w.lost, tried};
    return rc;
}
