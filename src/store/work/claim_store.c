/*
 * claim_store.c - claiming due tasks.
 *
 * Invariant: a task counts as won only if the server has reported that our UPDATE matched its row
 * at the version that we read. Rows are changed only through the primary key, in the order of ids,
 * so that claiming, settling and taking back do not deadlock.
 */
#include "store/work/claim_store.h"
#include "base/company.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/db/db_session.h"
#include "store/row/sql.h"
#include "store/work/claim_limit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

static int claim_rows(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      const struct claim_ref *refs, size_t n, uint64_t *ret_rows, struct err *err)
{
    BUF_LOCAL struct buf expires = BUF_INIT;

    if (ask->expires_ms) /* assignments are made from left to right */
        sql_put(&expires, "expires_time = ?, ", SQL_EXPIRES("", ask->expires_ms));
    return sql_exec(
        db, ret_rows, err,
        "UPDATE dq_task FORCE INDEX (PRIMARY) SET ??, max_attempts = COALESCE(max_attempts, ?),"
        " claim_token = ?, host = ?, pid = ?, lease_until = ?,"
        " execution_time = GREATEST(UTC_TIMESTAMP(3), expected_time), exit_code = NULL,"
        " `signal` = NULL, error_stack = NULL, output = NULL WHERE ? AND ?",
        SQL_PART(expires.data), SQL_TRANSITION(TASK_CLAIM), SQL_INT(ask->max_attempts),
        SQL_TOKEN(owner->token), SQL_TEXT(owner->host), SQL_INT(owner->pid),
        SQL_FROM_NOW(ask->lease_ms), SQL_FROM(TASK_CLAIM), CLAIM_REF_THESE(refs, n));
}

/* Some were claimed by others: reads which have our token. Stores them in `held`, at the version
 * after the claim. */
static int read_back(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs,
                     size_t n, struct claim_ref *held, size_t *ret_held, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        held[i] = (struct claim_ref){refs[i].id, refs[i].version + 1};
    return claim_ref_find(db, held, n, ret_held, err, CLAIM_REF_OURS, CLAIM_REF_OF(owner, held, n));
}

/* Whether that task is among those that are ours, running since the claim of this version, and no
 * other candidate had it: one that changed its level between two of our SELECTs was found by both,
 * perhaps with another body. */
static bool take_held(struct claim_ref *held, size_t *count, const struct task *t)
{
    for (size_t i = 0; i < *count; i++)
        if (held[i].id == t->id && held[i].version == t->version + 1) {
            held[i] = held[--*count];
            return true;
        }
    return false;
}

/* Moves the candidates that are ours (held NULL: all) to `won`; the caller frees the others. */
static void move_won(const struct claim_owner *owner, const struct claim_ask *ask,
                     struct task_array *found, struct claim_ref *held, size_t held_count,
                     struct task_array *won)
{
    for (size_t i = 0; i < found->count; i++) {
        struct task *t = &found->items[i];
        if (held && !take_held(held, &held_count, t))
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

/* The candidates, and which of them are ours. */
struct claiming {
    struct db *db;
    const struct claim_owner *owner;
    const struct claim_ask *ask;
    struct task_array found;
    /* refs: of found. held: of those that are ours, if not all of them are */
    struct claim_ref *refs, *held;
    size_t held_count;
    size_t bytes;  /* of their bodies, see rows_take */
    uint64_t rows; /* ours */
    struct limit_row limit;
    struct claim_seen saw;
};

static void claiming_done(struct claiming *w)
{
    free(w->refs);
    free(w->held);
    task_array_done(&w->found);
    limit_row_done(&w->limit);
}

static int claim_part(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
                      struct err *err)
{
    struct claiming *w = arg;
    uint64_t rows = 0;
    int rc = claim_rows(w->db, w->owner, w->ask, refs, n, &rows, err);

    (void)at;
    w->rows += rows;
    return rc;
}

/* Whether to claim it. Makes a fault of a row whose version or attempt cannot grow, before the
 * server refuses the whole statement because of it. */
static bool fits(struct claiming *w, struct company *c, const struct task *t, size_t i,
                 struct rows_faults *faults)
{
    struct err why;

    if (faults && !task_countable(t->version, t->attempt)) {
        err_set(&why, ERR_DATA,
                "version %" PRIu64 ", attempt %" PRIu32 ": too large to count on; set them to 0",
                t->version, t->attempt);
        rows_faults_add(faults, t->id, i, &why);
        return false;
    }
    /* if some body_size was a lie, none is trusted */
    size_t size = w->ask->without_bodies ? SIZE_MAX : t->body_size;
    if (rows_take(&w->bytes, rows_weight(size, w->ask->row_us)) &&
        (c->batch <= 1 || company_take(c, t->company)))
        return true;
    w->saw.left++;
    return false;
}

static void keep_fitting(struct claiming *w, struct rows_faults *faults)
{
    struct company c = {.batch = w->ask->batch, .processes = w->ask->processes};
    struct task_array *found = &w->found;
    size_t kept = 0;

    w->bytes = w->ask->without_long ? SIZE_MAX : 0;
    for (size_t i = 0; i < found->count; i++) {
        struct task *t = &found->items[i], swap = found->items[kept];
        if (!fits(w, &c, t, i, faults))
            continue;
        found->items[kept++] = *t;
        *t = swap;
    }
    for (size_t i = kept; i < found->count; i++)
        task_done(&found->items[i]);
    found->count = kept;
    for (size_t i = 0; c.batch > 1 && i < kept; i++)
        found->items[i].company = company_size(&c, found->items[i].company);
}

static int find_some(struct claiming *w, size_t limit, struct rows_faults *faults, struct err *err)
{
    struct task_array *found = &w->found;
    int rc = claim_find_due(w->db, w->ask, limit, found, &w->saw, err);
    if (w->ask->before && found->count)
        w->ask->before(w->ask->before_arg, found);
    keep_fitting(w, faults);
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
    struct rows_work work = {.arg = w, .run = claim_part};
    const size_t wanted = care == CARE_ONE && w->ask->limit ? 1 : w->ask->limit;
    size_t n = 0, *at = NULL;
    uint64_t may = 0;
    bool locked = false, rows = true; /* rows: of dq_task, if a statement fails */

    int rc = db_begin(w->db, err);
    if (rc == 0) {
        rc = claim_limit_lock(w->db, w->ask, care != CARE_NONE, err);
        w->saw.held = rc == ERR_LOCKED ? LIMIT_LOCKED : LIMIT_OPEN;
    }
    locked = rc == 0;
    if (rc == 0)
        rc = claim_limit_read(w->db, w->ask, &w->limit, &w->saw, &may, err);
    if (rc == 0)
        rc = find_some(w, (size_t)MIN(wanted, may), faults, err);
    work.refs = w->refs;
    work.count = n = w->found.count;
    at = mem_alloc((n + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = i;
    if (rc == 0 && n && faults && care != CARE_NONE && db_skips_locked(w->db))
        rc = rows_sift(w->db, &work, faults, at, &n, err);
    if (rc == 0)
        rc = rows_run_part(&work, at, n, err);
    if (rc == 0 && n && w->limit.limit.rate.count) {
        rc = claim_limit_reserve(w->db, w->ask, &w->limit, &w->found, wanted > w->found.count,
                                 &w->saw, err);
        rows = rc == 0;
    }
    if (rc == 0)
        rc = find_held(w, err);
    rc = db_end(w->db, rc, err);
    if (rc == 0 && n) {
        w->saw.full = w->limit.limit.running && w->limit.running + n >= w->limit.limit.running;
        claim_limit_count(&w->limit, &w->found);
    }
    *ret_again = faults && locked && rows && rows_at_fault(w->db, rc) && w->found.count;
    if (*ret_again && care == CARE_ONE) {
        rows_faults_add(faults, w->refs[0].id, 0, err);
        w->rows = 0;
        *ret_again = false;
        rc = 0;
    }
    free(at);
    return rc;
}

/* Of a tag that is under no limit, as far as is known. */
static int claim_freely(struct claiming *w, struct rows_faults *faults, struct err *err)
{
    struct claim_seen limit = {0};
    uint64_t may;
    int rc = find_some(w, w->ask->limit, faults, err);

    if (rc == 0)
        rc = rows_run(w->db,
                      &(struct rows_work){w->refs, w->found.count, w, claim_part, NULL, 0, NULL},
                      false, faults, err);
    if (rc == 0)
        rc = find_held(w, err);
    if (rc == 0 && w->ask->unsure && !w->saw.found) {
        rc = claim_limit_read(w->db, w->ask, &w->limit, &limit, &may, err);
        w->saw.guarded = w->limit.is_strict;
    }
    return rc;
}

int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      struct task_array *won, struct claim_seen *ret, struct rows_faults *faults,
                      struct err *err)
{
    struct claiming w = {.db = db, .owner = owner, .ask = ask};
    enum care care = db_session_wary(db) ? CARE_SIFT : CARE_NONE;
    size_t before = faults ? faults->count : 0;
    uint64_t may = UINT64_MAX;
    const bool limited = ask->guarded || ask->tag_limit.running;
    bool again = false;
    int rc = 0;

    if (ask->doubtful)
        rc = claim_limit_look(db, ask, limited, &w.saw, &may, err);
    for (; rc == 0 && may; care++) {
        w = (struct claiming){.db = db, .owner = owner, .ask = ask};
        rc = limited ? claim_limited(&w, care, faults, &again, err) : claim_freely(&w, faults, err);
        if (!again)
            break;
        claiming_done(&w);
        faults->count = before;
        rc = 0;
    }
    *ret = w.saw;
    if (rc == 0)
        ret->lost =
            w.saw.found - w.saw.left - (size_t)w.rows - (faults ? faults->count - before : 0);
    if (rc == 0 && w.rows)
        move_won(owner, ask, &w.found, w.held, w.held_count, won);
    claiming_done(&w);
    return rc;
}

int claim_store_recover(struct db *db, const struct claim_owner *owner,
                        const struct claim_ref *known, size_t count, struct task_array *ret,
                        struct err *err)
{
    struct task_array found = {NULL, 0, 0, false};
    int rc = claim_find_running(db, owner->token, &found, err);

    for (size_t i = 0; rc == 0 && i < found.count; i++) {
        struct task *t = &found.items[i];
        const struct claim_ref ref = {t->id, t->version};
        if (count && bsearch(&ref, known, count, sizeof *known, claim_ref_compare))
            continue;
        t->status = TASK_RUNNING;
        memcpy(t->claim_token, owner->token, TASK_TOKEN_SIZE);
        t->claimed = true;
        *task_array_add(ret) = *t;
        task_init(t);
    }
    task_array_done(&found);
    return rc;
}

#define CLAIMER_COLUMNS(X) X(CLAIMER_HOST, "host") X(CLAIMER_PID, "pid")
enum { CLAIMER_COLUMNS(COLUMNS_NAME) CLAIMER_COUNT };

static void take_claimer(const struct db_rows *r, void *arg)
{
    *(char **)arg = mem_printf("%s/%" PRIu64, db_string(r, CLAIMER_HOST), db_u64(r, CLAIMER_PID));
}

int claim_store_claimer(struct db *db, uint64_t id, char **ret, struct err *err)
{
    /* of the next statement only */
    int rc = sql_exec(db, NULL, err, "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");

    if (rc == 0)
        rc =
            sql_first(db, CLAIMER_COUNT, take_claimer, ret, err,
                      "SELECT ? FROM dq_task FORCE INDEX (PRIMARY) WHERE id = ?"
                      " AND status = ? AND host IS NOT NULL AND pid IS NOT NULL",
                      SQL_PART(COLUMNS_SELECT(CLAIMER_COLUMNS)), SQL_ID(id), SQL_INT(TASK_RUNNING));
    return rc;
}
