/*
 * sql.h - parts of statements, and cells of results, that several files share.
 */
#ifndef DQ_STORE_ROW_SQL_H
#define DQ_STORE_ROW_SQL_H

#include "base/task.h"
#include "store/db/db.h"

#define SQL_STATEMENT_BYTES ((size_t)1 << 20) /* a statement of many rows is cut there */

/* A statement is written as its text, with a ? for each value, which follow it: sql_put appends it
 * to sql, the others run it. sql_exec is db_exec, sql_all db_all (sql_all_streamed likewise),
 * sql_first db_first, and sql_read the same, but 0 also if there is a row. The text has no other ?.
 */
struct sql_value {
    enum sql_kind {
        KIND_TEXT,
        KIND_TAG,
        KIND_TOKEN,
        KIND_PART,
        KIND_TIME,
        KIND_AFTER,
        KIND_INT,
        KIND_ID,
        KIND_IDS,
        KIND_LIKE,
        KIND_LEVEL,
        KIND_STATUSES,
        KIND_TRANSITION,
        KIND_OTHER
    } kind;
    const void *p;
    int64_t number;
    size_t size;
    void (*put)(struct buf *sql, const void *p, int64_t number);
};
#define SQL_TEXT(s) ((struct sql_value){KIND_TEXT, .p = (s)})   /* char *; NULL: NULL */
#define SQL_TAG(s) ((struct sql_value){KIND_TAG, .p = (s)})     /* the same, of sql_dup_tag */
#define SQL_TOKEN(t) ((struct sql_value){KIND_TOKEN, .p = (t)}) /* TASK_TOKEN_SIZE bytes */
#define SQL_PART(s) ((struct sql_value){KIND_PART, .p = (s)})   /* char *, SQL; NULL: nothing */
#define SQL_TIME(at) ((struct sql_value){KIND_TIME, .number = (at)}) /* TASK_TIME_NONE: NULL */
#define SQL_FROM_NOW(ms)                                                                           \
    ((struct sql_value){KIND_AFTER, .number = (ms)}) /* UTC_TIMESTAMP(3) + ms */
#define SQL_INT(n) ((struct sql_value){KIND_INT, .number = (n)})
#define SQL_ID(n) ((struct sql_value){KIND_ID, .number = (int64_t)(n)}) /* uint64_t */
/* `(1,2,3)`: the ids with which these items begin, at least one. */
#define SQL_IDS(items, n)                                                                          \
    ((struct sql_value){KIND_IDS, .p = (items), .number = (int64_t)(n), .size = sizeof *(items)})
#define SQL_LIKE(glob)                                                                             \
    ((struct sql_value){KIND_LIKE, .p = (glob)}) /* of tags; ESCAPE '!' follows */
#define SQL_LEVEL(level) ((struct sql_value){KIND_LEVEL, .number = (level)}) /* of `priority` */
/* What put appends. */
#define SQL_OTHER(put, p, n) ((struct sql_value){KIND_OTHER, p, (int64_t)(n), 0, put})
/* `status IN (0,3)`: of a mask of TASK_BIT; and the states from which an event is allowed. */
#define SQL_STATUSES(mask) ((struct sql_value){KIND_STATUSES, .number = (int64_t)(mask)})
#define SQL_FROM(event) SQL_STATUSES(task_transition(event)->from)
/* The assignments that an event always makes: status, version, attempt, update_time, and those of
 * live, lease_until and finish_time that follow from the new status. A task taken back for the
 * second time or later becomes due at random within `attempt - 1` seconds (at most 30): tasks
 * claimed together with one that kills its dqd must not use up their attempts alongside it.
 *
 * SQL_END_OF_RUN: of an event that ends a run, in a statement for rows that were added again
 * meanwhile, or for those that were not. The former take the body that was added, and become
 * pending instead of finished. finish: the expression for finish_time if the task becomes finished;
 * NULL: the statement's time. SQL_AGAIN_TAKEN ends the assignments: what stands between may use
 * again_time. SQL_AGAIN is the condition, ` AND ...`. */
#define SQL_TRANSITION(event) SQL_END_OF_RUN(event, false, NULL)
#define SQL_END_OF_RUN(event, again, finish)                                                       \
    ((struct sql_value){KIND_TRANSITION, .p = (finish), .number = (event), .size = (again)})
#define SQL_AGAIN_TAKEN(again) SQL_PART((again) ? ", again_time = NULL, again_body = NULL" : NULL)
#define SQL_AGAIN(again)                                                                           \
    SQL_PART((again) ? " AND again_time IS NOT NULL" : " AND again_time IS NULL")
#define SQL_ARRAY(...) ((const struct sql_value[]){{.p = NULL}, ##__VA_ARGS__})
#define SQL_VALUES(...)                                                                            \
    SQL_ARRAY(__VA_ARGS__), sizeof SQL_ARRAY(__VA_ARGS__) / sizeof(struct sql_value)
#define sql_put(sql, text, ...) sql_put_values(sql, text, SQL_VALUES(__VA_ARGS__))
#define sql_exec(db, ret_rows, err, text, ...)                                                     \
    sql_exec_values(db, ret_rows, err, text, SQL_VALUES(__VA_ARGS__))
#define sql_all(db, columns, take, arg, err, text, ...)                                            \
    sql_ask_values(db, db_all, columns, take, arg, err, text, SQL_VALUES(__VA_ARGS__))
#define sql_all_streamed(db, columns, take, arg, err, text, ...)                                   \
    sql_ask_values(db, db_all_streamed, columns, take, arg, err, text, SQL_VALUES(__VA_ARGS__))
#define sql_first(db, columns, take, arg, err, text, ...)                                          \
    sql_ask_values(db, db_first, columns, take, arg, err, text, SQL_VALUES(__VA_ARGS__))
#define sql_read(db, columns, take, arg, err, text, ...)                                           \
    sql_ask_values(db, sql_one, columns, take, arg, err, text, SQL_VALUES(__VA_ARGS__))
typedef int sql_fetch(struct db *db, const struct buf *sql, unsigned columns, db_take_row *take,
                      void *arg, struct err *err);
sql_fetch sql_one; /* db_first, but 0 also if there is a row */
void sql_put_values(struct buf *sql, const char *text, const struct sql_value *v, size_t count);
int sql_exec_values(struct db *db, uint64_t *ret_rows, struct err *err, const char *text,
                    const struct sql_value *v, size_t count) __attribute__((warn_unused_result));
int sql_ask_values(struct db *db, sql_fetch *fetch, unsigned columns, db_take_row *take, void *arg,
                   struct err *err, const char *text, const struct sql_value *v, size_t count)
    __attribute__((warn_unused_result));

/* A copy of a cell on the heap, NUL-terminated; NULL for SQL NULL. *ret_len, unless NULL, is set to
 * its length. */
char *sql_dup(const struct db_rows *r, unsigned col, size_t *ret_len);
/* sql_dup_tag: a copy of a tag, as dq compares tags: without trailing blanks, because to the server
 * 'mail' and 'mail ' are the same tag and it may return either. A NUL becomes TASK_TAG_NUL, or the
 * rest of the tag would be lost. sql_put_tag appends the literal for such a copy. */
char *sql_dup_tag(const struct db_rows *r, unsigned col);
void sql_put_tag(struct buf *sql, const char *tag);
/* A copy of a key: with its trailing blanks, and NULs as in a tag; NULL: none. */
char *sql_dup_key(const struct db_rows *r, unsigned col);
/* The values of `status` that mean pending, which nothing outside src/store knows: 0, and of tasks
 * with another priority than normal 5 and 6, so that the index `due` has each level in its order.
 * The column `priority` has the value to which such a task returns, or NULL. */
#define SQL_PENDING "IN (0,5,6)"
#define SQL_STATE(alias) "IF(" alias "status " SQL_PENDING ",0," alias "status)" /* pending: 0 */
#define SQL_STATUS_COUNT 7       /* greater values are no status */
unsigned sql_pending(int level); /* 0, 5 or 6 */
/* What a value of status means; TASK_STATUS_UNKNOWN: it is none. sql_level_of: of status or
 * priority. */
int sql_status_of(uint64_t value);
enum task_level sql_level_of(uint64_t value);
/* The same of a cell. */
int sql_status(const struct db_rows *r, unsigned col);
enum task_level sql_level(const struct db_rows *r, unsigned col);

/* A cell of expected_time, which is NOT NULL: an instant, far in the past if it cannot be read. */
int64_t sql_due(const struct db_rows *r, unsigned col);
/* Begins a condition that names columns of a forced primary key only. Beside a column of numbers
 * that is not in it, the server reads ranges of the key; else, if the statistics are those of an
 * empty table, all of it. */
#define SQL_BY_KEY(column) column " >= 0 AND "
/* The due order: by time, then by id, as in the index `due`. order: "" or " DESC". */
#define SQL_DUE_ORDER(alias, order) alias "expected_time" order ", " alias "id" order
/* Appends ` AND (...)`: what comes behind this place in the due order ('>'), or before it ('<'). id
 * 0: from that time on, or before that time. put: db_put_time or db_put_stamp. */
void sql_put_due_beyond(struct buf *sql, const char *alias, char beyond,
                        void (*put)(struct buf *sql, int64_t at), int64_t at, uint64_t id);
/* When a pending task was moved last: added in place of another, rescheduled, retried, taken back.
 * NULL: never, or it was claimed and given back since. SQL_LATE_FROM: as task_late_from. alias: ""
 * or "t.". */
#define SQL_MOVED(alias)                                                                           \
    "IF(" alias "execution_time IS NULL AND " alias "host IS NOT NULL, NULL, " alias "update_time)"
#define SQL_LATE_FROM(alias)                                                                       \
    "GREATEST(" alias "expected_time, " alias                                                      \
    "create_time, COALESCE(" SQL_MOVED(alias) ", " alias "expected_time))"
/* Not task_countable: no dqd claims it. */
#define SQL_REFUSED "(version >= 18446744073709551615 - 1000000 OR attempt >= 4294967295 - 1000000)"
/* The form of EXPLAIN with a row for each table, which MySQL 9 does not print unless asked; how
 * many columns it has, and the places of some: MySQL also has `partitions` and `filtered`. */
#define SQL_EXPLAIN "EXPLAIN FORMAT=TRADITIONAL "
struct sql_explain {
    unsigned count, id, type, key, rows, extra;
};
const struct sql_explain *sql_explain_columns(const struct db *db);
/* A row of dq_limit that is paused, as limit_ask has it. alias: "" or "g.". */
#define SQL_PAUSED(alias) alias "paused_until > UTC_TIMESTAMP(3)"
/* The rows that pause a tag: of its name, which follows, or of a glob, whose subquery `tag` ends.
 * Two, as each reads a range of an index. */
#define SQL_PAUSE_OF_NAME "(SELECT 1 FROM dq_limit g WHERE " SQL_PAUSED("g.") " AND g.name = "
#define SQL_PAUSE_OF_GLOB                                                                          \
    "(SELECT 1 FROM dq_limit g FORCE INDEX (pattern) WHERE " SQL_PAUSED(                           \
        "g.") " AND g.pattern IS NOT NULL AND "
#define SQL_LIKE_GLOB " LIKE g.pattern ESCAPE '!'"
/* Appends a glob of tags as a literal for LIKE, with ESCAPE '!'. */
void sql_put_like(struct buf *sql, const char *glob, size_t len);
/* An instant that is further ahead than it can be was written while the server's clock was ahead,
 * and says nothing: when something was seen or decided if it is a minute ahead, a lease if it is
 * one more than the longest lease that a dqd has. For a task whose dqd has ended, or does not say,
 * that is a day: its lease may have been longer than those of the others. */
#define SQL_AHEAD(at) at " > UTC_TIMESTAMP(3) + INTERVAL 60 SECOND"
#define SQL_SEEN_AHEAD SQL_AHEAD("last_seen")
#define SQL_LONGEST_LEASE "(SELECT COALESCE(MAX(lease), 86400000) FROM dq_poller)"
#define SQL_ENDED_LEASE                                                                            \
    "IF(EXISTS (SELECT 1 FROM dq_poller d WHERE d.token = claim_token), 0, 86400000)"
#define SQL_LEASE_BEYOND(ms)                                                                       \
    "lease_until > UTC_TIMESTAMP(3) + INTERVAL (60000 + " ms ") * 1000 MICROSECOND"
#define SQL_LEASE_AHEAD(longest) SQL_LEASE_BEYOND(longest) " AND " SQL_LEASE_BEYOND(SQL_ENDED_LEASE)
/* A running task without a lease was not claimed by dqd; its lease counts as ended. */
#define SQL_LEASE_ENDED "(lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))"

/* For db_first: the first cell as a number, to *(uint64_t *)arg; as an instant, to *(int64_t *)arg.
 */
void sql_take_u64(const struct db_rows *r, void *arg);
void sql_take_time(const struct db_rows *r, void *arg);

/* Appends `SELECT `, with a limit of time for the whole statement unless ms is 0: a setting for
 * MariaDB and a hint for MySQL; to the other server each is a comment. */
void sql_put_select_within(struct buf *sql, int64_t ms);

/* Stores a cell with a token; ret keeps its bytes where the cell has none. */
void sql_read_token(const struct db_rows *r, unsigned col, unsigned char ret[TASK_TOKEN_SIZE]);
void sql_put_token(struct buf *sql, const unsigned char token[TASK_TOKEN_SIZE]); /* x'...' */
/* The share that an id belongs to, 0 to shares - 1. Shares are even for any step between ids.
 * alias, here and below: "" or "t.". */
#define SQL_SHARE(alias, shares) SQL_OTHER(sql_put_share, alias, shares)
void sql_put_share(struct buf *sql, const void *alias, int64_t shares);
/* Two entries of a list of columns (columns.h): the time of the statement. sql_now_us reads both,
 * in microseconds, given the first. */
#define SQL_NOW(X, name)                                                                           \
    X(name, "UTC_TIMESTAMP(3)") X(name##_FRACTION, "MICROSECOND(UTC_TIMESTAMP(6)) MOD 1000")
int64_t sql_now_us(const struct db_rows *r, unsigned col);
/* When a task expires; default_ms: so long after its start could have been late (SQL_LATE_FROM) if
 * the row has no time; 0: never. */
#define SQL_EXPIRES(alias, default_ms)                                                             \
    SQL_OTHER(sql_put_expires,                                                                     \
              ((const char *const[]){alias "expires_time", SQL_LATE_FROM(alias)}), default_ms)
void sql_put_expires(struct buf *sql, const void *columns, int64_t default_ms);

/* The assignment that begins another run. It has a number of its own if an attempt may have done
 * what the run does, with another body or because the task is done: whoever remembers runs would
 * take it for a repeat. */
#define SQL_NEXT_RUN_IF(condition) "run = run + (run < 4294967295 AND " condition ")"

#endif
