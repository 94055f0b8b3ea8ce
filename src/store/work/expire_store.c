/*
 * expire_store.c - see expire_store.h. Invariant: a task is cancelled only while it is pending, at
 * the version at which it was seen to have expired. A claim changes the version, so no task is both
 * started and cancelled.
 */
#include "store/work/expire_store.h"
#include "store/db/columns.h"
#include "store/row/claim_ref.h"
#include "store/row/sql.h"
#include "store/work/follow_up.h"

#include <inttypes.h>
#include <sys/param.h>

#define SEEN_COLUMNS(X) CLAIM_REF_COLUMNS(X) X(SEEN_DUE, "expected_time") X(SEEN_SIZE, "body_size")
enum { SEEN_COLUMNS(COLUMNS_NAME) SEEN_EXPIRED, SEEN_COUNT };

struct expiring {
    struct db *db;
    const struct claim_ask *ask;
    struct claim_expired all;
    size_t met; /* of these: by the claim */
    size_t seen;
    bool more; /* the bodies of those behind are for the next statement */
    struct peek_floor last;
    uint64_t cancelled;
};

static void see(const struct db_rows *r, void *arg)
{
    struct expiring *x = arg;
    const struct claim_ref ref = {db_u64(r, CLAIM_REF_ID), db_u64(r, CLAIM_REF_VERSION)};
    size_t size = db_is_null(r, SEEN_SIZE) ? SIZE_MAX : db_u64(r, SEEN_SIZE), i = 0;

    while (i < x->met && x->all.refs[i].id != ref.id)
        i++;
    if (!x->more && i == x->met && db_u64(r, SEEN_EXPIRED) == 1)
        x->more = !claim_find_expire(&x->all, x->ask, &ref, size);
    if (x->more)
        return;
    x->seen++;
    x->last = (struct peek_floor){MAX(sql_due(r, SEEN_DUE), 1), ref.id};
}

static int find_expired(struct expiring *x, enum task_level level, size_t rows,
                        const struct peek_floor *floor, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    sql_put(&sql,
            "SELECT ?, ? <= UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND"
            " FROM dq_task c FORCE INDEX (due) WHERE status = ? AND tag = ?"
            " AND expected_time <= UTC_TIMESTAMP(3)",
            SQL_PART(COLUMNS_SELECT(SEEN_COLUMNS)), SQL_EXPIRES("", x->ask->expires_ms),
            SQL_INT(x->ask->expired_ms * 1000), SQL_INT(sql_pending(level)), SQL_TAG(x->ask->tag));
    peek_store_put_floor(&sql, floor);
    if (x->ask->aside_count)
        sql_put(&sql, " AND NOT id IN ?", SQL_IDS(x->ask->aside, x->ask->aside_count));
    sql_put(&sql, " ORDER BY " SQL_DUE_ORDER("", "") " LIMIT ?", SQL_ID(rows));
    return db_all(x->db, &sql, SEEN_COUNT, see, x, err);
}

/* All that expiry does to tasks. Assignments are made from left to right. */
static int cancel_rows(struct expiring *x, const struct claim_ref *refs, size_t n,
                       uint64_t *ret_rows, struct err *err)
{
    return sql_exec(x->db, ret_rows, err,
                    "UPDATE dq_task FORCE INDEX (PRIMARY) SET expires_time = ?, error_stack ="
                    " CONCAT('" TASK_EXPIRED " due ', REPLACE(expected_time, ' ', 'T'),"
                    " 'Z, not started by ', REPLACE(expires_time, ' ', 'T'), 'Z'), ?"
                    " WHERE ? AND ?",
                    SQL_EXPIRES("", x->ask->expires_ms), SQL_TRANSITION(TASK_EXPIRE),
                    SQL_FROM(TASK_EXPIRE), CLAIM_REF_THESE(refs, n));
}

/* A task is added for exactly those that are cancelled here. */
static int cancel_and_follow(struct expiring *x, const struct claim_ref *refs, size_t n,
                             uint64_t *ret_rows, struct err *err)
{
    struct claim_ref locked[ROWS_STEP];
    struct follow_up wanted[ROWS_STEP];
    size_t count = 0;
    int rc = db_begin(x->db, err);

    if (rc < 0)
        return rc;
    rc = claim_ref_find(x->db, locked, n, &count, err, "? AND ? FOR UPDATE", SQL_FROM(TASK_EXPIRE),
                        CLAIM_REF_THESE(refs, n));
    if (rc == 0 && count)
        rc = cancel_rows(x, locked, count, ret_rows, err);
    for (size_t i = 0; i < count; i++)
        wanted[i] = (struct follow_up){locked[i].id, x->ask->on_failed};
    if (rc == 0)
        rc = MIN(follow_up_add(x->db, wanted, count, locked, count, err), 0);
    return db_end(x->db, rc, err);
}

static int expire_rows(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
                       struct err *err)
{
    struct expiring *x = arg;
    uint64_t rows = 0;
    int rc = (x->ask->on_failed ? cancel_and_follow : cancel_rows)(x, refs, n, &rows, err);

    (void)at;
    x->cancelled += rc < 0 ? 0 : rows;
    return rc;
}

int expire_store_cancel(struct db *db, const struct claim_ask *ask, enum task_level level,
                        size_t rows, struct peek_floor *floor, uint64_t *ret_count,
                        struct rows_faults *faults, struct err *err)
{
    struct expiring x = {.db = db, .ask = ask};

    if (ask->expired)
        x.all = *ask->expired;
    x.met = x.all.count;
    rows = MIN(rows, ROWS_STEP);
    int rc = find_expired(&x, level, rows, floor, err);
    if (rc == 0)
        rc = rows_run(db,
                      &(struct rows_work){x.all.refs, x.all.count, &x, expire_rows, NULL, 0, NULL},
                      false, faults, err);
    if (rc < 0)
        return rc;
    *floor = x.seen < rows && !x.more ? (struct peek_floor){0} : x.last;
    *ret_count = x.cancelled;
    return 0;
}
