/*
 * slot_store.c - see slot_store.h. Invariant: a task is added, and a slot recorded, only in the
 * transaction that moves the next slot of its schedule at the version that was read.
 */
#include "store/work/slot_store.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_session.h"
#include "store/fleet/ahead_store.h"
#include "store/fleet/attempt_store.h"
#include "store/row/rows.h"
#include "store/row/sql.h"
#include "store/work/slot_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define SCHEDULES_MOST 500 /* read at once, and changed in a transaction */
#define ACTS_MOST 2000     /* slots in a transaction, unless a schedule has more */
#define MOVES_MOST 16      /* statements of a transaction; the schedules that are left share one */
#define PATIENCE_MS 2000
/* So long a slot that was computed with newer time zones than those of this host is left to the
 * dqds that have these: they compute the next one, too. */
#define OLDER_MS 5000
/* As far new rules move the slots of a zone: what is more is no change of the clock (timetable.h)
 */
#define RULES_MS (3 * WHEN_HOUR)

/* A schedule whose slot is due, its last run, and what is to be done. */
struct due {
    struct schedule schedule;
    struct claim_ref ref;
    struct slot_run last;
    int64_t now_at, decided_at;
    struct timetable *timetable;
    struct slot_plan plan;
};

/* Behind those of a schedule: its last run. */
/* clang-format off */
#define LAST_COLUMNS(X)                 \
    X(LAST_ID, "t.id")                  \
    X(LAST_VERSION, "t.version")        \
    X(LAST_STATUS, "t.status")          \
    X(LAST_UNTIL, "t.expires_time")     \
    X(LAST_ENDED, "COALESCE(t.finish_time, s.finish_time)") \
    X(LAST_NOW, "UTC_TIMESTAMP(3)")
/* clang-format on */
enum { LAST_COLUMNS(COLUMNS_NAME) LAST_DECIDED, LAST_COUNT };
/* LAST_DECIDED is asked for where the next slot is computed. */
#define SELECT_DECIDED AHEAD_STORE_DECIDED("c.name")

struct deciding {
    struct db *db;
    struct due *due; /* in one order for all dqds, which lock them */
    size_t count, cap;
    int64_t behind_at; /* those behind the one with that next slot and name are read */
    char behind[520];
    unsigned columns;
    struct slot_store_done *done;
    bool renews;   /* next slots, see slot_store_renew */
    int64_t until; /* steady clock: then parts that fail are not divided any more; 0: none has */
};

static void take_due(const struct db_rows *r, void *arg)
{
    struct deciding *d = arg;
    const unsigned at = d->columns;

    MEM_ROOM(d->due, d->count, d->cap);
    struct due *x = &d->due[d->count++];
    *x = (struct due){.now_at = db_time(r, at + LAST_NOW),
                      .decided_at = db_time(r, at + LAST_DECIDED)};
    schedule_row_read(r, &x->schedule);
    x->ref = (struct claim_ref){db_u64(r, at + LAST_ID), db_u64(r, at + LAST_VERSION)};
    x->last.until_at = db_time(r, at + LAST_UNTIL);
    x->last.ended_at = db_time(r, at + LAST_ENDED);
    const int status = x->ref.id ? sql_status(r, at + LAST_STATUS) : TASK_STATUS_UNKNOWN;
    x->last.life = status == TASK_PENDING               ? SLOT_WAITS
                   : status == TASK_RUNNING             ? SLOT_RUNS
                   : x->last.ended_at == TASK_TIME_NONE ? SLOT_NO_RUN
                                                        : SLOT_ENDED;
}

static int read_due(struct deciding *d, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT ");
    d->columns = schedule_row_put_columns(&sql, true);
    sql_put(
        &sql,
        ", ?, ? FROM (SELECT * FROM dq_schedule FORCE INDEX (next_slot) WHERE next_slot ? ?"
        " AND (next_slot, name) > (?, ?)?? ORDER BY next_slot, name LIMIT ?)"
        " c" SCHEDULE_ROW_JOIN_RUNS " ORDER BY c.next_slot, c.name",
        SQL_PART(COLUMNS_SELECT(LAST_COLUMNS)),
        SQL_PART(d->renews ? SELECT_DECIDED : "IF(c.zone_version = '?', " SELECT_DECIDED ", NULL)"),
        SQL_PART(d->renews ? ">" : "<="), SQL_FROM_NOW(SLOT_AHEAD_MS), SQL_TIME(d->behind_at),
        SQL_TEXT(d->behind), SQL_PART(d->renews ? " AND kind = 0 AND zone_version < " : ""),
        d->renews ? SQL_TEXT(timetable_zone_version()) : SQL_PART(""), SQL_INT(SCHEDULES_MOST));
    return db_all(d->db, &sql, d->columns + LAST_COUNT, take_due, d, err);
}

static void note_fault(struct deciding *d, const struct due *x, const struct err *err)
{
    struct slot_store_fault *f = &d->done->fault;

    f->count++;
    snprintf(f->name, sizeof f->name, "%s", x->schedule.name);
    f->err = *err;
}

static void look_at(struct slot_store_done *done, int64_t at)
{
    if (at != TASK_TIME_NONE && (done->look_at == TASK_TIME_NONE || at < done->look_at))
        done->look_at = at;
}

/* What its next slot is by other rules for its zone: the first one that is not decided, which may
 * be past. Counted from now on, the slot of a day would come twice, or not at all. */
static bool move_slot(const struct due *x, int64_t *ret)
{
    const struct schedule *s = &x->schedule;
    const int64_t after_at = MAX(MAX(x->decided_at, s->update_at), s->next_at - RULES_MS);
    int64_t at;

    if (!timetable_next(x->timetable, after_at, &at, NULL) || at > s->next_at + RULES_MS)
        return false;
    *ret = at;
    return true;
}

/* Its next slot, which is not reached yet, by the time zones of this host. */
static void recompute(struct due *x, bool always)
{
    const struct schedule *s = &x->schedule;

    if (!always && timetable_zone_digest(x->timetable) == s->zone_digest)
        return;
    if ((always || !move_slot(x, &x->plan.next_at)) &&
        !timetable_next(x->timetable, MAX(x->now_at, always ? x->decided_at : s->last_at),
                        &x->plan.next_at, NULL))
        x->plan.next_at = TASK_TIME_NONE;
}

static bool is_left_to_newer(const struct due *x)
{
    const struct schedule *s = &x->schedule;

    return x->now_at < s->next_at + OLDER_MS &&
           timetable_zone_digest(x->timetable) != s->zone_digest &&
           strcmp(timetable_zone_version(), s->zone_version) < 0;
}

/* False: nothing is to be written. */
static bool plan(struct deciding *d, struct due *x)
{
    const struct schedule *s = &x->schedule;
    /* dq_schedule_set, in SQL, leaves it to dqd to compute its next slot */
    const bool is_new = strcmp(s->zone_version, "?") == 0, recomputed = d->renews || is_new;
    struct err why = {0};

    x->timetable = schedule_row_timetable(s, &why);
    if (!x->timetable) {
        note_fault(d, x, &why);
        return false;
    }
    if (!recomputed && is_left_to_newer(x)) {
        look_at(d->done, s->next_at + OLDER_MS);
        return false;
    }
    x->plan =
        (struct slot_plan){.next_at = s->next_at, .last_at = TASK_TIME_NONE, .missed = s->missed};
    if (recomputed)
        recompute(x, is_new);
    /* one that becomes past is decided at once: a dqd with older time zones would repeat it */
    if (!is_new)
        slot_decide(&(struct slot_ask){.timetable = x->timetable,
                                       .kind = (enum timetable_kind)s->kind,
                                       .from_at = s->from_at,
                                       .to_at = s->to_at,
                                       .catch_up = s->catch_up,
                                       .overlap = s->overlap,
                                       .within_ms = s->within_ms,
                                       .offset_ms = slot_offset_ms(s->name, s->spread_ms),
                                       .paused = s->paused_at != TASK_TIME_NONE,
                                       .next_at = x->plan.next_at,
                                       .now_at = x->now_at,
                                       .missed = s->missed,
                                       .last = x->last},
                    &x->plan);
    /* one that comes soon waits for the end of the last run; read_next finds the others */
    if (x->plan.next_at <= x->now_at + SLOT_AHEAD_MS)
        look_at(d->done, x->plan.next_at);
    return recomputed || x->plan.count || x->plan.next_at != s->next_at;
}

/* ---- the transaction */

static bool moves_alike(const struct due *a, const struct due *b)
{
    return a->plan.next_at == b->plan.next_at && a->plan.last_at == b->plan.last_at &&
           a->plan.missed == b->plan.missed &&
           timetable_zone_digest(a->timetable) == timetable_zone_digest(b->timetable);
}

/* Those that move as the first one does, which are marked. */
static int move_alike(struct db *db, struct due *const *x, size_t n, bool *moved,
                      uint64_t *ret_rows, struct err *err)
{
    BUF_LOCAL struct buf names = BUF_INIT, rows = BUF_INIT;
    const struct slot_plan *p = &x[0]->plan;

    for (size_t i = 0; i < n; i++) {
        if (moved[i] || !moves_alike(x[0], x[i]))
            continue;
        moved[i] = true;
        sql_put(&names, "??", SQL_PART(names.len ? "," : ""), SQL_TEXT(x[i]->schedule.name));
        sql_put(&rows, "?(?,?)", SQL_PART(rows.len ? "," : ""), SQL_TEXT(x[i]->schedule.name),
                SQL_ID(x[i]->schedule.version));
    }
    return sql_exec(db, ret_rows, err,
                    "UPDATE dq_schedule FORCE INDEX (PRIMARY) SET next_slot = ?,"
                    " last_slot = COALESCE(?, last_slot), missed = ?, version = version + 1,"
                    " zone_digest = ?, zone_version = ? WHERE name IN (?)"
                    " AND (name, version) IN (?)",
                    SQL_TIME(p->next_at), SQL_TIME(p->last_at), SQL_INT(p->missed),
                    SQL_ID(timetable_zone_digest(x[0]->timetable)),
                    SQL_TEXT(timetable_zone_version()), SQL_PART(names.data), SQL_PART(rows.data));
}

/* 1: all were at their versions. Most schedules that are due together move alike. */
static int move_next(struct db *db, struct due *const *x, size_t n, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    MEM_LOCAL bool *moved = mem_zero(n, sizeof *moved);
    uint64_t rows = 0, sum = 0;
    size_t left = 0;
    int rc = 0;

    for (size_t i = 0, moves = 0; rc == 0 && i < n && moves < MOVES_MOST; i++) {
        if (moved[i])
            continue;
        rc = move_alike(db, x + i, n - i, moved + i, &rows, err);
        sum += rows;
        moves++;
    }
    buf_str(&sql, "UPDATE (");
    for (size_t i = 0; i < n; i++) {
        const struct slot_plan *p = &x[i]->plan;

        if (!moved[i])
            sql_put(
                &sql,
                left++
                    ? " UNION ALL SELECT ?,?,?,?,?,?"
                    : "SELECT ? AS name,? AS version,? AS next_at,? AS last_at,? AS missed,? AS digest",
                SQL_TEXT(x[i]->schedule.name), SQL_ID(x[i]->schedule.version), SQL_TIME(p->next_at),
                SQL_TIME(p->last_at), SQL_INT(p->missed),
                SQL_ID(timetable_zone_digest(x[i]->timetable)));
    }
    sql_put(&sql,
            ") d STRAIGHT_JOIN dq_schedule c ON c.name = d.name AND c.version = d.version"
            " SET c.next_slot = d.next_at, c.last_slot = COALESCE(d.last_at, c.last_slot),"
            " c.missed = d.missed, c.version = c.version + 1, c.zone_digest = d.digest,"
            " c.zone_version = ?",
            SQL_TEXT(timetable_zone_version()));
    if (rc == 0 && left) {
        rc = db_exec(db, &sql, &rows, err);
        sum += rows;
    }
    return rc < 0 ? rc : sum == n;
}

/* Its last run, unless that has ended meanwhile: the row is locked from here on. Its version may
 * have moved since it was read: it may have been claimed. */
static int cancel_last(struct db *db, const struct claim_ref *read, struct err *err)
{
    struct claim_ref ref = *read;
    uint64_t status = TASK_STATUS_UNKNOWN;
    int rc = sql_first(db, COLUMNS_ONE, sql_take_u64, &ref.version, err,
                       "SELECT version FROM dq_task WHERE id = ? FOR UPDATE", SQL_ID(ref.id));

    if (rc > 0)
        rc = sql_first(db, COLUMNS_ONE, sql_take_u64, &status, err,
                       "SELECT status FROM dq_task WHERE id = ?", SQL_ID(ref.id));
    if (rc > 0 && status == TASK_RUNNING) {
        rc = attempt_store_drop_stale(db, &ref, 1, err);
        if (rc == 0)
            rc = attempt_store_add_running(db, &ref, 1, OUTCOME_CANCELLED, err);
    }
    if (rc >= 0)
        rc = sql_exec(db, NULL, err, "UPDATE dq_task FORCE INDEX (PRIMARY) SET ? WHERE ? AND ?",
                      SQL_TRANSITION(TASK_CANCEL), SQL_FROM(TASK_CANCEL), CLAIM_REF_THESE(&ref, 1));
    return rc;
}

/* 1: done, 0: another session was quicker with one of them. */
static int decide_together(struct deciding *d, struct due *const *x, size_t n, const char *error,
                           struct err *err)
{
    MEM_LOCAL struct slot_record *slots = NULL;
    struct slot_added added = {0};
    size_t count = 0, cap = 0;
    int rc = db_begin(d->db, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < x[i]->plan.count; k++) {
            MEM_ROOM(slots, count, cap);
            slots[count++] = (struct slot_record){&x[i]->schedule, &x[i]->plan.acts[k]};
        }
    }
    rc = move_next(d->db, x, n, err);
    const bool ours = rc == 1;
    for (size_t i = 0; rc > 0 && i < n; i++)
        if (x[i]->plan.cancels)
            rc = cancel_last(d->db, &x[i]->ref, err) < 0 ? err->code : 1;
    if (rc > 0)
        rc = slot_record_add(d->db, slots, count, error, &added, err);
    /* what was moved is moved back unless all were at their versions */
    rc = db_end(d->db, rc == 0 && !ours ? ERR_STATE : rc, err);
    if (rc == 0) {
        d->done->decided += n;
        d->done->added += added.tasks;
    }
    d->done->more |= rc == ERR_STATE;
    return rc == ERR_STATE ? 0 : rc < 0 ? rc : 1;
}

/* The slot is recorded without a task. */
static int refuse(struct deciding *d, struct due *x, const struct err *why, struct err *err)
{
    struct slot_plan *p = &x->plan;

    p->last_at = TASK_TIME_NONE;
    p->cancels = false;
    for (size_t k = 0; k < p->count; k++) {
        if (!slot_runs(p->acts[k].decision))
            continue;
        p->acts[k].decision = SLOT_REFUSED;
        p->missed += p->acts[k].missed + 1;
        p->acts[k].missed = 0;
    }
    int rc = decide_together(d, &x, 1, why->text, err);
    d->done->refused += rc > 0;
    if (rc > 0)
        note_fault(d, x, why);
    return rc;
}

/* Halves what is refused until one stands alone. A locked row is left for later. */
static int divide(struct deciding *d, struct due **x, size_t n, struct err *err)
{
    struct err why = {0};
    int rc = n ? decide_together(d, x, n, NULL, &why) : 1;

    if (rc < 0)
        *err = why;
    if (rc >= 0 || !rows_at_fault(d->db, rc))
        return rc;
    d->until = d->until ? d->until : when_steady() + PATIENCE_MS;
    if (n == 1 && rc != ERR_LOCKED) {
        return refuse(d, *x, &why, err);
    } else if (n == 1 || when_steady() > d->until) {
        for (size_t i = 0; i < n; i++)
            note_fault(d, x[i], &why);
        return 1;
    }
    rc = rc == ERR_LOCKED ? db_session_wait_not(d->db, err) : 0;
    if (rc == 0)
        rc = divide(d, x, n / 2, err);
    if (rc >= 0)
        rc = divide(d, x + n / 2, n - n / 2, err);
    return rc;
}

static int decide_all(struct deciding *d, struct err *err)
{
    struct due **x = mem_zero(d->count + 1, sizeof *x);
    size_t n = 0, acts = 0;
    int rc = 1;

    for (size_t i = 0; rc >= 0 && i <= d->count; i++) {
        const bool wanted = i < d->count && plan(d, &d->due[i]);

        if (n && (i == d->count || (wanted && acts + d->due[i].plan.count > ACTS_MOST))) {
            rc = divide(d, x, n, err);
            n = acts = 0;
        }
        if (wanted) {
            acts += d->due[i].plan.count;
            x[n++] = &d->due[i];
        }
    }
    db_session_wait(d->db);
    free(x);
    return rc < 0 ? rc : 0;
}

/* from_ms: when read_due began, steady clock. A slot that has come meanwhile is looked at next. */
static int read_next(struct deciding *d, int64_t from_ms, struct err *err)
{
    int64_t at = TASK_TIME_NONE;
    int rc = sql_read(d->db, COLUMNS_ONE, sql_take_time, &at, err,
                      "SELECT MIN(next_slot) FROM dq_schedule WHERE next_slot > ?",
                      SQL_FROM_NOW(SLOT_AHEAD_MS - (when_steady() - from_ms)));

    if (at != TASK_TIME_NONE)
        look_at(d->done, at - SLOT_AHEAD_MS);
    return rc;
}

static void forget_due(struct deciding *d)
{
    for (size_t i = 0; i < d->count; i++) {
        d->behind_at = d->due[i].schedule.next_at;
        snprintf(d->behind, sizeof d->behind, "%s", d->due[i].schedule.name);
        schedule_row_done(&d->due[i].schedule);
        timetable_free(d->due[i].timetable);
        slot_plan_done(&d->due[i].plan);
    }
    d->count = 0;
}

/* Many that cannot be decided here do not keep it from others. */
int slot_store_decide(struct db *db, struct slot_store_done *ret, struct err *err)
{
    struct slot_store_done done = {.look_at = TASK_TIME_NONE};
    struct deciding d = {.db = db, .done = &done};
    const int64_t from_ms = when_steady();
    bool full;
    int rc;

    do {
        rc = read_due(&d, err);
        if (rc == 0)
            rc = decide_all(&d, err);
        full = d.count == SCHEDULES_MOST;
        forget_due(&d);
    } while (rc == 0 && full && done.decided < SCHEDULES_MOST / 2);
    done.more |= full;
    if (rc == 0 && !done.more)
        rc = read_next(&d, from_ms, err);
    free(d.due);
    *ret = done;
    return rc;
}

int slot_store_renew(struct db *db, bool *ret_more, struct err *err)
{
    struct slot_store_done done = {.look_at = TASK_TIME_NONE};
    struct deciding d = {.db = db, .done = &done, .renews = true};
    int rc = read_due(&d, err);

    if (rc == 0 && d.count)
        rc = decide_all(&d, err);
    *ret_more = d.count == SCHEDULES_MOST && done.decided;
    forget_due(&d);
    free(d.due);
    return rc;
}
