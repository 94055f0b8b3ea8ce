/*
 * task_add.c - storing new tasks.
 *
 * Invariant: success is reported only for what the server has committed, and a statement whose
 * answer was lost is looked up by its add_token before it is tried again, so that no task is stored
 * twice. Rows are inserted with VALUES: by default, MariaDB lets no other session insert while an
 * INSERT ... SELECT runs, or waits for a row.
 */
#include "store/ask/task_add.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_connect.h"
#include "store/db/db_session.h"
#include "store/fleet/event_store.h"
#include "store/fleet/poller_store.h"
#include "store/row/add_token.h"
#include "store/row/claim_ref.h"
#include "store/row/sql.h"
#include "store/schema/schema.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#define STATEMENT_ROWS 2000
#define ADD_TRIES 3
#define LIVE_TRIES 10 /* the task with the key may begin, end or appear each time */
#define KEY_NAP_MOST_MS 50

struct live {
    struct claim_ref ref;
    int status;
    int64_t expected_at;
};

/* clang-format off */
#define LIVE_COLUMNS(X)        \
    X(LIVE_ID, "id")           \
    X(LIVE_VERSION, "version") \
    X(LIVE_STATUS, "status")   \
    X(LIVE_EXPECTED, "expected_time")
/* clang-format on */
enum { LIVE_COLUMNS(COLUMNS_NAME) LIVE_COUNT };

static void take_live(const struct db_rows *r, void *arg)
{
    *(struct live *)arg = (struct live){{db_u64(r, LIVE_ID), db_u64(r, LIVE_VERSION)},
                                        sql_status(r, LIVE_STATUS),
                                        sql_due(r, LIVE_EXPECTED)};
}

/* Finds the live task with that tag and key. 1, or 0 if there is none (any more). */
static int find_live(struct db *db, const struct task_new *t, struct live *ret, struct err *err)
{
    return sql_first(db, LIVE_COUNT, take_live, ret, err,
                     "SELECT ? FROM dq_task WHERE task_key = ? AND tag = ? AND live = 1",
                     SQL_PART(COLUMNS_SELECT(LIVE_COLUMNS)), SQL_TEXT(t->key), SQL_TEXT(t->tag));
}

/* clang-format off */
#define ADDED_COLUMNS(X)                                     \
    X(ADDED_ID, "id")                                        \
    X(ADDED_EXPECTED, "COALESCE(again_time, expected_time)") \
    X(ADDED_NOW, "UTC_TIMESTAMP(3)")
/* clang-format on */
enum { ADDED_COLUMNS(COLUMNS_NAME) ADDED_COUNT };

static void take_added(const struct db_rows *r, void *arg)
{
    struct task_added *ret = arg;

    ret->id = db_u64(r, ADDED_ID);
    ret->expected_at = sql_due(r, ADDED_EXPECTED);
    ret->now_at = db_time(r, ADDED_NOW);
}

static int read_added(struct db *db, uint64_t id, struct task_added *ret, struct err *err)
{
    return sql_first(db, ADDED_COUNT, take_added, ret, err, "SELECT ? FROM dq_task WHERE id = ?",
                     SQL_PART(COLUMNS_SELECT(ADDED_COLUMNS)), SQL_ID(id));
}

/* Runs an INSERT that returns only an id, and reads the rest. 1. If that cannot be read, the id is
 * all: alone, the task is stored by then. */
static int exec_insert(struct db *db, const struct db_statement *st, const struct task_new *t,
                       bool alone, struct task_added *ret, struct err *err)
{
    int rc = db_statement_exec(db, st, NULL, err);
    if (rc < 0)
        return rc;
    *ret = (struct task_added){
        .id = db_insert_id(db), .expected_at = t->expected_at, .now_at = TASK_TIME_NONE};
    rc = read_added(db, ret->id, ret, err);
    return rc < 0 && rc != ERR_DENIED && !alone ? rc : 1;
}

/* Before each try: whether this dq works with the schema, in the statement that is needed for the
 * token. Whatever raises schema_compat later has to leave our INSERT valid, as for a dqd. */
static int begin_try(struct db *db, struct add_token *token, struct err *err)
{
    BUF_LOCAL struct buf from = BUF_INIT;
    struct err why;

    schema_put_from(&from);
    int rc = add_token_lower(db, token, from.data, err), refused;
    if (rc == ERR_DENIED)
        rc = add_token_lower(db, token, "", err);
    if ((rc == 0 || rc == ERR_CONFIG) && (refused = schema_check(db, &why)) < 0) {
        *err = why;
        return refused;
    }
    return rc ? MIN(rc, 0) : err_set(err, ERR_TRANSIENT, "the schema was being changed: try again");
}

/* A unique index that is not dq's says nothing about the key: the task is not stored. */
static int of_key(int rc, const struct err *err)
{
    return rc == ERR_DUPLICATE && !strstr(err->text, TASK_NEW_KEY_INDEX) ? ERR_DATA : rc;
}

/* 1: added; ERR_DUPLICATE: a live task has the key. One statement that returns what it stored, if
 * the server can and the account may read. at_once: it fails if it would have to wait for a row. */
static int insert_one(struct db *db, const struct task_new *t,
                      const unsigned char token[TASK_TOKEN_SIZE], bool at_once, bool alone,
                      struct task_added *ret, struct err *err)
{
    LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;
    unsigned has = task_new_columns(t, 1);

    buf_str(&st.sql, at_once ? "SET STATEMENT innodb_lock_wait_timeout = 0 FOR " : "");
    task_new_put_insert(&st.sql, has);
    task_new_put_many(&st, t, 1, has, token, 0);
    size_t len = st.sql.len;
    bool returning = db_is_mariadb(db) && db_server_version(db) >= 100500 && !st.count;
    if (returning)
        buf_printf(&st.sql, " RETURNING %s", COLUMNS_SELECT(ADDED_COLUMNS));
    int rc = task_new_check_packet(db, &st, t, err);
    if (rc == 0)
        rc = returning ? db_first(db, &st.sql, ADDED_COUNT, take_added, ret, err)
                       : exec_insert(db, &st, t, alone, ret, err);
    if (rc == ERR_DENIED && returning) {
        db_statement_cut(&st, len, 0);
        rc = exec_insert(db, &st, t, alone, ret, err);
    }
    if (rc == 0)
        rc = err_set(err, ERR_LOST, "the server returned no row for a task that it stored");
    return of_key(rc, err);
}

/* What waits for a key keeps others from storing what is next to it in the index: if there is no
 * other key, all tasks without one. So it tries again and again, without a wait, outside a
 * transaction and where the server can. A lock on the next id is ERR_TRANSIENT. */
static int insert_patiently(struct db *db, const struct task_new *t,
                            const unsigned char token[TASK_TOKEN_SIZE], bool alone,
                            struct task_added *ret, struct err *err)
{
    const int64_t wait_ms = alone && t->key ? db_session_can_try(db) : 0,
                  until = when_steady() + wait_ms;
    int rc = insert_one(db, t, token, wait_ms > 0, alone, ret, err);

    for (int ms = 1; (rc == ERR_LOCKED || rc == ERR_TRANSIENT) && when_steady() < until;
         ms = MIN(2 * ms, KEY_NAP_MOST_MS)) {
        nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
        rc = insert_one(db, t, token, true, alone, ret, err);
    }
    return rc;
}

/* Its new time, or the earlier or later one of it and that in the column. */
static void put_time(struct buf *sql, const struct task_new *t, enum key_conflict on_conflict,
                     const char *column)
{
    if (on_conflict == KEY_REPLACE) {
        task_new_put_expected(sql, t);
        return;
    }
    BUF_LOCAL struct buf expected = BUF_INIT;
    task_new_put_expected(&expected, t);
    sql_put(sql, "COALESCE(?(?, ?), ?)", SQL_PART(on_conflict == KEY_AGAIN ? "LEAST" : "GREATEST"),
            SQL_PART(column), SQL_PART(expected.data), SQL_PART(expected.data));
}

/* 1: replaced, 0: it has changed since, or is gone. What is added again replaces whatever is
 * pending. */
static int replace_row(struct db *db, const struct task_new *t, const struct claim_ref *old,
                       enum key_conflict on_conflict, struct err *err)
{
    LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;
    struct buf *sql = &st.sql;
    uint64_t rows = 0;

    /* status follows from priority */
    sql_put(sql,
            "UPDATE dq_task SET priority = ?, " SQL_NEXT_RUN_IF(
                "(claim_token IS NOT NULL OR execution_time IS NOT NULL)") ", ?, attempt = ?,"
                                                                           " message_body = ",
            SQL_LEVEL(t->level), SQL_TRANSITION(TASK_RESCHEDULE), SQL_INT(t->attempt));
    db_statement_put(&st, t->body ? t->body : "", t->body_size);
    sql_put(sql, ", body_size = ?, max_attempts = ", SQL_ID(t->body_size));
    task_new_put_max_attempts(sql, t);
    buf_str(sql, ", expected_time = ");
    put_time(sql, t, on_conflict, "expected_time");
    buf_str(sql, ", expires_time = ");
    task_new_put_expires(sql, t, "expected_time");
    sql_put(sql, " WHERE ? AND id = ?", SQL_FROM(TASK_RESCHEDULE), SQL_ID(old->id));
    if (on_conflict == KEY_REPLACE)
        sql_put(sql, " AND version = ?", SQL_ID(old->version));
    int rc = task_new_check_packet(db, &st, t, err);
    if (rc == 0)
        rc = db_statement_exec(db, &st, &rows, err);
    return rc < 0 ? rc : rows > 0;
}

/* 1: marked, 0: it does not run any more. The version stays: the dqd that runs it checks it. */
static int mark_row(struct db *db, const struct task_new *t, uint64_t id,
                    enum key_conflict on_conflict, struct err *err)
{
    LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;
    struct buf *sql = &st.sql;
    uint64_t rows = 0;

    int rc = poller_store_check_knows(db, POLLER_KNOWS_AGAIN, err);
    if (rc < 0)
        return err_prefix(err, "tag %s, key %s: task %" PRIu64 " is running", t->tag, t->key, id);
    buf_str(sql, "UPDATE dq_task SET again_time = ");
    put_time(sql, t, on_conflict, "again_time");
    buf_str(sql, ", again_body = ");
    db_statement_put(&st, t->body ? t->body : "", t->body_size);
    buf_str(sql, ", expires_time = ");
    task_new_put_expires(sql, t, "again_time");
    if (t->max_attempts)
        sql_put(sql, ", max_attempts = ?", SQL_INT(t->max_attempts));
    if (t->level)
        sql_put(sql, ", priority = ?", SQL_LEVEL(t->level));
    sql_put(sql, " WHERE ? AND id = ?", SQL_FROM(TASK_AGAIN), SQL_ID(id));
    rc = task_new_check_packet(db, &st, t, err);
    if (rc == 0)
        rc = db_statement_exec(db, &st, &rows, err);
    return rc < 0 ? rc : rows > 0;
}

/* What is to be done to the task that has the key; alone: with the record of the act. What it reads
 * of it comes before the commit: a failure changes nothing. */
static int change_live(struct db *db, const struct task_new *t, const struct live *old,
                       enum key_conflict on_conflict, bool alone, struct task_added *ret,
                       struct err *err)
{
    const bool record = alone && t->act, pending = old->status == TASK_PENDING;
    int rc = record ? db_begin(db, err) : 0;
    bool changed = rc == 0 && (rc = pending ? replace_row(db, t, &old->ref, on_conflict, err)
                                            : mark_row(db, t, old->ref.id, on_conflict, err)) == 1;

    if (changed)
        rc = MIN(read_added(db, old->ref.id, ret, err), 0);
    if (record) {
        struct event_act act = *t->act;
        act.task_id = old->ref.id;
        if (changed && rc == 0)
            rc = event_store_add(db, &act, NULL, 1, err);
        rc = db_end(db, rc, err);
    }
    if (rc < 0 || !changed)
        return rc;
    ret->replaced = pending;
    ret->again = !pending;
    return 1;
}

/* 1: added, 0: kept, replaced or added again. alone: in no transaction. Other sessions may add,
 * claim or finish a task with that key between our statements; after a few rounds it is an error.
 */
static int add_once(struct db *db, const struct task_new *t,
                    const unsigned char token[TASK_TOKEN_SIZE], enum key_conflict on_conflict,
                    bool alone, struct task_added *ret, struct err *err)
{
    struct live old = {{0, 0}, 0, 0};

    for (int tries = 0; tries < LIVE_TRIES; tries++) {
        int rc = insert_patiently(db, t, token, alone, ret, err);
        if (rc != ERR_DUPLICATE)
            return rc;
        rc = find_live(db, t, &old, err);
        if (rc == ERR_DENIED)
            return err_prefix(
                err,
                "tag %s, key %s: a live task has that key; this account may not read which one",
                t->tag, t->key);
        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        *ret = (struct task_added){.id = old.ref.id,
                                   .expected_at = old.expected_at,
                                   .now_at = TASK_TIME_NONE,
                                   .status = old.status};
        if (on_conflict == KEY_KEEP)
            return 0;
        if (on_conflict == KEY_ERROR || (on_conflict == KEY_REPLACE && old.status != TASK_PENDING))
            return err_set(err, ERR_DUPLICATE,
                           "tag %s, key %s: task %" PRIu64 " has that key and is %s%s", t->tag,
                           t->key, old.ref.id, task_status_name(old.status),
                           on_conflict == KEY_REPLACE ? "; see --key-conflict again" : "");
        rc = change_live(db, t, &old, on_conflict, alone, ret, err);
        if (rc != 0)
            return MIN(rc, 0);
    }
    return err_set(err, ERR_TRANSIENT,
                   "tag %s, key %s: other sessions keep changing the task with that key: try again",
                   t->tag, t->key);
}

/* 1 if a row with the token was stored, 0 if not. */
static int find_added(struct db *db, const struct add_token *token, struct task_added *ret,
                      struct err *err)
{
    struct err why = {0};

    int rc = add_token_find(db, token, COLUMNS_SELECT(ADDED_COLUMNS), ADDED_COUNT, take_added, ret,
                            &why);
    if (rc < 0)
        return err_set(
            err, ERR_LOST,
            "the connection broke while storing; it is not known whether that was stored, because dq could not find out: %s",
            why.text);
    return rc;
}

/* A replacement carries no token, nor does what is added again: that is done once more. */
static int give_up(enum key_conflict on_conflict, struct err *err)
{
    if (on_conflict >= KEY_REPLACE)
        return err_set(
            err, ERR_LOST,
            "the connection broke at every try; it is not known whether a task was replaced");
    return err_set(err, ERR_UNAVAILABLE, "the connection broke at every try; nothing was stored");
}

/* An account that may only insert cannot know which dqds live. */
static int check_level(struct db *db, const struct task_new *t, size_t n, struct err *err)
{
    int rc = task_new_columns(t, n) & TASK_NEW_LEVEL
                 ? poller_store_check_knows(db, POLLER_KNOWS_PRIORITY, err)
                 : 0;

    return rc == ERR_DENIED ? 0 : rc;
}

static int add_tried(struct db *db, const struct task_new *t, enum key_conflict on_conflict,
                     struct task_added *ret, struct err *err)
{
    struct add_token token;
    struct task_added added = {0};

    add_token_init(db, &token);
    for (int tries = 0; tries < ADD_TRIES; tries++) {
        int rc = begin_try(db, &token, err);
        if (rc == 0)
            rc = check_level(db, t, 1, err);
        if (rc == 0)
            rc = add_once(db, t, token.bytes, on_conflict, true, &added, err);
        bool lost = rc == ERR_LOST;
        if (lost)
            rc = find_added(db, &token, &added, err);
        if (rc < 0)
            return rc;
        if (rc > 0 || !lost) {
            *ret = added;
            return rc;
        }
    }
    return give_up(on_conflict, err);
}

/* ERR_UNAVAILABLE: nothing was stored. */
int task_add(struct db *db, const struct task_new *t, enum key_conflict on_conflict,
             struct task_added *ret, struct err *err)
{
    int rc;

    do
        rc = add_tried(db, t, on_conflict, ret, err);
    while (rc == ERR_UNAVAILABLE && db_connect_again(db, rc, err));
    return rc;
}

/* Adds row by row after a statement for all of them was refused, to find the row at fault; or
 * replaces one, or adds it again, and appends it to *replaced. */
static int blame(struct db *db, const struct task_new *t, size_t n,
                 const unsigned char token[TASK_TOKEN_SIZE], enum key_conflict on_conflict,
                 struct claim_ref **replaced, size_t *ret_kept, size_t *ret_bad, struct err *err)
{
    struct task_added added;

    for (size_t i = 0; i < n; i++) {
        int rc = add_once(db, &t[i], token, on_conflict, false, &added, err);
        if (rc < 0) {
            *ret_bad = i;
            return rc;
        }
        *ret_kept += rc == 0 && on_conflict == KEY_KEEP;
        if (rc == 0 && (added.replaced || added.again) && replaced && *replaced)
            *(*replaced)++ = (struct claim_ref){.id = added.id};
    }
    return 0;
}

/* Adds the first rows of t[0..n-1] in one statement; *ret_rows is their number. */
static int insert_some(struct db *db, const struct task_new *t, size_t n,
                       const unsigned char token[TASK_TOKEN_SIZE], enum key_conflict on_conflict,
                       size_t most, size_t *ret_rows, size_t *ret_kept, size_t *ret_bad,
                       struct err *err)
{
    LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;
    size_t try = MIN(n, STATEMENT_ROWS);
    unsigned has = task_new_columns(t, try);

    task_new_put_insert(&st.sql, has);
    size_t rows = task_new_put_many(&st, t, try, has, token, most);
    /* The server does not report Duplicates for a single row, and without a key there are none; so
     * the statement does not need the UPDATE privilege. */
    bool counted = on_conflict == KEY_KEEP && rows > 1 && has & TASK_NEW_KEY;
    if (counted)
        buf_str(&st.sql, TASK_NEW_KEEP);
    *ret_bad = 0;
    *ret_rows = rows;
    int rc = task_new_check_packet(db, &st, t, err);
    if (rc < 0)
        return rc;
    rc = of_key(db_statement_exec(db, &st, NULL, err), err);
    if (rc == 0 && counted)
        *ret_kept += db_duplicates(db);
    if (rc == ERR_DUPLICATE && on_conflict == KEY_KEEP) {
        *ret_kept += 1;
        rc = 0;
    } else if (rows > 1 && (rc == ERR_DUPLICATE || rc == ERR_DATA)) {
        rc = blame(db, t, rows, token, on_conflict, NULL, ret_kept, ret_bad, err);
    } else if (rc == ERR_DUPLICATE) {
        err_set(err, rc, "tag %s, key %s: a live task has that key", t->tag, t->key);
    }
    return rc;
}

static int add_all(struct db *db, const struct task_new *t, size_t n,
                   const unsigned char token[TASK_TOKEN_SIZE], enum key_conflict on_conflict,
                   bool singly, size_t *ret_kept, size_t *ret_bad, struct err *err)
{
    size_t at = 0, rows = 0, bad = 0, most = 0;
    struct claim_ref *replaced = singly ? mem_zero(n, sizeof *replaced) : NULL, *end = replaced;

    *ret_kept = 0;
    *ret_bad = SIZE_MAX;
    int rc = db_max_packet(db, &most, err);
    if (rc == 0)
        rc = db_begin(db, err);
    if (rc < 0)
        goto out;
    most = MIN(most, SQL_STATEMENT_BYTES) - sizeof TASK_NEW_KEEP;
    for (; rc == 0 && at < n; at += rows) {
        rows = 1;
        rc = singly ? blame(db, &t[at], rows, token, on_conflict, &end, ret_kept, &bad, err)
                    : insert_some(db, &t[at], n - at, token, on_conflict, most, &rows, ret_kept,
                                  &bad, err);
        if (rc == ERR_DUPLICATE || rc == ERR_DATA || (rc == ERR_LOCKED && singly))
            *ret_bad = at + bad;
    }
    if (rc == 0 && end > replaced)
        rc = event_store_add(db, t->act, replaced, (uint64_t)(end - replaced), err);
    rc = db_end(db, rc, err);
out:
    free(replaced);
    return rc;
}

static int add_many_tried(struct db *db, const struct task_new *t, size_t n,
                          enum key_conflict on_conflict, bool singly, size_t *ret_kept,
                          size_t *ret_bad, struct err *err)
{
    struct add_token token;
    struct task_added any;

    *ret_kept = 0;
    *ret_bad = SIZE_MAX;
    add_token_init(db, &token);
    for (int tries = 0; tries < ADD_TRIES; tries++) {
        int rc = begin_try(db, &token, err);
        if (rc == 0)
            rc = check_level(db, t, n, err);
        if (rc == 0)
            rc = add_all(db, t, n, token.bytes, on_conflict, singly, ret_kept, ret_bad, err);
        if (rc != ERR_LOST)
            return rc;
        rc = find_added(db, &token, &any, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    return give_up(on_conflict, err);
}

int task_add_many(struct db *db, const struct task_new *t, size_t n, enum key_conflict on_conflict,
                  size_t *ret_kept, size_t *ret_bad, struct err *err)
{
    bool singly = on_conflict >= KEY_REPLACE, again;
    int rc;

    do {
        rc = add_many_tried(db, t, n, on_conflict, singly, ret_kept, ret_bad, err);
        again = rc == ERR_UNAVAILABLE && db_connect_again(db, rc, err);
        if (rc == ERR_LOCKED && !singly) { /* which one is it? */
            singly = true;
            again = db_session_wait_not(db, err) == 0;
        }
    } while (again);
    if (singly && on_conflict < KEY_REPLACE)
        db_session_wait(db);
    return rc;
}
