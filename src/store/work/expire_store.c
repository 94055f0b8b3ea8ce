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

static int see(const struct db_rows *r, void *arg, struct err *err)
{
    struct expiring *x = arg;
    const struct claim_ref ref = {db_u64(r, CLAIM_REF_ID), db_u64(r, CLAIM_REF_VERSION)};
    size_t size = db_is_null(r, SEEN_SIZE) ? SIZE_MAX : db_u64(r, SEEN_SIZE), i = 0;

    (void)err;
    while (i < x->met && x->all.refs[i].id != ref.id)
        i++;
    if (i == x->met && db_u64(r, SEEN_EXPIRED) == 1) {
        x->more = !claim_find_expire(&x->all, x->ask, &ref, size);
        if (x->more)
            return 1;
    }
    x->seen++;
    x->last = (struct peek_floor){MAX(sql_due(r, SEEN_DUE), 1), ref.id};
    return 0;
}

static int find_expired(struct expiring *x, enum task_level level, size_t rows,
                        const struct peek_floor *floor, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s, ", COLUMNS_SELECT(SEEN_COLUMNS));
    sql_put_expires(&sql, "", x->ask->expires_ms);
    buf_printf(&sql,
               " <= UTC_TIMESTAMP(3) - INTERVAL %" PRId64 " MICROSECOND"
               " FROM dq_task c FORCE INDEX (due) WHERE status = %u AND tag = ",
               x->ask->expired_ms * 1000, sql_pending(level));
    sql_put_tag(&sql, x->ask->tag);
    buf_str(&sql, " AND expected_time <= UTC_TIMESTAMP(3)");
    peek_store_put_floor(&sql, floor);
    if (x->ask->aside_count) {
        buf_str(&sql, " AND NOT ");
        sql_put_ids(&sql, "id", x->ask->aside, x->ask->aside_count);
    }
    buf_printf(&sql, " ORDER BY " SQL_DUE_ORDER("", "") " LIMIT %zu", rows);
    return db_each(x->db, &sql, SEEN_COUNT, see, x, err);
}

static uint64_t expiring_id(const void *arg, size_t i)
{
    return ((const struct expiring *)arg)->all.refs[i].id;
}

/* All that expiry does to tasks. Assignments are made from left to right. */
static int expire_rows(void *arg, const size_t *at, size_t n, struct err *err)
{
    struct expiring *x = arg;
    struct claim_ref refs[ROWS_STEP];
    struct follow_up wanted[ROWS_STEP];
    BUF_LOCAL struct buf sql = BUF_INIT;
    uint64_t rows = 0;
    const bool follow = x->ask->on_failed;
    int rc = follow ? db_begin(x->db, err) : 0;

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        refs[i] = x->all.refs[at[i]];
    if (follow) /* a task is added for exactly those that are cancelled here */
        rc = claim_ref_lock(x->db, TASK_EXPIRE, "", refs, n, refs, &n, err);
    if (rc < 0 || !n)
        return follow ? db_end(x->db, rc, err) : rc;
    buf_str(&sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET expires_time = ");
    sql_put_expires(&sql, "", x->ask->expires_ms);
    buf_str(&sql,
            ", error_stack = CONCAT('" TASK_EXPIRED " due ', REPLACE(expected_time, ' ', 'T'),"
            " 'Z, not started by ', REPLACE(expires_time, ' ', 'T'), 'Z'), ");
    sql_put_transition(&sql, TASK_EXPIRE, NULL);
    buf_str(&sql, " WHERE ");
    sql_put_from(&sql, TASK_EXPIRE);
    buf_str(&sql, " AND ");
    claim_ref_put(&sql, refs, n);
    rc = db_exec(x->db, &sql, &rows, err);
    for (size_t i = 0; i < n; i++)
        wanted[i] = (struct follow_up){refs[i].id, x->ask->on_failed};
    if (rc == 0 && follow)
        rc = MIN(follow_up_add(x->db, wanted, n, refs, n, err), 0);
    if (follow)
        rc = db_end(x->db, rc, err);
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
    if (rc == 0 && x.all.count)
        rc = rows_run(db, &(struct rows_work){x.all.count, &x, expiring_id, expire_rows, NULL},
                      false, faults, err);
    if (rc < 0)
        return rc;
    *floor = x.seen < rows && !x.more ? (struct peek_floor){0} : x.last;
    *ret_count = x.cancelled;
    return 0;
}
