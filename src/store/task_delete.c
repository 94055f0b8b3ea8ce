/*
 * task_delete.c - deleting finished tasks, in steps (targets_step).
 *
 * Invariant: a task is deleted only while it is finished and at the version that was listed, and
 * with its attempts. A row that cannot be deleted does not keep others from it (rows.h).
 */
#include "store/task_delete.h"
#include "store/columns.h"
#include "store/db_latest.h"
#include "store/sql.h"

static int delete_rows(struct db *db, const struct claim_ref *refs, size_t count,
                       struct event_act *act, size_t *ret_deleted, struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t rows = 0;

    int rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    /* without it, all rows may be read, and their locks waited for */
    buf_str(&sql, "DELETE t FROM dq_task t FORCE INDEX (PRIMARY) WHERE ");
    sql_put_statuses(&sql, "", TASK_FINISHED);
    buf_str(&sql, " AND ");
    claim_ref_put(&sql, "", refs, count);
    rc = db_exec(db, &sql, &rows, err);
    /* only of tasks that are gone: one that was retried meanwhile keeps its history */
    if (rc == 0 && rows) {
        buf_reset(&sql);
        buf_str(
            &sql,
            "DELETE a FROM dq_attempt a LEFT JOIN dq_task t ON t.id = a.task_id WHERE t.id IS NULL AND ");
        claim_ref_put_ids(&sql, "a.task_id", refs, count);
        rc = db_exec(db, &sql, NULL, err);
    }
    if (rc == 0 && rows)
        rc = event_store_add(db, act, refs, rows, err);
    rc = db_end(db, rc, err);
    if (rc == 0)
        *ret_deleted = (size_t)rows;
    buf_done(&sql);
    return rc;
}

struct deleting {
    struct db *db;
    const struct claim_ref *refs;
    struct event_act *act;
    int tries;
    size_t deleted;
    bool lost; /* the answer to a try was lost */
};

static uint64_t deleting_id(const void *arg, size_t i)
{
    return ((const struct deleting *)arg)->refs[i].id;
}

/* After a lost answer, tasks that are gone count as deleted: it does not matter by whom. */
static int delete_some(void *arg, const size_t *at, size_t n, struct err *err)
{
    struct deleting *w = arg;
    struct buf sql = BUF_INIT;
    struct claim_ref refs[ROWS_STEP], left[ROWS_STEP];
    size_t count = 0, deleted = 0;
    bool lost = false;
    int rc = 0;

    for (size_t i = 0; i < n; i++)
        refs[i] = w->refs[at[i]];
    for (int tries = 0; tries < w->tries; tries++) {
        rc = delete_rows(w->db, refs, n, w->act, &deleted, err);
        lost |= rc == ERR_LOST;
        if (rc != ERR_LOST && rc != ERR_TRANSIENT)
            break;
    }
    if (rc == 0 && lost) {
        buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (PRIMARY) WHERE ",
                   COLUMNS_SELECT(CLAIM_REF_COLUMNS));
        claim_ref_put_ids(&sql, "id", refs, n);
        rc = db_latest_begin(w->db, err);
        if (rc == 0)
            rc = claim_ref_read(w->db, &sql, left, n, &count, err);
        db_latest_end(w->db);
        deleted = n - count;
        buf_done(&sql);
    }
    w->lost |= lost;
    if (rc == 0)
        w->deleted += deleted;
    return rc;
}

int task_delete_refs(struct db *db, const struct claim_ref *refs, size_t count, bool careful,
                     size_t *ret_deleted, struct rows_faults *faults, struct err *err)
{
    struct deleting w = {db, refs, NULL, 1, 0, false};

    int rc = rows_run(db, &(struct rows_work){count, &w, deleting_id, delete_some}, careful, faults,
                      err);
    if (rc == 0)
        *ret_deleted = w.deleted;
    return rc;
}

static int delete_step(struct db *db, const struct claim_ref *refs, size_t n, struct event_act *act,
                       size_t *ret_deleted, struct rows_faults *faults, struct err *err)
{
    struct deleting w = {db, refs, act, TARGETS_TRIES, 0, false};

    int rc = rows_run(db, &(struct rows_work){n, &w, deleting_id, delete_some}, false, faults, err);
    *ret_deleted = w.deleted;
    return rc < 0 && w.lost ? targets_unsure(n, err) : rc;
}

int task_delete(struct db *db, const struct targets *x, const struct targets_steps *steps,
                struct task_changed *ret, struct rows_faults *faults, struct err *err)
{
    struct task_changed so_far = {.matched = x->count};
    size_t n, deleted;
    bool go_on = true;
    int rc = 0;

    for (size_t from = 0; rc == 0 && go_on && from < x->count; from += n) {
        n = targets_step(x, from);
        deleted = 0;
        rc = delete_step(db, x->refs + from, n, steps->act, &deleted, faults, err);
        so_far.changed += deleted;
        so_far.lost += n - deleted;
        go_on = rc < 0 || !steps->go_on || steps->go_on(&so_far, steps->arg);
    }
    if (rc == 0 || so_far.changed)
        *ret = so_far;
    return rc;
}
