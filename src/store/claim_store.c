/*
 * claim_store.c - claiming due tasks.
 *
 * Invariant: a task counts as won only if the server has reported that our UPDATE matched its row
 * at the version that we read. Candidates are read without locks through the index `due`; rows are
 * changed only through the primary key, in the order of ids, so that claiming, settling and taking
 * back do not deadlock.
 */
#include "store/claim_store.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/columns.h"
#include "store/db_latest.h"
#include "store/db_put.h"
#include "store/sql.h"
#include "store/task_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_BODY 16384 /* loaded by the claim */
#define SMALL_BODY_TEXT "16384"

#define CLAIM_COLUMNS                                                                              \
    (TASK_READ_BIT(TASK_READ_ID) | TASK_READ_BIT(TASK_READ_VERSION) |                              \
     TASK_READ_BIT(TASK_READ_TAG) | TASK_READ_BIT(TASK_READ_KEY) |                                 \
     TASK_READ_BIT(TASK_READ_BODY_SIZE) | TASK_READ_BIT(TASK_READ_ATTEMPT) |                       \
     TASK_READ_BIT(TASK_READ_MAX_ATTEMPTS) | TASK_READ_BIT(TASK_READ_DELAY) |                      \
     TASK_READ_BIT(TASK_READ_EXPECTED) | TASK_READ_BIT(TASK_READ_CREATE))
/* after the others */
#define SMALL_BODY_COLUMN                                                                          \
    ", IF(LENGTH(b.message_body) <= " SMALL_BODY_TEXT ", b.message_body, NULL)"
/* A small body is read by a join with the same row, which is skipped for a long one or one of
 * unknown size: NULL as a key reads nothing. body_size may be wrong: a body that is longer after
 * all is not loaded. */
#define SMALL_BODY_JOIN " LEFT JOIN dq_task b ON b.id = IF(c.body_size <= %d, c.id, NULL)"
#define NO_BODY (-1) /* instead of SMALL_BODY: no row is read again */
/* No real row comes near these limits; beyond them, the columns would soon overflow. */
#define VERSION_MOST (UINT64_MAX - 1000000)
#define ATTEMPT_MOST (UINT32_MAX - 1000000)

/* The columns of read_claimed: a task, its body, and when it was moved (if it is pending). If the
 * statement also finds out when the next task is due, it returns one more row, and more columns,
 * which are NULL in the other rows, as all others are in this one. */
/* clang-format off */
#define NOW_COLUMNS(X)   \
    SQL_NOW(X, NEXT_NOW) \
    X(NEXT_SPENT, "TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))")
/* clang-format on */
enum {
    BODY_COLUMN = __builtin_popcount(CLAIM_COLUMNS),
    MOVED_COLUMN,
    NEXT_AT,
    NOW_COLUMNS(COLUMNS_NAME) COLUMN_COUNT
};
#define NO_NEXT_COLUMNS ", NULL, NULL, NULL, NULL"

/* Appends the SELECT of what read_claimed reads, for tasks in a state. Ends with "AND ". */
static void put_select(struct buf *sql, bool with_bodies, bool next, enum task_status status)
{
    buf_str(sql, "SELECT ");
    task_read_put_columns(sql, "c.", CLAIM_COLUMNS);
    buf_printf(sql,
               SMALL_BODY_COLUMN ", %s%s FROM dq_task c FORCE INDEX (due)" SMALL_BODY_JOIN
                                 " WHERE c.status = %d AND ",
               status == TASK_PENDING ? SQL_MOVED("c.") : "NULL", next ? NO_NEXT_COLUMNS : "",
               with_bodies ? SMALL_BODY : NO_BODY, (int)status);
}

/* next NULL: the statement does not return the row about the next task. */
struct claimed {
    struct task_array *to;
    bool with_bodies;
    struct claim_seen *next;
};

static int read_claimed(const struct db_rows *r, void *arg, struct err *err)
{
    const struct claimed *x = arg;

    (void)err;
    if (x->next && !db_is_null(r, NEXT_NOW)) {
        x->next->next_known = true;
        x->next->next_at = db_time(r, NEXT_AT);
        x->next->now_us = sql_now_us(r, NEXT_NOW);
        x->next->late_us = x->next->now_us + db_i64(r, NEXT_SPENT, 0);
        return 0;
    }
    struct task *t = task_array_add(x->to);
    task_read(r, CLAIM_COLUMNS, t);
    t->update_at = db_time(r, MOVED_COLUMN);
    t->late_from_at = task_late_from(t);
    task_read_body(r, BODY_COLUMN, t);
    if (x->with_bodies && !t->body && t->body_size <= SMALL_BODY) {
        t->body_size = SIZE_MAX;
        x->to->lies = true;
    }
    return 0;
}

static int read_list(struct db *db, const struct buf *sql, const struct claimed *x, struct err *err)
{
    struct claimed arg = *x;

    return db_each(db, sql, x->next ? COLUMN_COUNT : MOVED_COLUMN + 1, read_claimed, &arg, err);
}

/* Appends the condition for tasks of a share that have been due for at least overdue_ms (is "<=";
 * negative: or will be due within that time), or have not (">"). False if the tag is paused. */
static void put_share(struct buf *sql, const struct claim_ask *ask, unsigned share, const char *is,
                      int64_t overdue_ms)
{
    buf_str(sql, "c.tag = ");
    db_put_text(sql, ask->tag);
    buf_printf(sql,
               " AND c.expected_time %s UTC_TIMESTAMP(3) - INTERVAL %" PRId64
               " MICROSECOND AND NOT EXISTS",
               is, overdue_ms * 1000);
    buf_str(sql, " (SELECT 1 FROM dq_tag g WHERE g.paused_until > UTC_TIMESTAMP(3) AND g.tag = ");
    db_put_text(sql, ask->tag);
    buf_chr(sql, ')');
    if (ask->shares > 1) {
        buf_str(sql, " AND ");
        sql_put_share(sql, "c.", ask->shares);
        buf_printf(sql, " = %u", share);
    }
}

/* Appends the SELECT of the row that has the time of the next task. It is the last row, so that it
 * also reads the clock when the statement is nearly done. (Reading one candidate more than wanted,
 * without a limit on the time, would find the next task too; but a claim that finds a single due
 * task would then fill up with rows that are not due.) */
static void put_next(struct buf *sql, const struct claim_ask *ask, unsigned share,
                     int64_t overdue_ms)
{
    buf_str(sql, ") UNION ALL SELECT ");
    for (int i = 0; i <= MOVED_COLUMN; i++)
        buf_str(sql, "NULL, ");
    buf_printf(sql,
               "(SELECT c.expected_time FROM dq_task c FORCE INDEX (due) WHERE c.status = %d AND ",
               TASK_PENDING);
    put_share(sql, ask, share, ">", overdue_ms);
    buf_printf(sql, " ORDER BY c.expected_time, c.id LIMIT 1), %s", COLUMNS_SELECT(NOW_COLUMNS));
}

/* Reads candidates: tasks of a share that have been due for at least overdue_ms (as put_share), the
 * earliest first or, with far_end, the latest. next NULL: does not find out when the next is due.
 */
static int find_candidates(struct db *db, const struct claim_ask *ask, unsigned share,
                           int64_t overdue_ms, bool far_end, size_t limit, struct task_array *ret,
                           struct claim_seen *next, struct err *err)
{
    struct buf sql = BUF_INIT;
    const char *order = far_end ? " DESC" : "";
    bool skip_locked = ask->skip_locked && db_skips_locked(db);

    buf_str(&sql, skip_locked ? rows_before_skip(db) : "");
    if (next)
        buf_str(&sql, "(");
    put_select(&sql, !ask->without_bodies, next, TASK_PENDING);
    put_share(&sql, ask, share, "<=", overdue_ms);
    if (share == ask->share)
        peek_store_put_floor(&sql, &ask->floor);
    if (ask->aside_count) {
        buf_str(&sql, " AND NOT ");
        sql_put_ids(&sql, "c.", ask->aside, ask->aside_count);
    }
    buf_printf(&sql, " ORDER BY c.expected_time%s, c.id%s LIMIT %zu%s", order, order, limit,
               skip_locked ? " FOR UPDATE SKIP LOCKED" : "");
    if (next)
        put_next(&sql, ask, share, overdue_ms);
    int rc = read_list(db, &sql, &(struct claimed){ret, !ask->without_bodies, next}, err);
    buf_done(&sql);
    return rc;
}

void claim_store_put_find(struct buf *sql, const char *tag, size_t limit)
{
    const struct claim_ask ask = {.tag = tag};

    put_select(sql, true, false, TASK_PENDING);
    put_share(sql, &ask, 0, "<=", 0);
    buf_printf(sql, " ORDER BY c.expected_time, c.id LIMIT %zu", limit);
}

/* Reads candidates of our own share: due, or due within early_ms. */
static int find_own(struct db *db, const struct claim_ask *ask, size_t limit,
                    struct task_array *found, struct claim_seen *saw, struct err *err)
{
    bool next = ask->next && !ask->skip_locked;

    if (!limit)
        return 0;
    saw->sent_us = when_steady_us();
    int rc = find_candidates(db, ask, ask->share, -ask->early_ms, false, limit, found,
                             next ? saw : NULL, err);
    saw->answered_us = when_steady_us();
    saw->next_known &= found->count < limit;
    return rc;
}

static int claim_rows(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      const struct claim_ref *refs, size_t n, uint64_t *ret_rows, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET ");
    sql_put_transition(&sql, "", TASK_CLAIM, NULL);
    buf_printf(&sql, ", max_attempts = COALESCE(max_attempts, %" PRIu32 "), claim_token = ",
               ask->max_attempts);
    sql_put_token(&sql, owner->token);
    buf_str(&sql, ", host = ");
    db_put_text(&sql, owner->host);
    buf_printf(&sql, ", pid = %" PRIu32 ", lease_until = ", owner->pid);
    sql_put_from_now(&sql, ask->lease_ms);
    buf_str(
        &sql,
        ", execution_time = GREATEST(UTC_TIMESTAMP(3), expected_time), exit_code = NULL, `signal` = NULL, error_stack = "
        "NULL, output = NULL WHERE ");
    sql_put_from(&sql, "", TASK_CLAIM);
    buf_str(&sql, " AND ");
    claim_ref_put(&sql, "", refs, n);
    int rc = db_exec(db, &sql, ret_rows, err);
    buf_done(&sql);
    return rc;
}

/* Some were claimed by others: reads which have our token. Stores them in `held`, at the version
 * after the claim. */
static int read_back(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                     size_t n, struct claim_ref *held, size_t *ret_held, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (size_t i = 0; i < n; i++)
        held[i] = (struct claim_ref){refs[i].id, refs[i].version + 1};
    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (PRIMARY) WHERE ",
               COLUMNS_SELECT(CLAIM_REF_COLUMNS));
    claim_ref_put_ours(&sql, owner, held, n);
    int rc = claim_ref_read(db, &sql, held, n, ret_held, err);
    buf_done(&sql);
    return rc;
}

static bool has_id(const struct claim_ref *refs, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (refs[i].id == id)
            return true;
    return false;
}

/* Moves the candidates that are ours (held NULL: all) to `won`; the caller frees the others. */
static void move_won(const struct claim_owner *owner, const struct claim_ask *ask,
                     struct task_array *found, const struct claim_ref *held, size_t held_count,
                     struct task_array *won)
{
    for (size_t i = 0; i < found->count; i++) {
        struct task *t = &found->items[i];
        if (held && !has_id(held, held_count, t->id))
            continue;
        t->status = TASK_RUNNING;
        t->version++;
        t->attempt++;
        if (!t->max_attempts)
            t->max_attempts = ask->max_attempts;
        memcpy(t->claim_token, owner->token, TASK_TOKEN_SIZE);
        t->claimed = true;
        *task_array_add(won) = *t;
        task_init(t);
    }
    won->lies |= found->lies;
}

/* Locks the tag's row of dq_tag (adds it if there is none) until the transaction ends, counts its
 * running tasks, and lowers *limit. careful: does not wait for that lock. */
static int lock_limit(struct db *db, const struct claim_ask *ask, bool careful, size_t *limit,
                      struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t running = 0;
    int rc = 0;

    if (careful && db_skips_locked(db)) {
        buf_str(&sql, "SELECT tag FROM dq_tag WHERE tag = ");
        db_put_text(&sql, ask->tag);
        buf_str(&sql, " FOR UPDATE NOWAIT");
        rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
        buf_reset(&sql);
    }
    buf_str(&sql, "INSERT INTO dq_tag (tag) VALUES (");
    db_put_text(&sql, ask->tag);
    buf_str(&sql, ") ON DUPLICATE KEY UPDATE tag = tag");
    if (rc >= 0)
        rc = db_exec(db, &sql, NULL, err);
    if (rc < 0) {
        if (rc == ERR_LOCKED)
            err_prefix(err, "its row of dq_tag, which guards global_max_running");
        goto out;
    }
    buf_reset(&sql);
    buf_printf(&sql, "SELECT COUNT(*) FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ",
               TASK_RUNNING);
    db_put_text(&sql, ask->tag);
    rc = db_first(db, &sql, COLUMNS_ONE, sql_take_u64, &running, err);
    uint64_t room = running < ask->global_limit ? ask->global_limit - running : 0;
    if (*limit > room)
        *limit = (size_t)room;
out:
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

/* The candidates, and which of them are ours. */
struct claiming {
    struct db *db;
    const struct claim_owner *owner;
    const struct claim_ask *ask;
    struct task_array found;
    /* refs: of found. held: of those that are ours, if not all of them are */
    struct claim_ref *refs, *held;
    size_t held_count;
    uint64_t rows; /* ours */
    struct claim_seen saw;
};

static void claiming_done(struct claiming *w)
{
    free(w->refs);
    free(w->held);
    task_array_done(&w->found);
}

static uint64_t claiming_id(const void *arg, size_t i)
{
    return ((const struct claiming *)arg)->refs[i].id;
}

static int claim_part(void *arg, const size_t *at, size_t n, struct err *err)
{
    struct claiming *w = arg;
    struct claim_ref *refs = mem_alloc((n + 1) * sizeof *refs);
    uint64_t rows = 0;

    for (size_t i = 0; i < n; i++)
        refs[i] = w->refs[at[i]];
    int rc = claim_rows(w->db, w->owner, w->ask, refs, n, &rows, err);
    w->rows += rows;
    free(refs);
    return rc;
}

/* Makes faults of rows whose version or attempt cannot grow, before the server refuses the whole
 * statement because of them. */
static void refuse_extremes(struct task_array *found, struct rows_faults *faults)
{
    size_t kept = 0;

    for (size_t i = 0; faults && i < found->count; i++) {
        struct task *t = &found->items[i];
        if (t->version < VERSION_MOST && t->attempt < ATTEMPT_MOST) {
            struct task swap = found->items[kept];
            found->items[kept++] = *t;
            *t = swap;
            continue;
        }
        struct err why;
        err_set(&why, ERR_DATA,
                "version %" PRIu64 ", attempt %" PRIu32 ": too large to count on; set them to 0",
                t->version, t->attempt);
        rows_faults_add(faults, t->id, i, &why);
    }
    for (size_t i = kept; faults && i < found->count; i++)
        task_done(&found->items[i]);
    found->count = faults ? kept : found->count;
}

static int find_some(struct claiming *w, size_t limit, struct rows_faults *faults, struct err *err)
{
    const struct claim_ask *ask = w->ask;
    struct task_array *found = &w->found;

    int rc = find_own(w->db, ask, limit, found, &w->saw, err);
    if (rc == 0 && ask->shares > 1 &&
        found->count < limit) /* leave other shares alone while our own has enough */
        rc = find_candidates(w->db, ask, ask->steal_share, ask->steal_after_ms, ask->steal_far_end,
                             limit - found->count, found, NULL, err);
    w->saw.found = found->count;
    refuse_extremes(found, faults);
    w->refs = mem_alloc((found->count + 1) * sizeof *w->refs);
    for (size_t i = 0; i < found->count; i++)
        w->refs[i] = (struct claim_ref){found->items[i].id, found->items[i].version};
    return rc;
}

/* Finds out which are ours, unless it is all or none. */
static int find_held(struct claiming *w, struct err *err)
{
    if (!w->rows || w->rows == w->found.count)
        return 0;
    w->held = mem_alloc(w->found.count * sizeof *w->held);
    return read_back(w->db, w->owner, w->refs, w->found.count, w->held, &w->held_count, err);
}

/* How a claim with a global limit, which is one transaction, deals with bad rows: not at all;
 * leaves out locked ones; claims only the first, to learn which one fails. */
enum care { CARE_NONE, CARE_SIFT, CARE_ONE };

/* *ret_again: a row is bad; the next degree of care may help. */
static int claim_limited(struct claiming *w, enum care care, struct rows_faults *faults,
                         bool *ret_again, struct err *err)
{
    struct rows_work work = {0, w, claiming_id, claim_part};
    size_t limit = care == CARE_ONE && w->ask->limit ? 1 : w->ask->limit, n = 0, *at = NULL;
    bool locked = false;

    int rc = db_begin(w->db, err);
    if (rc == 0)
        rc = lock_limit(w->db, w->ask, care != CARE_NONE, &limit, err);
    locked = rc == 0;
    if (rc == 0)
        rc = find_some(w, limit, faults, err);
    work.count = n = w->found.count;
    at = mem_alloc((n + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = i;
    if (rc == 0 && n && faults && care != CARE_NONE && db_skips_locked(w->db))
        rc = rows_sift(w->db, &work, faults, at, &n, err);
    if (rc == 0 && n)
        rc = claim_part(w, at, n, err);
    if (rc == 0)
        rc = find_held(w, err);
    if (rc == 0)
        rc = db_commit(w->db, err);
    if (rc < 0)
        db_rollback(w->db);
    *ret_again = faults && locked && rows_at_fault(w->db, rc) && w->found.count;
    if (*ret_again && care == CARE_ONE) {
        rows_faults_add(faults, w->refs[0].id, 0, err);
        w->rows = 0;
        *ret_again = false;
        rc = 0;
    }
    free(at);
    return rc;
}

int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      struct task_array *won, struct claim_seen *ret, struct rows_faults *faults,
                      struct err *err)
{
    struct claiming w = {.db = db, .owner = owner, .ask = ask};
    enum care care = ask->careful ? CARE_SIFT : CARE_NONE;
    size_t before = faults ? faults->count : 0;
    bool again = false;
    int rc = 0;

    if (ask->global_limit) {
        for (;; care++) {
            rc = claim_limited(&w, care, faults, &again, err);
            if (!again)
                break;
            claiming_done(&w);
            w = (struct claiming){.db = db, .owner = owner, .ask = ask};
            if (faults)
                faults->count = before;
        }
    } else {
        rc = find_some(&w, ask->limit, faults, err);
        if (rc == 0 && w.found.count)
            rc = rows_run(db, &(struct rows_work){w.found.count, &w, claiming_id, claim_part},
                          ask->careful, faults, err);
        if (rc == 0)
            rc = find_held(&w, err);
    }
    if (rc == 0) {
        *ret = w.saw;
        ret->lost = w.saw.found - (size_t)w.rows - (faults ? faults->count - before : 0);
        if (w.rows)
            move_won(owner, ask, &w.found, w.held, w.held_count, won);
    }
    claiming_done(&w);
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int claim_store_recover(struct db *db, const struct claim_owner *owner, const uint64_t *known,
                        size_t count, struct task_array *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct task_array found = {NULL, 0, 0, false};

    put_select(&sql, true, false, TASK_RUNNING);
    buf_str(&sql, "c.claim_token = ");
    sql_put_token(&sql, owner->token);
    int rc = db_latest_begin(db, err);
    if (rc == 0)
        rc = read_list(db, &sql, &(struct claimed){&found, true, NULL}, err);
    db_latest_end(db);
    for (size_t i = 0; rc == 0 && i < found.count; i++) {
        struct task *t = &found.items[i];
        if (count && bsearch(&t->id, known, count, sizeof *known, compare_ids))
            continue;
        t->status = TASK_RUNNING;
        memcpy(t->claim_token, owner->token, TASK_TOKEN_SIZE);
        t->claimed = true;
        *task_array_add(ret) = *t;
        task_init(t);
    }
    task_array_done(&found);
    buf_done(&sql);
    return rc;
}
