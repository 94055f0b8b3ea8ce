/*
 * sql.h - pieces of statements, and cells of results, that several files share. Private to
 * src/store.
 */
#ifndef DQ_STORE_SQL_H
#define DQ_STORE_SQL_H

#include "base/task.h"
#include "store/db.h"

#define SQL_STATEMENT_BYTES ((size_t)1 << 20) /* a statement of many rows is cut there */

/* A copy of a cell with a NUL behind it, NULL for SQL NULL. */
char *sql_dup(const struct db_rows *r, unsigned col, size_t *ret_len);
/* A copy of a tag as dq compares tags: the server pads, so that 'mail' and 'mail ' are one tag to
 * it, and either may come; without its trailing blanks there is only one. A NUL becomes
 * TASK_TAG_NUL, or the rest would be lost and the tag taken for another one. And the literal for
 * such a copy. */
char *sql_dup_tag(const struct db_rows *r, unsigned col);
void sql_put_tag(struct buf *sql, const char *tag);
/* A cell of the column status: TASK_STATUS_UNKNOWN for a number that is no status. */
int sql_status(const struct db_rows *r, unsigned col);

/* A cell of expected_time, which is NOT NULL: an instant, long past if it cannot be read. */
int64_t sql_due(const struct db_rows *r, unsigned col);
/* A running task without a lease was not claimed by any dqd: its lease has ended. */
#define SQL_LEASE_ENDED "(lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))"

/* For db_first: the first cell as a number, to *(uint64_t *)arg. */
void sql_take_u64(const struct db_rows *r, void *arg);

/* A row that the statement cannot have: ERR_FATAL. */
int sql_odd_row(const struct db *db, struct err *err);

/* `id IN (1,2,3)`: count > 0. alias: "" or "t.". */
void sql_put_ids(struct buf *sql, const char *alias, const uint64_t *ids, size_t count);
void sql_put_token(struct buf *sql, const unsigned char token[TASK_TOKEN_SIZE]); /* x'...' */
/* Which of `shares` shares an id is in, 0 to shares - 1: even whatever the step between ids. */
void sql_put_share(struct buf *sql, const char *alias, unsigned shares);
void sql_put_statuses(struct buf *sql, const char *alias, unsigned mask); /* `status IN (0,3)` */
/* Two entries of a list of columns (columns.h): the time that all of the statement goes by. Read by
 * sql_now_us, in microseconds, from the first one's place. */
#define SQL_NOW(X, name)                                                                           \
    X(name, "UTC_TIMESTAMP(3)") X(name##_FRACTION, "MICROSECOND(UTC_TIMESTAMP(6)) MOD 1000")
int64_t sql_now_us(const struct db_rows *r, unsigned col);
/* UTC_TIMESTAMP(3) + ms. */
void sql_put_from_now(struct buf *sql, int64_t ms);

/* `status IN (...)`: the states from which the event is allowed. And what it sets in any case:
 * status, version, attempt, update_time, and what follows from the new status for live, lease_until
 * and finish_time. finish: the expression for the latter where the task is finished; NULL: the
 * statement's time. A task that is taken back not for the first time is due within `attempt - 1`
 * seconds (at most 30), at random: tasks that were claimed together with one that kills its dqd
 * must not use up their attempts in its company. Ends without a comma. */
void sql_put_from(struct buf *sql, const char *alias, enum task_event event);
void sql_put_transition(struct buf *sql, const char *alias, enum task_event event,
                        const char *finish);

#endif
