/*
 * lease_store.c - renewing leases, and taking back tasks whose lease has ended.
 *
 * Invariant: a row is ours only while it is running, at our version, with our token. A task whose
 * lease has ended is taken back by (id, version), with its row locked. A row that cannot be changed
 * does not keep others from it (rows.h).
 */
#include "store/work/lease_store.h"
#include "store/db/columns.h"
#include "store/fleet/attempt_store.h"
#include "store/fleet/output_store.h"
#include "store/row/sql.h"
#include "store/row/task_read.h"
#include "store/work/follow_up.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

/* Limits the rows that stay locked for the others if this host disappears within the transaction.
 */
#define TAKE_BACK_STEP 100

/* With a placeholder of printf. */
/* clang-format off */
#define CHECK_COLUMNS(X)          \
    X(CHECK_ID, "id")             \
    X(CHECK_VERSION, "version")   \
    X(CHECK_FOLLOWED, "%s")       \
    X(CHECK_AGAIN, "again_time IS NOT NULL")
/* clang-format on */
enum { CHECK_COLUMNS(COLUMNS_NAME) CHECK_COUNT };

/* A reference, and its place in the caller's arrays. */
struct check_ref {
    struct claim_ref ref;
    size_t at;
};

struct checking {
    struct check_ref sorted[ROWS_STEP];
    size_t count;
    bool *lost, *followed, *again;
};

static int compare_checks(const void *a, const void *b)
{
    return claim_ref_compare(&((const struct check_ref *)a)->ref,
                             &((const struct check_ref *)b)->ref);
}

static void take_check(const struct db_rows *r, void *arg)
{
    const struct checking *x = arg;
    const struct check_ref key = {{db_u64(r, CHECK_ID), db_u64(r, CHECK_VERSION)}, 0};
    const struct check_ref *found = bsearch(&key, x->sorted, x->count, sizeof key, compare_checks);

    if (!found)
        return;
    x->lost[found->at] = false;
    if (x->again)
        x->again[found->at] = db_u64(r, CHECK_AGAIN) == 1;
    if (x->followed)
        x->followed[found->at] = db_u64(r, CHECK_FOLLOWED) == 1;
}

/* followed NULL: not asked for, and dq_output is not read. */
static int check_step(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                      size_t n, bool *lost, bool *followed, bool *again, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct checking x = {.count = n, .lost = lost, .followed = followed, .again = again};

    for (size_t i = 0; i < n; i++) {
        x.sorted[i] = (struct check_ref){refs[i], i};
        lost[i] = true;
        if (followed)
            followed[i] = false;
    }
    qsort(x.sorted, n, sizeof *x.sorted, compare_checks);
    buf_str(&sql, "SELECT ");
    buf_printf(&sql, COLUMNS_SELECT(CHECK_COLUMNS), followed ? OUTPUT_STORE_FOLLOWED : "0");
    sql_put(&sql, " FROM dq_task FORCE INDEX (PRIMARY)? WHERE " CLAIM_REF_OURS,
            SQL_PART(followed ? OUTPUT_STORE_JOIN : NULL), CLAIM_REF_OF(owner, refs, n));
    return db_all(db, &sql, CHECK_COUNT, take_check, &x, err);
}

int lease_store_check(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                      size_t count, bool *lost, bool *followed, bool *again, struct err *err)
{
    int rc = 0;

    for (size_t from = 0, n; rc == 0 && from < count; from += n) {
        n = MIN(count - from, ROWS_STEP);
        rc = check_step(db, owner, refs + from, n, lost + from, followed ? followed + from : NULL,
                        again ? again + from : NULL, err);
    }
    return rc;
}

struct renewal {
    struct db *db;
    const struct claim_owner *owner;
    int64_t lease_ms;
    uint64_t rows; /* renewed */
};

static int renew_rows(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
                      struct err *err)
{
    struct renewal *w = arg;
    uint64_t rows = 0;
    int rc =
        sql_exec(w->db, &rows, err,
                 "UPDATE dq_task FORCE INDEX (PRIMARY) SET lease_until = ? WHERE " CLAIM_REF_OURS,
                 SQL_FROM_NOW(w->lease_ms), CLAIM_REF_OF(w->owner, refs, n));

    (void)at;
    w->rows += rows;
    return rc;
}

int lease_store_renew(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                      size_t count, int64_t lease_ms, bool careful, bool *lost,
                      struct rows_faults *faults, struct err *err)
{
    int rc = 0;

    for (size_t from = 0, n; rc == 0 && from < count; from += n) {
        struct renewal w = {db, owner, lease_ms, 0};
        n = MIN(count - from, ROWS_STEP);
        rc = rows_run(db, &(struct rows_work){refs + from, n, &w, renew_rows, NULL, 0, NULL},
                      careful, faults, err);
        if (rc == 0 && w.rows < n)
            rc = check_step(db, owner, refs + from, n, lost + from, NULL, NULL, err);
        for (size_t i = from; rc == 0 && w.rows == n && i < from + n; i++)
            lost[i] = false;
    }
    return rc;
}

/* Few: an idle dqd asks for them every two seconds. */
#define ENDED_COLUMNS                                                                              \
    (TASK_READ_BIT(TASK_READ_ID) | TASK_READ_BIT(TASK_READ_TAG) |                                  \
     TASK_READ_BIT(TASK_READ_VERSION) | TASK_READ_BIT(TASK_READ_ATTEMPT) |                         \
     TASK_READ_BIT(TASK_READ_MAX_ATTEMPTS) | TASK_READ_BIT(TASK_READ_HOST) |                       \
     TASK_READ_BIT(TASK_READ_PID) | TASK_READ_BIT(TASK_READ_LEASE_UNTIL) |                         \
     TASK_READ_BIT(TASK_READ_AGAIN) | TASK_READ_BIT(TASK_READ_BODY_SIZE))

static void add_task(const struct db_rows *r, void *arg)
{
    task_read(r, ENDED_COLUMNS, task_array_add(arg));
}

int lease_store_expired(struct db *db, const char *after_tag, const uint64_t *but, size_t but_count,
                        int64_t longest_lease_ms, bool skip_locked, size_t limit,
                        struct task_array *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    skip_locked = skip_locked && db_skips_locked(db);
    buf_str(&sql, skip_locked ? rows_before_skip(db) : "");
    buf_str(&sql, "SELECT ");
    unsigned count = task_read_put_columns(&sql, "t.", ENDED_COLUMNS);
    sql_put(&sql,
            " FROM dq_task t FORCE INDEX (due) WHERE t.status = ? AND (" SQL_LEASE_ENDED
            " OR " SQL_LEASE_AHEAD("?") ")",
            SQL_INT(TASK_RUNNING), SQL_INT(longest_lease_ms));
    if (after_tag)
        sql_put(&sql, " AND t.tag > ?", SQL_TAG(after_tag));
    if (but_count)
        sql_put(&sql, " AND NOT t.id IN ?", SQL_IDS(but, but_count));
    sql_put(&sql, " ORDER BY t.tag, " SQL_DUE_ORDER("t.", "") " LIMIT ??", SQL_ID(limit),
            SQL_PART(skip_locked ? " FOR UPDATE SKIP LOCKED" : NULL));
    return db_all(db, &sql, count, add_task, ret, err);
}

/* ---- taking back */

#define LEASE_ENDED                                                                                \
    "the lease ended: its owner stopped renewing it (it crashed, froze or lost the database)"

/* claim_token is cleared, so that the former owner does not mistake this for a result of its own.
 */
static int take_event(struct db *db, enum task_event event, const struct claim_ref *refs, size_t n,
                      bool again, uint64_t *ret_rows, struct err *err)
{
    return sql_exec(
        db, ret_rows, err,
        "UPDATE dq_task FORCE INDEX (PRIMARY) SET ??, claim_token = NULL, error_stack = '" LEASE_ENDED
        "' WHERE ? AND " SQL_LEASE_ENDED " AND ??",
        SQL_END_OF_RUN(event, again, NULL), SQL_AGAIN_TAKEN(again), SQL_FROM(event),
        CLAIM_REF_THESE(refs, n), SQL_AGAIN(again));
}

/* Stores in taken[] those of refs that were taken back. They are locked first, so that exactly
 * these rows are recorded and changed. */
static int take_back_rows(struct db *db, enum task_event event, const struct claim_ref *refs,
                          const struct follow_up *wanted, size_t n, bool drop_stale,
                          struct claim_ref *taken, size_t *ret_taken, struct err *err)
{
    size_t count = 0;
    uint64_t rows = 0;

    int rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    rc = claim_ref_find(db, taken, n, &count, err, "? AND " SQL_LEASE_ENDED " AND ? FOR UPDATE",
                        SQL_FROM(event), CLAIM_REF_THESE(refs, n));
    if (rc == 0 && count && drop_stale)
        rc = attempt_store_drop_stale(db, taken, count, err);
    if (rc == 0 && count)
        rc = attempt_store_add_running(db, taken, count, OUTCOME_LEASE_EXPIRED, err);
    if (rc == 0 && count)
        rc = take_event(db, event, taken, count, false, &rows, err);
    if (rc == 0 && rows < count)
        rc = take_event(db, event, taken, count, true, &rows, err);
    if (rc == 0)
        rc = MIN(follow_up_add(db, wanted, n, taken, count, err), 0);
    rc = db_end(db, rc, err);
    if (rc == 0)
        *ret_taken = count;
    return rc;
}

/* The owner may have renewed it since, or a dqd with a longer lease has begun: a lease that is not
 * ahead is left alone. */
static int cut_rows(struct db *db, const struct claim_ref *refs, size_t n, struct err *err)
{
    return sql_exec(
        db, NULL, err,
        "UPDATE dq_task FORCE INDEX (PRIMARY) SET lease_until = UTC_TIMESTAMP(3) + INTERVAL GREATEST(" SQL_LONGEST_LEASE
        ", " SQL_ENDED_LEASE
        ") * 1000 MICROSECOND WHERE ? AND " SQL_LEASE_AHEAD(SQL_LONGEST_LEASE) " AND ?",
        SQL_FROM(TASK_TAKE_BACK), CLAIM_REF_THESE(refs, n));
}

struct taking {
    struct db *db;
    enum lease_end end;
    const size_t *index; /* of each of the rows, in the caller's array */
    const char *const *on_failed;
    bool *taken;
};

static int take_rows(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
                     struct err *err)
{
    struct taking *w = arg;
    struct claim_ref taken[TAKE_BACK_STEP];
    struct follow_up wanted[TAKE_BACK_STEP];
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        wanted[i] =
            (struct follow_up){refs[i].id, w->on_failed ? w->on_failed[w->index[at[i]]] : NULL};
    if (w->end == LEASE_CUT)
        return cut_rows(w->db, refs, n, err);
    enum task_event event = w->end == LEASE_GIVE_UP ? TASK_GIVE_UP : TASK_TAKE_BACK;
    int rc = take_back_rows(w->db, event, refs, wanted, n, false, taken, &count, err);
    if (rc == ERR_DUPLICATE)
        rc = take_back_rows(w->db, event, refs, wanted, n, true, taken, &count, err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; rc == 0 && k < count; k++)
            if (taken[k].id == refs[i].id)
                w->taken[w->index[at[i]]] = true;
    return rc;
}

int lease_store_take_back(struct db *db, const struct task_array *expired,
                          const enum lease_end *ends, const char *const *on_failed, bool careful,
                          bool *taken, struct rows_faults *faults, struct err *err)
{
    struct claim_ref refs[TAKE_BACK_STEP];
    size_t index[TAKE_BACK_STEP];
    int rc = 0;

    for (size_t i = 0; i < expired->count; i++)
        taken[i] = false;
    for (enum lease_end end = LEASE_TAKE_BACK; end <= LEASE_CUT; end++) {
        struct taking w = {db, end, index, on_failed, taken};
        for (size_t i = 0, n = 0; rc == 0 && i < expired->count; i++) {
            size_t before = faults ? faults->count : 0;
            if (ends[i] == end) {
                refs[n] = (struct claim_ref){expired->items[i].id, expired->items[i].version};
                index[n++] = i;
            }
            if (n < TAKE_BACK_STEP && i + 1 < expired->count)
                continue;
            rc = rows_run(db, &(struct rows_work){refs, n, &w, take_rows, NULL, 0, NULL}, careful,
                          faults, err);
            for (size_t k = before; faults && k < faults->count; k++)
                faults->items[k].at = index[faults->items[k].at];
            n = 0;
        }
    }
    return rc;
}
