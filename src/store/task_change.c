/*
 * task_change.c - cancelling, retrying and rescheduling tasks, in steps of ROWS_STEP.
 *
 * Invariant: a row is changed only while it is at the version that was listed. If a running task is
 * cancelled, its attempt is recorded in the same transaction. A row that cannot be changed does not
 * keep others from it (rows.h).
 */
#include "store/task_change.h"
#include "store/attempt_store.h"
#include "store/columns.h"
#include "store/db_latest.h"
#include "store/db_put.h"
#include "store/sql.h"

#include <inttypes.h>

/* The effect of a step. */
struct step {
    uint64_t rows, running; /* changed; of these, running before */
};

static int change_rows(struct db *db, const struct task_change *change,
                       const struct claim_ref *refs, size_t n, uint64_t *ret_rows, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET ");
    sql_put_transition(&sql, "", change->event, NULL);
    if (task_transition(change->event)->due == DUE_GIVEN) {
        buf_str(&sql, ", expected_time = ");
        if (change->expected_at == TASK_TIME_NONE)
            sql_put_from_now(&sql, change->delay_ms);
        else
            db_put_time(&sql, change->expected_at);
    }
    buf_str(&sql, " WHERE ");
    sql_put_from(&sql, "", change->event);
    buf_str(&sql, " AND ");
    claim_ref_put(&sql, "", refs, n);
    int rc = db_exec(db, &sql, ret_rows, err);
    buf_done(&sql);
    return rc;
}

/* Some of them are running: locks those, and records the attempts that end here. */
static int change_running(struct db *db, const struct task_change *change, const struct targets *x,
                          bool drop_stale, struct step *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct claim_ref refs[ROWS_STEP];
    size_t count = 0, locked = 0;

    for (size_t i = 0; i < x->count; i++)
        if (x->running[i])
            refs[count++] = x->refs[i];
    int rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (PRIMARY) WHERE status = %d AND ",
               COLUMNS_SELECT(CLAIM_REF_COLUMNS), TASK_RUNNING);
    claim_ref_put(&sql, "", refs, count);
    buf_str(&sql, " FOR UPDATE");
    rc = claim_ref_read(db, &sql, refs, count, &locked, err);
    if (rc == 0 && locked && drop_stale)
        rc = attempt_store_drop_stale(db, refs, locked, err);
    if (rc == 0 && locked)
        rc = attempt_store_add_running(db, refs, locked, OUTCOME_CANCELLED, err);
    if (rc == 0)
        rc = change_rows(db, change, x->refs, x->count, &ret->rows, err);
    if (rc == 0)
        rc = db_commit(db, err);
    if (rc < 0)
        db_rollback(db);
    else
        ret->running = locked;
    buf_done(&sql);
    return rc;
}

/* After a lost answer: counts those that are in the state in which the change leaves them. */
static int count_changed(struct db *db, enum task_event event, const struct targets *x,
                         struct step *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct claim_ref next[ROWS_STEP];
    size_t count = 0;

    for (size_t i = 0; i < x->count; i++)
        next[i] = (struct claim_ref){x->refs[i].id, x->refs[i].version + 1};
    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (PRIMARY) WHERE status = %d AND ",
               COLUMNS_SELECT(CLAIM_REF_COLUMNS), (int)task_transition(event)->to);
    claim_ref_put(&sql, "", next, x->count);
    int rc = db_latest_begin(db, err);
    if (rc == 0)
        rc = claim_ref_read(db, &sql, next, x->count, &count, err);
    db_latest_end(db);
    *ret = (struct step){.rows = count};
    for (size_t i = 0; i < x->count; i++)
        for (size_t k = 0; x->running[i] && k < count; k++)
            ret->running += next[k].id == x->refs[i].id;
    buf_done(&sql);
    return rc;
}

static int change_once(struct db *db, const struct task_change *change, const struct targets *x,
                       struct step *ret, struct err *err)
{
    bool running = false;

    for (size_t i = 0; i < x->count; i++)
        running |= x->running[i];
    if (!running)
        return change_rows(db, change, x->refs, x->count, &ret->rows, err);
    int rc = change_running(db, change, x, false, ret, err);
    return rc == ERR_DUPLICATE ? change_running(db, change, x, true, ret, err) : rc;
}

struct changing {
    struct db *db;
    const struct task_change *change;
    const struct targets *x;
    size_t from;
    struct step sum;
};

static uint64_t changing_id(const void *arg, size_t i)
{
    const struct changing *w = arg;
    return w->x->refs[w->from + i].id;
}

static int change_some(void *arg, const size_t *at, size_t n, struct err *err)
{
    struct changing *w = arg;
    struct claim_ref refs[ROWS_STEP];
    unsigned char running[ROWS_STEP];
    struct targets part = {.refs = refs, .running = running, .count = n};
    struct step step = {0, 0};
    bool lost = false;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        refs[i] = w->x->refs[w->from + at[i]];
        running[i] = w->x->running[w->from + at[i]];
    }
    for (int tries = 0; tries < TARGETS_TRIES; tries++) {
        rc = change_once(w->db, w->change, &part, &step, err);
        lost |= rc == ERR_LOST;
        if (rc != ERR_LOST && rc != ERR_TRANSIENT)
            break;
    }
    if (rc == 0 && lost)
        rc = count_changed(w->db, w->change->event, &part, &step, err);
    if (rc == 0) {
        w->sum.rows += step.rows;
        w->sum.running += step.running;
    }
    return rc < 0 && lost && !rows_at_fault(w->db, rc) ? targets_unsure(n, err) : rc;
}

/* Whether any fault from `from` on is a tag and key that a live task has; *ret is set to the last
 * one's text. */
static bool has_duplicates(const struct rows_faults *f, size_t from, struct err *ret)
{
    bool any = false;

    for (size_t i = from; i < f->count; i++) {
        if (f->items[i].err.code != ERR_DUPLICATE)
            continue;
        err_set(&f->items[i].err, ERR_DUPLICATE,
                "another task with its tag and key is pending or running");
        err_set(ret, ERR_DUPLICATE, "task %" PRIu64 ": %s", f->items[i].id, f->items[i].err.text);
        any = true;
    }
    return any;
}

int task_change(struct db *db, const struct task_filter *f, const struct task_change *change,
                bool dry_run, void (*progress)(const struct task_changed *so_far, void *arg),
                void *arg, struct task_changed *ret, struct rows_faults *faults, struct err *err)
{
    struct targets x = {.finished_before_at = TASK_TIME_NONE};
    struct task_changed so_far = {0};
    size_t n, before = faults->count;

    int rc = targets_list(db, f, task_transition(change->event)->from, &x, err);
    so_far.matched = x.count;
    for (size_t i = 0; dry_run && i < x.count; i++)
        so_far.changed++, so_far.running += x.running[i];
    for (size_t from = 0; rc == 0 && !dry_run && from < x.count; from += n) {
        struct changing w = {db, change, &x, from, {0, 0}};
        n = x.count - from < ROWS_STEP ? x.count - from : ROWS_STEP;
        rc = rows_run(db, &(struct rows_work){n, &w, changing_id, change_some}, false, faults, err);
        so_far.changed += w.sum.rows;
        so_far.running += w.sum.running;
        so_far.lost += n - w.sum.rows;
        if (rc == 0 && progress)
            progress(&so_far, arg);
    }
    targets_done(&x);
    if (rc == 0 || so_far.changed)
        *ret = so_far;
    return rc == 0 && has_duplicates(faults, before, err) && !so_far.changed ? ERR_DUPLICATE : rc;
}
