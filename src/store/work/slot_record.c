/*
 * slot_record.c - see slot_record.h. Invariant: a slot is open from when its task is added until
 * the end of that task is recorded, or that of a later one.
 */
#include "store/work/slot_record.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_statement.h"
#include "store/row/sql.h"

#include <sys/param.h>

#define HARVEST_MOST 2000
#define KEPT_MS (90 * WHEN_DAY)

static int add_tasks(struct db *db, const struct task_new *tasks, size_t count, struct err *err)
{
    const unsigned has = task_new_columns(tasks, count);
    size_t most = 0, rows;
    int rc = count ? db_max_packet(db, &most, err) : 0;

    for (size_t at = 0; rc == 0 && at < count; at += rows) {
        LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;

        task_new_put_insert(&st.sql, has);
        rows = task_new_put_many(&st, tasks + at, count - at, has, NULL,
                                 MIN(most, SQL_STATEMENT_BYTES));
        rc = task_new_check_packet(db, &st, tasks + at, err);
        if (rc == 0)
            rc = db_statement_exec(db, &st, NULL, err);
    }
    return rc;
}

/* The record of a slot that is run again by hand is replaced. */
#define SLOTS_HEAD                                                                                 \
    "INSERT INTO dq_slot (name, slot, slots, decision, missed, decide_time, is_open, error) VALUES "
#define SLOTS_TAIL                                                                                 \
    " ON DUPLICATE KEY UPDATE slots = VALUES(slots), decision = VALUES(decision),"                 \
    " missed = VALUES(missed), decide_time = VALUES(decide_time), is_open = VALUES(is_open),"      \
    " error = VALUES(error), task_id = NULL, start_time = NULL, finish_time = NULL,"               \
    " result = NULL, exit_code = NULL"

static int record_slots(struct db *db, const struct slot_record *slots, size_t count,
                        const char *error, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    for (size_t i = 0; i < count; i++) {
        const struct slot_act *act = slots[i].act;

        sql_put(&sql, "?(?,?,?,?,?,UTC_TIMESTAMP(3),?,LEFT(?,255))", SQL_PART(i ? "," : SLOTS_HEAD),
                SQL_TEXT(slots[i].schedule->name), SQL_TIME(act->at), SQL_INT(act->slots),
                SQL_INT(act->decision), SQL_INT(act->missed),
                SQL_PART(slot_runs(act->decision) ? "1" : "NULL"), SQL_TEXT(error));
    }
    buf_str(&sql, SLOTS_TAIL);
    return count ? db_exec(db, &sql, NULL, err) : 0;
}

int slot_record_add(struct db *db, const struct slot_record *slots, size_t count, const char *error,
                    struct slot_added *ret, struct err *err)
{
    MEM_LOCAL struct task_new *tasks = mem_zero(count + 1, sizeof *tasks);
    MEM_LOCAL struct buf *keys = mem_zero(count + 1, sizeof *keys);
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (!slot_runs(slots[i].act->decision))
            continue;
        tasks[n] = schedule_row_task(slots[i].schedule, slots[i].act, &keys[n]);
        n++;
    }
    int rc = add_tasks(db, tasks, n, err);
    *ret = (struct slot_added){n, db_insert_id(db)};
    if (rc == 0)
        rc = record_slots(db, slots, count, error, err);
    for (size_t i = 0; i < n; i++)
        buf_done(&keys[i]);
    return rc;
}

/* ---- how runs end */

#define OPEN_TASK SCHEDULE_ROW_TASK("s.name", "s.slot")

/* An INSERT that meets all its rows: unlike an UPDATE with a join, it locks no row of dq_task. It
 * reads the ends before it has locked the slots: one whose run has begun again meanwhile has
 * another decide_time, and stays open. */
int slot_record_harvest(struct db *db, bool *ret_more, struct err *err)
{
    uint64_t rows = 0;
    int rc = sql_exec(
        db, &rows, err,
        "INSERT INTO dq_slot (name, slot, decision, decide_time, task_id, start_time, finish_time, result, exit_code, error)"
        " SELECT s.name, s.slot, s.decision, s.decide_time, t.id, t.execution_time, t.finish_time,"
        " t.status, t.exit_code, LEFT(t.error_stack, 255) FROM dq_slot s FORCE INDEX (is_open)"
        " LEFT JOIN dq_task t FORCE INDEX (PRIMARY) ON t.id = " OPEN_TASK
        " WHERE s.is_open = 1 AND (t.id IS NULL OR t.?)"
        " LIMIT ? ON DUPLICATE KEY UPDATE"
        " is_open = IF(dq_slot.decide_time = VALUES(decide_time), NULL, dq_slot.is_open), task_id = VALUES(task_id),"
        " start_time = VALUES(start_time), finish_time = VALUES(finish_time),"
        " result = VALUES(result), exit_code = VALUES(exit_code), error = VALUES(error)",
        SQL_STATUSES(TASK_FINISHED), SQL_INT(HARVEST_MOST));
    *ret_more = rows >= 2 * HARVEST_MOST; /* each that is changed counts twice */
    return rc;
}

int slot_record_reopen(struct db *db, const struct claim_ref *refs, size_t count, struct err *err)
{
    return sql_exec(
        db, NULL, err,
        "UPDATE dq_task t FORCE INDEX (PRIMARY) STRAIGHT_JOIN dq_slot s FORCE INDEX (PRIMARY)"
        " ON s.name = SUBSTRING_INDEX(t.task_key, '@', 1) AND s.slot ="
        " CAST(IF(t.missed_slots IS NOT NULL AND t.task_key LIKE '%@____-__-__T__:__:__%Z',"
        " REPLACE(REPLACE(SUBSTRING_INDEX(t.task_key, '@', -1), 'T', ' '), 'Z', ''), NULL) AS DATETIME(3))"
        " SET s.is_open = 1, s.decide_time = UTC_TIMESTAMP(3) WHERE t.missed_slots IS NOT NULL AND t.status " SQL_PENDING
        " AND t.id IN ?",
        SQL_IDS(refs, count));
}

/* Most of the time none is that old, and nothing is written. */
int slot_record_expire(struct db *db, size_t limit, size_t *ret_deleted, struct err *err)
{
    BUF_LOCAL struct buf where = BUF_INIT;
    uint64_t rows = 0;

    /* dq check --schedules asks how the last run ended */
    sql_put(&where,
            " FROM dq_slot WHERE is_open IS NULL AND decide_time < ? AND NOT EXISTS (SELECT 1"
            " FROM dq_schedule c WHERE c.name = dq_slot.name AND c.last_slot = dq_slot.slot)",
            SQL_FROM_NOW(-KEPT_MS));
    int rc = sql_first(db, COLUMNS_ONE, NULL, NULL, err, "SELECT 1? LIMIT 1", SQL_PART(where.data));
    if (rc == 1)
        rc = sql_exec(db, &rows, err, "DELETE? ORDER BY decide_time LIMIT ?", SQL_PART(where.data),
                      SQL_ID(limit));
    if (rc == 0)
        *ret_deleted = (size_t)rows;
    return rc;
}
