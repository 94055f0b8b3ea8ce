/*
 * task_sql.h - pieces of statements on dq_task that several files of the store share. Private to src/store.
 *
 * Statements made of them name the table dq_task, with the alias t where they say so.
 */
#ifndef DQ_STORE_TASK_SQL_H
#define DQ_STORE_TASK_SQL_H

#include "base/task.h"
#include "store/claim_store.h"
#include "store/db.h"

#define TASK_STEP 500                                   /* most rows that one statement changes */
#define TAG_PAUSED_FOR_EVER_AT INT64_C(253402300799999) /* 9999-12-31 23:59:59.999 in dq_tag.paused_until */

/* The columns that task_read expects first in a row, of a table with the alias t. */
#define TASK_COLUMNS                                                                                                               \
    "t.id, t.tag, t.task_key, t.body_size, t.status, t.version, t.attempt, t.max_attempts, t.claim_token, t.host, t.pid,"          \
    " t.lease_until, t.delay_time, t.expected_time, t.execution_time, t.finish_time, t.exit_code, t.`signal`, t.error_stack,"      \
    " t.create_time, t.update_time"
#define TASK_COLUMN_COUNT 21
void task_read(const struct db_rows *r, struct task *ret);
void task_read_body(const struct db_rows *r, unsigned col, struct task *t); /* SQL NULL: stays not loaded */

/* A copy of a cell with a NUL behind it, NULL for SQL NULL. */
char *sql_dup(const struct db_rows *r, unsigned col, size_t *ret_len);
/* A copy of a tag as dq compares tags: the server pads, so that 'mail' and 'mail ' are one tag to it, and either may come; without
 * its trailing blanks there is only one. A NUL becomes TASK_TAG_NUL, or the
 * rest would be lost and the tag taken for another one. And the literal for such a copy. */
char *sql_dup_tag(const struct db_rows *r, unsigned col);
void sql_put_tag(struct buf *sql, const char *tag);
/* A cell of the column status: TASK_STATUS_UNKNOWN for a number that is no status. */
int sql_status(const struct db_rows *r, unsigned col);

/* A cell of expected_time, which is NOT NULL: an instant, long past where it cannot be read. */
int64_t sql_due(const struct db_rows *r, unsigned col);
/* A running task without a lease was not claimed by any dqd: its lease has ended. */
#define SQL_LEASE_ENDED "(lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))"

/* A row that the statement cannot have: ERR_FATAL. */
int sql_odd_row(const struct db *db, struct err *err);

/* `id IN (1,2,3)`, the same of refs, `((version = 0 AND id IN (1,2)) OR (version = 3 AND id IN (7)))`: ranges of the primary key on
 * every server, unlike IN with row constructors. count > 0. alias: "" or "t.". */
void sql_put_ids(struct buf *sql, const char *alias, const uint64_t *ids, size_t count);
void sql_put_ref_ids(struct buf *sql, const char *alias, const struct claim_ref *refs, size_t count);
void sql_put_refs(struct buf *sql, const char *alias, const struct claim_ref *refs, size_t count);
void sql_put_token(struct buf *sql, const unsigned char token[TASK_TOKEN_SIZE]); /* x'...' */
/* Which of `shares` shares an id is in, 0 to shares - 1: even whatever the step between ids. */
void sql_put_share(struct buf *sql, const char *alias, unsigned shares);
void sql_put_statuses(struct buf *sql, const char *alias, unsigned mask); /* `status IN (0,3)` */
/* Columns that come first in a row: the time that all of the statement goes by. Read by sql_now_us, in microseconds. */
#define SQL_NOW "UTC_TIMESTAMP(3), MICROSECOND(UTC_TIMESTAMP(6)) MOD 1000"
int64_t sql_now_us(const struct db_rows *r);
/* UTC_TIMESTAMP(3) + ms. */
void sql_put_from_now(struct buf *sql, int64_t ms);

/* What of dq_task c is above a floor: " AND ...", or nothing. */
void sql_put_floor(struct buf *sql, const struct claim_floor *floor);

/* `status IN (...)`: the states from which the event is allowed. And what it sets in any case: status, version, attempt,
 * update_time, and what follows from the new status for live, lease_until and finish_time. finish: the expression for the latter
 * where the task is finished; NULL: the statement's time. A task that is taken back not for the first time is due within
 * `attempt - 1` seconds (at most 30), at random: tasks that were claimed together with one that kills its dqd shall not use up
 * their attempts in its company. Ends without a comma. */
void sql_put_from(struct buf *sql, const char *alias, enum task_event event);
void sql_put_transition(struct buf *sql, const char *alias, enum task_event event, const char *finish);

/* For the rows refs that are running now: a row of dq_attempt made from the task's own columns. To be run before their UPDATE, in
 * the same transaction, with the rows locked. */
int attempt_add_running(struct db *db, const struct claim_ref *refs, size_t count, enum task_outcome outcome, struct err *err)
    __attribute__((warn_unused_result));

/* Removes rows of dq_attempt for attempts that have not ended yet: they are left from tasks that once had the same ids (a TRUNCATE,
 * a partial restore). After one of the inserts said ERR_DUPLICATE; in the transaction that tries it again. */
int attempt_drop_stale(struct db *db, const struct claim_ref *refs, size_t count, struct err *err)
    __attribute__((warn_unused_result));

/* Deletes those of the finished tasks refs that are still at that version, with their attempts, in one short transaction if no row
 * is bad. *ret_deleted: how many tasks. faults: as rows_run. */
int task_delete_refs(struct db *db, const struct claim_ref *refs, size_t count, size_t *ret_deleted, struct row_faults *faults,
                     struct err *err) __attribute__((warn_unused_result));

/* Runs a statement that selects (id, version) and leaves the rows in refs, which has room for `count`; *ret_count: how many came.
 */
int sql_read_refs(struct db *db, const struct buf *sql, struct claim_ref *refs, size_t count, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));

/* An id below which no task was created at `at` or later: found by bisecting the primary key, as ids grow with create_time, but for
 * transactions that took long and clocks that were set. Callers subtract from `at` what they allow for those. */
int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, struct err *err) __attribute__((warn_unused_result));

#endif
