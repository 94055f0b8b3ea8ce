/*
 * schedule_run.c - see schedule_run.h. Invariant: while a run is added, the schedule is locked, and
 * no dqd decides a slot of it.
 */
#include "store/ask/schedule_run.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/ask/schedule_store.h"
#include "store/db/columns.h"
#include "store/row/sql.h"
#include "store/work/slot_record.h"

#include <inttypes.h>

/* Begins a transaction in which the schedule is locked; *ret, to be freed, has its last run. */
static int begin_with(struct db *db, const char *name, struct schedule *ret, struct err *err)
{
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = sql_first(db, COLUMNS_ONE, NULL, NULL, err,
                   "SELECT 1 FROM dq_schedule WHERE name = ? FOR UPDATE", SQL_TEXT(name));
    return rc < 0 ? rc : schedule_store_find(db, name, true, ret, err);
}

static int end_with(struct db *db, int rc, const struct event_act *act, struct err *err)
{
    if (rc == 0)
        rc = event_store_add(db, act, NULL, 0, err);
    const bool sent = rc == 0;
    rc = db_end(db, rc, err);
    if (sent && rc == ERR_LOST)
        err_set(err, rc, "%s; it is not known whether that was added", err->text);
    return rc;
}

int schedule_run_now(struct db *db, const char *name, const struct event_act *act, uint64_t *ret_id,
                     int64_t *ret_slot_at, struct err *err)
{
    struct slot_act run = {.slots = 1, .decision = SLOT_BY_HAND};
    struct schedule s = {0};
    struct slot_added added;
    int rc = begin_with(db, name, &s, err);

    if (rc == 0 && s.overlap != SLOT_OVERLAP_ALLOW &&
        (s.status == TASK_PENDING || s.status == TASK_RUNNING))
        rc = err_set(err, ERR_STATE, "schedule %s: its last run, task %" PRIu64 ", is %s", name,
                     s.task_id, task_status_name(s.status));
    if (rc == 0)
        rc = db_now(db, &run.at, err);
    if (rc == 0) {
        run.due_at = run.at;
        run.missed = s.missed;
        run.expires_at = s.next_at > run.at + WHEN_MINUTE && s.kind != TIMETABLE_GAP
                             ? s.next_at
                             : TASK_TIME_NONE;
        rc = slot_record_add(db, &(struct slot_record){&s, &run}, 1, NULL, &added, err);
    }
    if (rc == 0)
        rc = sql_exec(db, NULL, err,
                      "UPDATE dq_schedule SET missed = 0, version = version + 1,"
                      " last_slot = GREATEST(COALESCE(last_slot, 0), ?) WHERE name = ?",
                      SQL_TIME(run.at), SQL_TEXT(name));
    rc = end_with(db, rc, act, err);
    schedule_row_done(&s);
    if (rc < 0)
        return rc;
    *ret_id = added.id;
    *ret_slot_at = run.at;
    return 1;
}

int schedule_run_backfill(struct db *db, const char *name, const int64_t *slots, size_t count,
                          int64_t over_ms, const struct event_act *act, struct err *err)
{
    MEM_LOCAL struct slot_act *acts = mem_zero(count + 1, sizeof *acts);
    MEM_LOCAL struct slot_record *records = mem_zero(count + 1, sizeof *records);
    struct schedule s = {0};
    int64_t now_at = 0;
    int rc = begin_with(db, name, &s, err);

    if (rc == 0 && s.next_at != TASK_TIME_NONE && count && slots[count - 1] >= s.next_at)
        rc = err_set(err, ERR_STATE, "schedule %s: a dqd has not decided its last slots yet", name);
    if (rc == 0)
        rc = db_now(db, &now_at, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        acts[i] = (struct slot_act){.at = slots[i],
                                    .slots = 1,
                                    .decision = SLOT_BY_HAND,
                                    .due_at = now_at + over_ms * (int64_t)i / (int64_t)count,
                                    .expires_at = TASK_TIME_NONE};
        records[i] = (struct slot_record){&s, &acts[i]};
    }
    if (rc == 0)
        rc = slot_record_add(db, records, count, NULL, &(struct slot_added){0}, err);
    if (rc == ERR_DUPLICATE)
        err_set(err, ERR_STATE, "schedule %s: a run of one of these slots is pending or running",
                name);
    rc = end_with(db, rc, act, err);
    schedule_row_done(&s);
    return rc;
}
