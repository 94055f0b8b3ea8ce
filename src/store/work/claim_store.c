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
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/db/db_session.h"
#include "store/row/limit_row.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

static int claim_rows(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      const struct claim_ref *refs, size_t n, uint64_t *ret_rows, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET ");
    sql_put_transition(&sql, TASK_CLAIM, NULL);
    buf_printf(&sql, ", max_attempts = COALESCE(max_attempts, %" PRIu32 "), claim_token = ",
               ask->max_attempts);
    sql_put_token(&sql, owner->token);
    if (ask->expires_ms) {
        buf_str(&sql, ", expires_time = ");
        sql_put_expires(&sql, "", ask->expires_ms);
    }
    buf_str(&sql, ", host = ");
    db_put_text(&sql, owner->host);
    buf_printf(&sql, ", pid = %" PRIu32 ", lease_until = ", owner->pid);
    sql_put_from_now(&sql, ask->lease_ms);
    buf_str(
        &sql,
        ", execution_time = GREATEST(UTC_TIMESTAMP(3), expected_time), exit_code = NULL, `signal` = NULL, error_stack = "
        "NULL, output = NULL WHERE ");
    sql_put_from(&sql, TASK_CLAIM);
    buf_str(&sql, " AND ");
    claim_ref_put(&sql, refs, n);
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

/* Locks the row of the limit until the transaction ends, and adds it if there is none. careful:
 * does not wait for that lock. */
static int lock_limit(struct db *db, const char *name, bool careful, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    int rc = 0;

    if (careful && db_skips_locked(db)) {
        buf_str(&sql, "SELECT name FROM dq_limit WHERE name = ");
        db_put_text(&sql, name);
        buf_str(&sql, " FOR UPDATE NOWAIT");
        rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
        buf_reset(&sql);
    }
    buf_str(&sql, "INSERT INTO dq_limit (name) VALUES (");
    db_put_text(&sql, name);
    buf_str(&sql, ") ON DUPLICATE KEY UPDATE name = name");
    if (rc >= 0)
        rc = db_exec(db, &sql, NULL, err);
    if (rc == ERR_LOCKED) {
        db_session_beware(db);
        err_prefix(err, LIMIT_LOCKED_TEXT);
    }
    return rc < 0 ? rc : 0;
}

/* What runs under a limit of several tags, or one whose breaker has opened: of these, those that
 * began when its rest was over. */
struct running {
    const struct claim_ask *ask;
    uint64_t count, probes;
};

#define RUNNING_COLUMNS(X)                                                                         \
    X(RUNNING_TAG, "tag")                                                                          \
    X(RUNNING_TASKS, "COUNT(*)")                                                                   \
    X(RUNNING_PROBES, "SUM(?)")
enum { RUNNING_COLUMNS(COLUMNS_NAME) RUNNING_COUNT };

static int take_running(const struct db_rows *r, void *arg, struct err *err)
{
    struct running *x = arg;

    (void)err;
    if (x->ask->under(x->ask->under_arg, db_string(r, RUNNING_TAG))) {
        x->count += db_u64(r, RUNNING_TASKS);
        x->probes += db_u64(r, RUNNING_PROBES);
    }
    return 0;
}

static void take_row(const struct db_rows *r, void *arg)
{
    limit_row_read(r, arg);
}

/* Reads the limit, with what runs under it. *ret_answer: whether and when tasks may start. */
static int read_limit(struct db *db, const struct claim_ask *ask, struct limit_row *row,
                      struct limit_answer *ret_answer, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT, count = BUF_INIT;
    struct running running = {.ask = ask};

    buf_printf(&count,
               "(SELECT COUNT(*) FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ",
               TASK_RUNNING);
    db_put_text(&count, ask->tag);
    buf_chr(&count, ')');
    limit_row_put_select(&sql, ask->limit_name ? NULL : count.data);
    buf_str(&sql, " WHERE g.name = ");
    db_put_text(&sql, ask->limit_name ? ask->limit_name : ask->tag);
    int rc = db_first(db, &sql, limit_row_columns, take_row, row, err);
    if (!row->limit.running)
        row->limit.running = ask->tag_limit.running;
    if (rc >= 0 && (row->limit.breaker || (ask->limit_name && row->limit.running))) {
        buf_reset(&sql);
        BUF_LOCAL struct buf probes = BUF_INIT;
        buf_reset(&count);
        if (row->limit.breaker) /* which reads the rows, and not only the index */
            sql_put(&probes, "COALESCE(execution_time >= ?, 0)",
                    SQL_TIME(MIN(MAX(row->limit.held_until_at, 0), WHEN_AT_MAX)));
        else
            buf_chr(&probes, '0');
        buf_printf(&count, "SELECT %s FROM dq_task FORCE INDEX (due) WHERE status = ? GROUP BY tag",
                   COLUMNS_SELECT(RUNNING_COLUMNS));
        sql_put(&sql, count.data, SQL_PART(probes.data), SQL_INT(TASK_RUNNING));
        rc = db_each(db, &sql, RUNNING_COUNT, take_running, &running, err);
        row->running = running.count;
        row->limit.probed = running.probes > 0;
    }
    *ret_answer = limit_ask(&row->limit, row->running, row->now_at, ask->horizon_ms);
    return rc < 0 ? rc : 0;
}

/* When to claim again: as many slots of a rate as the horizon has are reserved together. */
static void see_limit(const struct claim_ask *ask, const struct limit_row *row,
                      const struct limit_answer *a, struct claim_seen *saw)
{
    saw->held = a->why;
    saw->limit_at = a->why == LIMIT_RATE
                        ? MAX(a->again_at - ask->horizon_ms, row->now_at + ask->horizon_ms / 2)
                        : a->again_at;
    saw->guarded = row->is_strict;
    saw->probing = row->limit.breaker > 0;
    saw->set_back |= row->limit.rate.count &&
                     rate_set_back(&row->limit.rate, row->limit.next_us, row->now_at * 1000);
    saw->paced = row->limit.rate.count || row->limit.hours || row->limit.breaker;
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
    size_t wanted; /* without the limit */
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

/* Reserves a start for each candidate, in their order. */
static int reserve(struct claiming *w, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct limit *l = &w->limit.limit;
    const size_t n = w->found.count;
    MEM_LOCAL int64_t *starts = mem_alloc((n + 1) * sizeof *starts);

    l->next_us = rate_take(&l->rate, l->next_us, w->limit.now_at * 1000, starts, n);
    for (size_t i = 0; i < n; i++) {
        w->found.items[i].start_at = (starts[i] + 999) / 1000;
        w->found.items[i].late_us = rate_slot_us(&l->rate);
    }
    buf_str(&sql, "UPDATE dq_limit SET next_at = ");
    limit_row_put_next(&sql, l->next_us);
    struct limit_answer next =
        limit_ask(l, w->limit.running + n, w->limit.now_at, w->ask->horizon_ms);
    buf_printf(&sql, ", rate_full = %d WHERE name = ", next.why == LIMIT_RATE && w->wanted > n);
    db_put_text(&sql, w->ask->limit_name ? w->ask->limit_name : w->ask->tag);
    int rc = db_exec(w->db, &sql, NULL, err);
    if (next.why == LIMIT_RATE)
        see_limit(w->ask, &w->limit, &next, &w->saw);
    return rc;
}

/* They are late from when the limit let them start. */
static void count_lateness(struct claiming *w)
{
    struct limit l = w->limit.limit;
    const bool full = l.rate_full;

    l.rate = (struct rate){0}; /* it has given each a start */
    l.rate_full = false;
    int64_t since_at = limit_since(&l, w->limit.now_at);
    for (size_t i = 0; i < w->found.count; i++) {
        struct task *t = &w->found.items[i];
        t->late_from_at =
            MAX(t->late_from_at,
                MAX(full || t->start_at > w->limit.now_at ? t->start_at : 0, since_at));
    }
}

/* How a claim with a global limit, which is one transaction, deals with bad rows: not at all;
 * leaves out locked ones; claims only the first, to learn which one fails. */
enum care { CARE_NONE, CARE_SIFT, CARE_ONE };

/* *ret_again: a row is bad; the next degree of care may help. */
static int claim_limited(struct claiming *w, enum care care, struct rows_faults *faults,
                         bool *ret_again, struct err *err)
{
    struct rows_work work = {0, w, claiming_id, claim_part, NULL};
    size_t limit = care == CARE_ONE && w->ask->limit ? 1 : w->ask->limit, n = 0, *at = NULL;
    struct limit_answer answer;
    bool locked = false, rows = true; /* rows: of dq_task, if a statement fails */

    int rc = db_begin(w->db, err);
    if (rc == 0) {
        rc = lock_limit(w->db, w->ask->limit_name ? w->ask->limit_name : w->ask->tag,
                        care != CARE_NONE, err);
        w->saw.held = rc == ERR_LOCKED ? LIMIT_LOCKED : LIMIT_OPEN;
    }
    locked = rc == 0;
    if (rc == 0)
        rc = read_limit(w->db, w->ask, &w->limit, &answer, err);
    if (rc == 0) {
        see_limit(w->ask, &w->limit, &answer, &w->saw);
        w->wanted = limit;
        limit = (size_t)MIN(limit, answer.may);
        rc = find_some(w, limit, faults, err);
    }
    work.count = n = w->found.count;
    at = mem_alloc((n + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = i;
    if (rc == 0 && n && faults && care != CARE_NONE && db_skips_locked(w->db))
        rc = rows_sift(w->db, &work, faults, at, &n, err);
    if (rc == 0 && n)
        rc = claim_part(w, at, n, err);
    if (rc == 0 && n && w->limit.limit.rate.count) {
        rc = reserve(w, err);
        rows = rc == 0;
    }
    if (rc == 0)
        rc = find_held(w, err);
    rc = db_end(w->db, rc, err);
    if (rc == 0 && n)
        count_lateness(w);
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

/* A limit by which nothing may start is not locked to find that out. */
static int look_before(struct claiming *w, bool *ret_may, struct err *err)
{
    struct limit_answer answer;
    int rc = read_limit(w->db, w->ask, &w->limit, &answer, err);

    if (rc == 0)
        see_limit(w->ask, &w->limit, &answer, &w->saw);
    *ret_may = rc == 0 && answer.may > 0;
    return rc;
}

/* Nor is a paused tag claimed in vain again and again. */
static int see_pause(struct claiming *w, bool *ret_may, struct err *err)
{
    int64_t until_at;
    int rc = claim_find_pause(w->db, w->ask->tag, &until_at, err);

    *ret_may = rc == 0 && until_at == INT64_MIN;
    if (rc == 0 && !*ret_may)
        w->saw = (struct claim_seen){.held = LIMIT_PAUSED, .alone = true, .limit_at = until_at};
    return rc;
}

static int see_guarded(struct claiming *w, struct err *err)
{
    struct limit_answer answer;
    int rc = read_limit(w->db, w->ask, &w->limit, &answer, err);

    w->saw.guarded = w->limit.is_strict;
    return rc;
}

int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      struct task_array *won, struct claim_seen *ret, struct rows_faults *faults,
                      struct err *err)
{
    struct claim_ask locked = *ask;
    struct claiming w = {.db = db, .owner = owner, .ask = ask};
    enum care care = db_session_wary(db) ? CARE_SIFT : CARE_NONE;
    size_t before = faults ? faults->count : 0;
    bool limited = ask->guarded || ask->tag_limit.running, again = false, may = true;
    int rc = 0;

    if (ask->doubtful)
        rc = see_pause(&w, &may, err);
    if (ask->doubtful && limited && may)
        rc = look_before(&w, &may, err);
    if (rc < 0 || !may) {
        *ret = w.saw;
        claiming_done(&w);
        return rc;
    }
    if (limited) {
        locked.locked = true;
        claiming_done(&w);
        w = (struct claiming){.db = db, .owner = owner, .ask = &locked};
        for (;; care++) {
            rc = claim_limited(&w, care, faults, &again, err);
            if (!again)
                break;
            claiming_done(&w);
            w = (struct claiming){.db = db, .owner = owner, .ask = &locked};
            if (faults)
                faults->count = before;
        }
    } else {
        rc = find_some(&w, ask->limit, faults, err);
        if (rc == 0 && w.found.count)
            rc = rows_run(db, &(struct rows_work){w.found.count, &w, claiming_id, claim_part, NULL},
                          false, faults, err);
        if (rc == 0)
            rc = find_held(&w, err);
        if (rc == 0 && ask->unsure && !w.saw.found)
            rc = see_guarded(&w, err);
    }
    *ret = w.saw;
    if (rc == 0) {
        ret->lost =
            w.saw.found - w.saw.left - (size_t)w.rows - (faults ? faults->count - before : 0);
        if (w.rows)
            move_won(owner, ask, &w.found, w.held, w.held_count, won);
    }
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
    struct buf sql = BUF_INIT;

    /* of the next statement only */
    buf_str(&sql, "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    int rc = db_exec(db, &sql, NULL, err);
    buf_reset(&sql);
    buf_printf(&sql,
               "SELECT %s FROM dq_task FORCE INDEX (PRIMARY) WHERE id = %" PRIu64
               " AND status = %d AND host IS NOT NULL AND pid IS NOT NULL",
               COLUMNS_SELECT(CLAIMER_COLUMNS), id, TASK_RUNNING);
    if (rc == 0)
        rc = db_first(db, &sql, CLAIMER_COUNT, take_claimer, ret, err);
    buf_done(&sql);
    return rc;
}
