/*
 * task_change.c - cancelling, retrying, rescheduling and deleting tasks, in steps (targets_step).
 *
 * Invariant: a row is changed only while it is at the version that was listed. A step is one
 * transaction, in which the attempts of cancelled running tasks, and the event, are recorded, too.
 * A row that cannot be changed does not keep others from it (rows.h). How tasks are deleted:
 * delete_store.c.
 */
#include "store/ask/task_change.h"
#include "base/order.h"
#include "store/db/db_connect.h"
#include "store/db/db_latest.h"
#include "store/db/db_put.h"
#include "store/fleet/attempt_store.h"
#include "store/row/sql.h"
#include "store/work/delete_store.h"
#include "store/work/slot_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

/* Tasks that one statement changes. */
struct part {
    struct claim_ref refs[ROWS_STEP];
    unsigned char running[ROWS_STEP];
    size_t place[ROWS_STEP]; /* among all targets */
    size_t count;
};

/* The effect of a step. */
struct step {
    uint64_t rows, running; /* changed; of these, running before */
};

struct changing {
    struct db *db;
    const struct task_change *change;
    struct event_act *act;
    const struct targets *x;
    size_t from; /* the first target of this step */
    struct step sum;
};

/* Each task's own time, found by its id; `version` holds its place meanwhile. */
static void put_spread(struct buf *sql, const struct changing *w, const struct part *p)
{
    struct claim_ref sorted[ROWS_STEP];
    const struct task_change *c = w->change;

    for (size_t i = 0; i < p->count; i++)
        sorted[i] = (struct claim_ref){p->refs[i].id, p->place[i]};
    qsort(sorted, p->count, sizeof *sorted, order_ids);
    buf_str(sql, "ELT(INTERVAL(id");
    for (size_t i = 0; i < p->count; i++) {
        buf_chr(sql, ',');
        buf_u64(sql, sorted[i].id);
    }
    buf_chr(sql, ')');
    for (size_t i = 0; i < p->count; i++) {
        buf_chr(sql, ',');
        db_put_time(sql, c->expected_at +
                             c->over_ms * (int64_t)sorted[i].version / (int64_t)w->x->count);
    }
    buf_chr(sql, ')');
}

static void put_due(struct buf *sql, const struct changing *w, const struct part *p)
{
    const struct task_change *c = w->change;

    if (c->over_ms)
        put_spread(sql, w, p);
    else
        sql_put(sql, "?",
                c->expected_at == TASK_TIME_NONE ? SQL_FROM_NOW(c->delay_ms)
                                                 : SQL_TIME(c->expected_at));
}

static int change_rows(const struct changing *w, const struct part *p, uint64_t *ret_rows,
                       struct err *err)
{
    const struct task_change *change = w->change;
    BUF_LOCAL struct buf due = BUF_INIT, times = BUF_INIT;

    if (task_transition(change->event)->due == DUE_GIVEN) {
        put_due(&due, w, p);
        if (change->moves_expiry) /* assignments are made from left to right; the past is now */
            sql_put(
                &times,
                "expires_time = expires_time + INTERVAL TIMESTAMPDIFF(MICROSECOND, " SQL_LATE_FROM(
                    "") ", GREATEST(UTC_TIMESTAMP(3), ?)) MICROSECOND, expected_time = ?, ",
                SQL_PART(due.data), SQL_PART(due.data));
        else
            sql_put(&times, "expires_time = NULL, expected_time = ?, ", SQL_PART(due.data));
    }
    return sql_exec(w->db, ret_rows, err,
                    "UPDATE dq_task FORCE INDEX (PRIMARY) SET ?? WHERE ? AND ?",
                    SQL_PART(times.data), SQL_TRANSITION(change->event), SQL_FROM(change->event),
                    CLAIM_REF_THESE(p->refs, p->count));
}

/* Locks those of refs that are running, and records the attempts that end here. */
static int end_attempts(struct db *db, struct claim_ref *refs, size_t count, bool drop_stale,
                        uint64_t *ret_running, struct err *err)
{
    size_t locked = 0;

    if (count == 0)
        return 0;
    int rc = claim_ref_find(db, refs, count, &locked, err, "status = ? AND ? FOR UPDATE",
                            SQL_INT(TASK_RUNNING), CLAIM_REF_THESE(refs, count));
    if (rc == 0 && locked && drop_stale)
        rc = attempt_store_drop_stale(db, refs, locked, err);
    if (rc == 0 && locked)
        rc = attempt_store_add_running(db, refs, locked, OUTCOME_CANCELLED, err);
    *ret_running = locked;
    return rc;
}

/* Leaves in p those that can be changed, and locks them. */
static int lock_rows(const struct changing *w, struct part *p, struct err *err)
{
    struct claim_ref locked[ROWS_STEP];
    size_t n = 0, kept = 0;

    int rc = claim_ref_find(w->db, locked, p->count, &n, err, "? AND ? FOR UPDATE",
                            SQL_FROM(w->change->event), CLAIM_REF_THESE(p->refs, p->count));
    if (rc < 0)
        return rc;
    qsort(locked, n, sizeof *locked, claim_ref_compare);
    for (size_t i = 0; i < p->count; i++) {
        if (!bsearch(&p->refs[i], locked, n, sizeof *locked, claim_ref_compare))
            continue;
        p->refs[kept] = p->refs[i];
        p->running[kept] = p->running[i];
        p->place[kept++] = p->place[i];
    }
    p->count = kept;
    return 0;
}

/* locks: those that can be changed are locked first, because another session was quicker with some:
 * which were changed here could not be told afterwards. */
static int change_together(const struct changing *w, const struct part *all, bool locks,
                           bool drop_stale, struct step *ret, struct err *err)
{
    const struct task_transition *t = task_transition(w->change->event);
    struct claim_ref running[ROWS_STEP];
    struct step step = {0, 0};
    struct part p = *all;
    size_t count = 0;

    int rc = db_begin(w->db, err);
    if (rc == 0 && locks)
        rc = lock_rows(w, &p, err);
    for (size_t i = 0; i < p.count; i++)
        if (p.running[i])
            running[count++] = p.refs[i];
    if (rc == 0)
        rc = end_attempts(w->db, running, count, drop_stale, &step.running, err);
    if (rc == 0 && p.count)
        rc = change_rows(w, &p, &step.rows, err);
    if (rc == 0 && step.rows && t->from & TASK_FINISHED && t->to == TASK_PENDING)
        rc = slot_record_reopen(w->db, p.refs, p.count, err);
    if (rc == 0 && w->act && step.rows < p.count)
        rc = err_set(err, ERR_TRANSIENT, "another session has changed some of the tasks");
    if (rc == 0 && step.rows)
        rc = event_store_add(w->db, w->act, p.refs, p.count, err);
    rc = db_end(w->db, rc, err);
    if (rc == 0)
        *ret = step;
    if (rc == ERR_DUPLICATE && count && !drop_stale)
        return change_together(w, all, locks, true, ret, err);
    return rc;
}

/* After a lost answer: counts those that are in the state in which the change leaves them. */
static int count_changed(struct db *db, enum task_event event, const struct part *x,
                         struct step *ret, struct err *err)
{
    struct claim_ref next[ROWS_STEP];
    size_t count = 0;

    for (size_t i = 0; i < x->count; i++)
        next[i] = (struct claim_ref){x->refs[i].id, x->refs[i].version + 1};
    int rc = db_latest_begin(db, err);
    if (rc == 0)
        rc = claim_ref_find(db, next, x->count, &count, err, "? AND ?",
                            SQL_STATUSES(TASK_BIT(task_transition(event)->to)),
                            CLAIM_REF_THESE(next, x->count));
    db_latest_end(db);
    *ret = (struct step){.rows = count};
    for (size_t i = 0; i < x->count; i++)
        for (size_t k = 0; x->running[i] && k < count; k++)
            ret->running += next[k].id == x->refs[i].id;
    return rc;
}

static int change_some(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
                       struct err *err)
{
    struct changing *w = arg;
    struct part part = {.count = n};
    struct step step = {0, 0};
    bool lost = false;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        part.place[i] = w->from + at[i];
        part.refs[i] = refs[i];
        part.running[i] = w->x->running[part.place[i]];
    }
    for (int tries = 0; tries < TARGETS_TRIES; tries++) {
        rc = change_together(w, &part, tries > 0, false, &step, err);
        lost |= rc == ERR_LOST;
        if (rc == ERR_UNAVAILABLE && db_connect_again(w->db, rc, err))
            tries--;
        else if (rc != ERR_LOST && rc != ERR_TRANSIENT)
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

static int delete_step(struct changing *w, size_t n, struct rows_faults *faults, struct err *err)
{
    struct delete_store_how how = {w->act, TARGETS_TRIES, false, 0};
    struct delete_store_done done;

    int rc = delete_store_refs(w->db, w->x->refs + w->from, n, &how, &done, faults, err);
    w->sum.rows = done.deleted;
    return rc < 0 && done.lost ? targets_unsure(n, err) : rc;
}

int task_change(struct db *db, const struct targets *x, const struct task_change *change,
                const struct targets_steps *steps, struct task_changed *ret,
                struct rows_faults *faults, struct err *err)
{
    struct task_changed so_far = {.matched = x->count};
    struct task_change timed = change ? *change : (struct task_change){.over_ms = 0};
    size_t n, before = faults->count;
    bool go_on = true;
    int rc = 0;

    if (timed.over_ms && timed.expected_at == TASK_TIME_NONE) {
        rc = db_now(db, &timed.expected_at, err);
        timed.expected_at += timed.delay_ms;
    }
    for (size_t from = 0; rc == 0 && go_on && from < x->count; from += n) {
        struct changing w = {db, &timed, steps->act, x, from, {0, 0}};
        n = targets_step(x, from);
        const struct rows_work work = {x->refs + from, n, &w, change_some, NULL, 0, NULL};
        rc = change ? rows_run(db, &work, false, faults, err) : delete_step(&w, n, faults, err);
        so_far.changed += w.sum.rows;
        so_far.running += w.sum.running;
        so_far.lost += n - w.sum.rows;
        go_on = rc < 0 || !steps->go_on || steps->go_on(&so_far, steps->arg);
    }
    if (rc == 0 || so_far.changed)
        *ret = so_far;
    return rc == 0 && change && has_duplicates(faults, before, err) && !so_far.changed
               ? ERR_DUPLICATE
               : rc;
}
