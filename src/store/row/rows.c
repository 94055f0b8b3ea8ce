/*
 * rows.c - statements over many rows, some of which cannot be changed. Invariant: a row is in the
 * list of faults or has been changed, never both.
 */
#include "store/row/rows.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_session.h"
#include "store/row/sql.h"

#include <stdlib.h>
#include <sys/param.h>

#define PATIENCE_MS 2000
/* Read from a disk, a megabyte takes about 4 ms. Jobs and claims of short bodies are not divided:
 * this is FLIGHT_BODIES_MOST, and twice what a claim loads. */
#define BODIES_MOST ((size_t)16 << 20)
#define BODY_INLINE 8000               /* kept in the row itself */
#define BODY_UNKNOWN ((size_t)2 << 20) /* assumed if its size is not known */
/* BODIES_MOST weighs as much as a change that takes a quarter of a second. */
#define MICROSECOND_WEIGHT 64

size_t rows_weight(size_t body_size, int64_t row_us)
{
    size_t us = (size_t)MIN(row_us, (int64_t)(BODIES_MOST / MICROSECOND_WEIGHT));

    return MAX(body_size == SIZE_MAX ? BODY_UNKNOWN : body_size, us * MICROSECOND_WEIGHT);
}

size_t rows_size(size_t body_size, bool again)
{
    return again ? MIN(body_size, SIZE_MAX / 2) + 3 * BODY_UNKNOWN : body_size; /* it is moved */
}

bool rows_take(size_t *bytes, size_t body_size)
{
    size_t more = rows_weight(body_size, 0);

    if (more <= BODY_INLINE)
        return true;
    if (*bytes && more > BODIES_MOST - MIN(*bytes, BODIES_MOST))
        return false;
    *bytes += more;
    return true;
}

/* A table that is missing, or a right: whose? */
static bool is_trigger(int code)
{
    return code == ERR_CONFIG || code == ERR_DENIED;
}

void rows_faults_add(struct rows_faults *f, uint64_t id, size_t at, const struct err *err)
{
    MEM_ROOM(f->items, f->count, f->cap);
    f->items[f->count] = (struct rows_fault){id, at, *err};
    if (is_trigger(err->code))
        err_set(&f->items[f->count].err, ERR_FATAL,
                "a trigger of dq_task failed (dq's own tables are in order): %s", err->text);
    f->count++;
}

const struct rows_fault *rows_faults_find(const struct rows_faults *f, uint64_t id)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].id == id)
            return &f->items[i];
    return NULL;
}

void rows_faults_done(struct rows_faults *f)
{
    free(f->items);
    *f = (struct rows_faults){0};
}

/* Need what a change of rows needs, but no row, so no trigger runs. */
static bool tables_in_order(struct db *db)
{
    static const char *const probes[] = {
        "UPDATE dq_task SET version = version WHERE id = 0",
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time, missed_slots)"
        " SELECT '', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 0 FROM dq_meta WHERE FALSE",
        ROWS_PROBE_ATTEMPT,
    };
    bool well = db_connected(db);

    for (size_t i = 0; well && i < sizeof probes / sizeof *probes; i++)
        well = sql_exec(db, NULL, NULL, probes[i]) == 0;
    return well;
}

bool rows_at_fault(struct db *db, int code)
{
    return code == ERR_LOCKED || code == ERR_DATA || code == ERR_DUPLICATE ||
           (code == ERR_FATAL && db_connected(db)) || (is_trigger(code) && tables_in_order(db));
}

const char *rows_before_skip(const struct db *db)
{
    return db_is_mariadb(db) ? "SET STATEMENT innodb_lock_wait_timeout = 1 FOR " : "";
}

struct division {
    struct db *db;
    const struct rows_work *work;
    struct rows_faults *faults;
    int64_t until;
    size_t bad;  /* that were tried alone */
    size_t left; /* the first that was not tried; the count: none */
};

static void add_all(struct division *d, const size_t *at, size_t n, const struct err *err)
{
    for (size_t i = 0; i < n; i++)
        rows_faults_add(d->faults, d->work->refs[at[i]].id, at[i], err);
}

int rows_run_part(const struct rows_work *w, const size_t *at, size_t n, struct err *err)
{
    MEM_LOCAL struct claim_ref *refs = mem_alloc((n + 1) * sizeof *refs);

    for (size_t i = 0; i < n; i++)
        refs[i] = w->refs[at[i]];
    return n ? w->run(w->arg, refs, at, n, err) : 0;
}

static int divide(struct division *d, const size_t *at, size_t n, struct err *err)
{
    int rc = rows_run_part(d->work, at, n, err);

    if (!rows_at_fault(d->db, rc))
        return rc;
    if (n > 1 && d->work->until && d->bad && when_steady() > d->work->until) {
        d->left = at[0];
        return 0;
    }
    if (n > 1 && when_steady() > d->until)
        err_set(err, rc, "not tried alone, because too many rows before it failed: run it again");
    if (n == 1 || when_steady() > d->until) {
        add_all(d, at, n, err);
        d->bad++;
        return 0;
    }
    rc = divide(d, at, n / 2, err);
    return rc < 0 || d->left < d->work->count ? rc : divide(d, at + n / 2, n - n / 2, err);
}

struct seen {
    const struct rows_work *w;
    bool *found;
};

static void see_id(const struct db_rows *r, void *arg)
{
    const struct seen *s = arg;

    for (size_t i = 0; i < s->w->count; i++)
        s->found[i] |= s->w->refs[i].id == db_u64(r, COLUMNS_ONLY);
}

static int read_ids(struct db *db, const struct rows_work *w, bool skip_locked, bool *found,
                    struct err *err)
{
    return sql_all(
        db, COLUMNS_ONE, see_id, &((struct seen){w, found}), err,
        "?SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE " SQL_BY_KEY("version") "id IN ??",
        SQL_PART(skip_locked ? rows_before_skip(db) : NULL), SQL_IDS(w->refs, w->count),
        SQL_PART(skip_locked ? " FOR UPDATE SKIP LOCKED" : NULL));
}

/* Outside a transaction the locks of the first statement end with it, so other sessions do not
 * wait. */
int rows_sift(struct db *db, const struct rows_work *w, struct rows_faults *faults, size_t *at,
              size_t *ret_n, struct err *err)
{
    MEM_LOCAL bool *held = mem_zero(2 * w->count, sizeof *held);
    bool *there = held + w->count;
    struct err locked;
    size_t n = 0;

    err_set(&locked, ERR_LOCKED, "the row is locked by an open transaction of another session");
    int rc = read_ids(db, w, true, held, err);
    if (rc == 0)
        rc = read_ids(db, w, false, there, err);
    for (size_t i = 0; rc == 0 && i < w->count; i++) {
        if (there[i] && !held[i]) {
            rows_faults_add(faults, w->refs[i].id, i, &locked);
            db_session_beware(db);
        } else {
            at[n++] = i;
        }
    }
    *ret_n = n;
    return rc;
}

/* Changes the rows that are not known to be locked, if skip, else all; those that fail are faults.
 */
static int try_rest(struct division *d, bool skip, bool wait, const size_t *at, size_t n,
                    struct err *err)
{
    const struct rows_work *w = d->work;
    int rc = n && skip && w->beside ? w->beside(w->arg, err) : 0;

    if (rc == ERR_LOCKED) {
        d->faults->beside = true;
        add_all(d, at, n, err);
        return 0;
    }
    if (rc == 0 && !wait)
        rc = db_session_wait_not(d->db, err);
    if (rc == 0)
        rc = divide(d, at, n, err);
    if (!wait)
        db_session_wait(d->db);
    return rc;
}

int rows_run(struct db *db, const struct rows_work *w, bool careful, struct rows_faults *faults,
             struct err *err)
{
    struct division d = {.db = db, .work = w, .faults = faults, .left = w->count};
    size_t n = w->count;
    MEM_LOCAL size_t *at = mem_alloc((n + 1) * sizeof *at);
    int rc = 0;

    if (!n)
        return 0;
    for (size_t i = 0; i < n; i++)
        at[i] = i;
    careful = (careful || db_session_wary(db)) && faults && db_skips_locked(db);
    if (!careful)
        rc = rows_run_part(w, at, n, err);
    if (careful || (faults && rows_at_fault(db, rc))) {
        bool skip = careful || (rc == ERR_LOCKED && db_skips_locked(db));
        /* it did, for the locks that hide the others, or for one beside the rows */
        bool wait = skip ? !w->beside : rc != ERR_LOCKED;

        d.until = when_steady() + PATIENCE_MS;
        rc = skip ? rows_sift(db, w, faults, at, &n, err) : 0;
        if (rc == 0)
            rc = try_rest(&d, skip, wait, at, n, err);
    }
    if (w->ret_left)
        *w->ret_left = d.left;
    return rc;
}
