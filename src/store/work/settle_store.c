/*
 * settle_store.c - recording how attempts ended.
 *
 * A statement settles up to ROWS_STEP rows through the primary key. Values that differ from row to
 * row are looked up by id: ELT(INTERVAL(id, 3, 7, 9), 'a', 'b', 'c') is a binary search, and costs
 * half as much as a join with a table of values.
 *
 * Invariant: a row changes only while it is running, at the version of the claim, with our token.
 * The token stays in the row, which shows after a broken connection what was applied: our token at
 * version + 1. A row that cannot be changed does not keep others from it (rows.h).
 */
#include "store/work/settle_store.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/db/columns.h"
#include "store/db/db_latest.h"
#include "store/db/db_put.h"
#include "store/db/db_statement.h"
#include "store/fleet/attempt_store.h"
#include "store/row/settlement.h"
#include "store/row/sql.h"
#include "store/work/follow_up.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define STATEMENT_FIXED 4096 /* everything but the values, and the ids of one row */
#define ROW_TEXT 512         /* a row's values other than error and output, each with its id */
#define ERROR_BYTES 60000    /* error_stack is a TEXT */

/* The results of one statement or transaction, by id. */
struct batch {
    const struct settlement *rows[ROWS_STEP];
    size_t count;
};

static int compare_rows(const void *a, const void *b)
{
    const struct settlement *x = *(const struct settlement *const *)a,
                            *y = *(const struct settlement *const *)b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->version < y->version ? -1 : x->version > y->version;
}

static size_t error_size(const struct settlement *s)
{
    size_t len = s->error ? strlen(s->error) : 0;

    return MIN(len, ERROR_BYTES);
}

bool settle_store_needs_attempt(const struct settlement *s, bool history_all)
{
    return history_all || task_transition(s->event)->history != HISTORY_OPTIONAL;
}

/* What results need of the server: more each time. */
enum kind { UNRECORDED, RECORDED, FOLLOWED, KIND_COUNT };

static enum kind kind_of(const struct settlement *s, bool history_all)
{
    return !settle_store_needs_attempt(s, history_all) ? UNRECORDED
           : s->on_failed                              ? FOLLOWED
                                                       : RECORDED;
}

/* Takes the next results of one kind, as many as fit into packets of `most` bytes. Of two for the
 * same task, only that of the later claim can still be ours. */
static void next_batch(const struct settlement *s, size_t count, bool history_all, enum kind kind,
                       size_t most, size_t *at, struct batch *b)
{
    size_t text = 0, values = 0, kept = 0, bytes;

    b->count = 0;
    for (; *at < count && b->count < ROWS_STEP; ++*at) {
        const struct settlement *x = &s[*at];
        if (kind_of(x, history_all) != kind)
            continue;
        text += ROW_TEXT + db_put_room(error_size(x)) + db_statement_room(x->output_size, &bytes);
        values += bytes;
        if (b->count && (text > most || values > most))
            break;
        b->rows[b->count++] = x;
    }
    if (b->count)
        qsort(b->rows, b->count, sizeof *b->rows, compare_rows);
    for (size_t i = 0; i < b->count; i++)
        if (i + 1 == b->count || b->rows[i]->id != b->rows[i + 1]->id)
            b->rows[kept++] = b->rows[i];
    b->count = kept;
}

static void batch_pick(struct batch *ret, const struct batch *b,
                       bool (*pick)(const struct settlement *s, int arg), int arg)
{
    ret->count = 0;
    for (size_t i = 0; i < b->count; i++)
        if (pick(b->rows[i], arg))
            ret->rows[ret->count++] = b->rows[i];
}

static void batch_refs(const struct batch *b, uint64_t version_plus,
                       struct claim_ref refs[ROWS_STEP])
{
    for (size_t i = 0; i < b->count; i++)
        refs[i] = (struct claim_ref){b->rows[i]->id, b->rows[i]->version + version_plus};
}

/* ---- values */

static void put_start(struct db_statement *st, const struct settlement *s)
{
    if (task_transition(s->event)->unstarted)
        buf_str(&st->sql, "NULL");
    else if (s->start_at == TASK_TIME_NONE)
        buf_str(&st->sql, "execution_time");
    else
        db_put_time(&st->sql, s->start_at);
}

static void put_finish(struct db_statement *st, const struct settlement *s)
{
    if (s->finish_at == TASK_TIME_NONE)
        buf_str(&st->sql, "UTC_TIMESTAMP(3)");
    else
        db_put_time(&st->sql, s->finish_at);
}

static void put_delay(struct db_statement *st, const struct settlement *s)
{
    buf_printf(&st->sql, "%" PRId64, s->retry_delay_ms * 1000);
}

static void put_outcome(struct db_statement *st, const struct settlement *s)
{
    buf_printf(&st->sql, "'%s'", task_outcome_name((int)s->outcome));
}

static void put_exit_code(struct db_statement *st, const struct settlement *s)
{
    if (s->exit_code < 0)
        buf_str(&st->sql, "NULL");
    else
        buf_printf(&st->sql, "%d", s->exit_code);
}

static void put_signal(struct db_statement *st, const struct settlement *s)
{
    if (s->signal == 0)
        buf_str(&st->sql, "NULL");
    else
        buf_printf(&st->sql, "%d", s->signal);
}

static void put_error(struct db_statement *st, const struct settlement *s)
{
    size_t n = error_size(s);
    char *cut = s->error && s->error[n] ? mem_dup(s->error, text_cut(s->error, n)) : NULL;

    db_put_text(&st->sql, cut ? cut : s->error);
    free(cut);
}

static void put_output(struct db_statement *st, const struct settlement *s)
{
    db_statement_put(st, s->output, s->output_size);
}

/* Appends a single value if all are equal, else the look-up by id. */
static void put_value(struct db_statement *st, const struct batch *b,
                      void (*put)(struct db_statement *st, const struct settlement *s))
{
    struct db_statement values = DB_STATEMENT_INIT;
    size_t first = 0, begin = 0;
    bool alike = true;

    for (size_t i = 0; i < b->count; i++) {
        if (i)
            buf_chr(&values.sql, ',');
        begin = values.sql.len;
        put(&values, b->rows[i]);
        if (i == 0)
            first = values.sql.len;
        alike = alike && values.sql.len - begin == first &&
                !memcmp(values.sql.data, values.sql.data + begin, first);
    }
    if (b->count > 1 && alike && !values.count) { /* with long values all are "?" */
        buf_add(&st->sql, values.sql.data, first);
    } else if (b->count > 1) {
        buf_str(&st->sql, "ELT(INTERVAL(id");
        for (size_t i = 0; i < b->count; i++) {
            buf_chr(&st->sql, ',');
            buf_u64(&st->sql, b->rows[i]->id);
        }
        buf_str(&st->sql, "),");
        db_statement_add(st, &values);
        buf_chr(&st->sql, ')');
    } else {
        db_statement_add(st, &values);
    }
    db_statement_done(&values);
}

static void put_batch(struct buf *sql, const struct claim_owner *owner, const struct batch *b)
{
    struct claim_ref refs[ROWS_STEP];

    batch_refs(b, 0, refs);
    sql_put(sql, CLAIM_REF_OURS, CLAIM_REF_OF(owner, refs, b->count));
}

/* ---- results */

static bool is_event(const struct settlement *s, int event)
{
    return s->event == (enum task_event)event;
}

static bool is_recorded(const struct settlement *s, int history_all)
{
    enum task_history history = task_transition(s->event)->history;

    return history == HISTORY_OPTIONAL   ? history_all
           : history == HISTORY_IF_ERROR ? !!s->error
                                         : history == HISTORY_ALWAYS;
}

static void put_retry_time(struct db_statement *st, const struct batch *b)
{
    buf_str(&st->sql, "UTC_TIMESTAMP(3) + INTERVAL (");
    put_value(st, b, put_delay);
    buf_str(&st->sql, ") MICROSECOND");
}

/* One UPDATE for results with this event, of tasks that were added again, or of those that were
 * not: an expression for both would write each body again. */
static int settle_some(struct db *db, const struct claim_owner *owner, const struct batch *b,
                       enum task_event event, bool again, uint64_t *ret_rows, struct err *err)
{
    static const struct {
        const char *name;
        void (*put)(struct db_statement *st, const struct settlement *s);
    } columns[] = {{", execution_time = ", put_start},
                   {", exit_code = ", put_exit_code},
                   {", `signal` = ", put_signal},
                   {", error_stack = ", put_error},
                   {", output = ", put_output}};
    LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;
    LOCAL_BY(db_statement_done) struct db_statement finish = DB_STATEMENT_INIT;
    struct buf *sql = &st.sql;

    put_value(&finish, b, put_finish);
    sql_put(sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET ?",
            SQL_END_OF_RUN(event, again, finish.sql.data));
    for (size_t i = 0; i < MEM_COUNT(columns); i++) {
        buf_str(sql, columns[i].name);
        put_value(&st, b, columns[i].put);
    }
    if (task_transition(event)->due == DUE_RETRIED) {
        buf_str(sql, ", expected_time = ");
        /* what was added does not wait for a retry by which it would have expired */
        if (again) {
            buf_str(sql, "IF(expires_time <= ");
            put_retry_time(&st, b);
            buf_str(sql, ", GREATEST(again_time, UTC_TIMESTAMP(3)), ");
        }
        put_retry_time(&st, b);
        buf_str(sql, again ? ")" : "");
    }
    sql_put(sql, "? WHERE ", SQL_AGAIN_TAKEN(again));
    put_batch(sql, owner, b);
    sql_put(sql, "?", SQL_AGAIN(again));
    return db_statement_exec(db, &st, ret_rows, err);
}

/* Runs one UPDATE for the results with this event, and another if that has left some out. *again:
 * some tasks were added again, and are pending. */
static int settle_event(struct db *db, const struct claim_owner *owner, const struct batch *all,
                        enum task_event event, uint64_t *ret_rows, bool *again, struct err *err)
{
    struct batch b;
    uint64_t rows = 0;

    *ret_rows = 0;
    batch_pick(&b, all, is_event, (int)event);
    int rc = b.count ? settle_some(db, owner, &b, event, false, ret_rows, err) : 0;
    if (rc == 0 && *ret_rows < b.count)
        rc = settle_some(db, owner, &b, event, true, &rows, err);
    *ret_rows += rows;
    *again |= rows > 0;
    return rc;
}

static int record_attempts(struct db *db, const struct claim_owner *owner, const struct batch *all,
                           bool history_all, bool drop_stale, struct err *err)
{
    static void (*const columns[])(struct db_statement * st, const struct settlement *s) = {
        put_start, put_finish, put_outcome, put_exit_code, put_signal, put_error, put_output};
    LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;
    struct claim_ref refs[ROWS_STEP];
    struct batch b;

    batch_pick(&b, all, is_recorded, history_all);
    if (!b.count)
        return 0;
    batch_refs(&b, 0, refs);
    int rc = drop_stale ? attempt_store_drop_stale(db, refs, b.count, err) : 0;
    if (rc < 0)
        return rc;
    buf_str(
        &st.sql,
        "INSERT INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome, exit_code, `signal`,"
        " error_stack, output) SELECT id, version, attempt, host, pid");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        buf_chr(&st.sql, ',');
        put_value(&st, &b, columns[i]);
    }
    buf_str(&st.sql, " FROM dq_task FORCE INDEX (PRIMARY) WHERE ");
    put_batch(&st.sql, owner, &b);
    return db_statement_exec(db, &st, NULL, err);
}

#define APPLIED_COLUMNS(X) X(APPLIED_ID, "id") X(APPLIED_STATUS, "status")
enum { APPLIED_COLUMNS(COLUMNS_NAME) APPLIED_COUNT };

struct applying {
    const struct batch *b;
    const struct settlement *s;
    bool *applied;
};

/* A task that was added again is pending instead of finished. */
static bool led_to(enum task_event event, int status)
{
    enum task_status to = task_transition(event)->to;

    return status == (int)to || (status == TASK_PENDING && TASK_BIT(to) & TASK_FINISHED);
}

static void see_applied(const struct db_rows *r, void *arg)
{
    const struct applying *w = arg;

    for (size_t i = 0; i < w->b->count; i++)
        if (w->b->rows[i]->id == db_u64(r, APPLIED_ID) &&
            led_to(w->b->rows[i]->event, sql_status(r, APPLIED_STATUS)))
            w->applied[w->b->rows[i] - w->s] = true;
}

/* Sets applied[] for those of the batch that have been settled, now or by an earlier call: they
 * have our token, the next version, and the state that the event leads to. */
static int find_applied(struct db *db, const struct claim_owner *owner, const struct batch *b,
                        const struct settlement *s, bool *applied, struct err *err)
{
    struct claim_ref next[ROWS_STEP];
    struct applying applying = {b, s, applied};
    int rc = db_latest_begin(db, err);

    batch_refs(b, 1, next);
    if (rc == 0)
        rc = sql_all(db, APPLIED_COUNT, see_applied, &applying, err,
                     "SELECT ? FROM dq_task FORCE INDEX (PRIMARY) WHERE claim_token = ? AND ?",
                     SQL_PART(COLUMNS_SELECT(APPLIED_COLUMNS)), SQL_TOKEN(owner->token),
                     CLAIM_REF_THESE(next, b->count));
    db_latest_end(db);
    return rc;
}

static int settle_unrecorded(struct db *db, const struct claim_owner *owner, const struct batch *b,
                             const struct settlement *s, bool *applied, bool *again,
                             struct err *err)
{
    uint64_t rows, sum = 0;
    int rc = 0;

    for (unsigned event = 0; rc == 0 && event < TASK_EVENT_COUNT; event++) {
        rc = settle_event(db, owner, b, (enum task_event)event, &rows, again, err);
        sum += rows;
    }
    if (rc < 0)
        return rc;
    if (sum < b->count)
        return find_applied(db, owner, b, s, applied, err);
    for (size_t i = 0; i < b->count; i++)
        applied[b->rows[i] - s] = true;
    return 0;
}

/* Locks the rows first, so that exactly the rows that are recorded are changed. */
static int settle_recorded(struct db *db, const struct claim_owner *owner, const struct batch *b,
                           bool history_all, bool drop_stale, const struct settlement *s,
                           bool *applied, bool *again, struct err *err)
{
    struct claim_ref ours[ROWS_STEP];
    struct follow_up wanted[ROWS_STEP];
    size_t count = 0;
    uint64_t rows;

    int rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    batch_refs(b, 0, ours);
    rc = claim_ref_find(db, ours, b->count, &count, err, CLAIM_REF_OURS " FOR UPDATE",
                        CLAIM_REF_OF(owner, ours, b->count));
    if (rc == 0 && count)
        rc = record_attempts(db, owner, b, history_all, drop_stale, err);
    for (unsigned event = 0; rc == 0 && count && event < TASK_EVENT_COUNT; event++)
        rc = settle_event(db, owner, b, (enum task_event)event, &rows, again, err);
    for (size_t i = 0; i < b->count; i++)
        wanted[i] = (struct follow_up){b->rows[i]->id, b->rows[i]->on_failed};
    int added = rc == 0 ? follow_up_add(db, wanted, b->count, ours, count, err) : 0;
    *again |= added > 0;
    rc = db_end(db, MIN(rc, added), err);
    if (rc < 0)
        return rc;
    if (count < b->count)
        return find_applied(db, owner, b, s, applied, err);
    for (size_t i = 0; i < b->count; i++)
        applied[b->rows[i] - s] = true;
    return 0;
}

struct settling {
    struct db *db;
    const struct claim_owner *owner;
    const struct batch *all;
    const struct settlement *s;
    bool *applied;
    bool recorded, history_all;
    bool again; /* tasks are pending because they were added, or added again */
};

static int settle_rows(void *arg, const struct claim_ref *refs, const size_t *at, size_t n,
                       struct err *err)
{
    struct settling *w = arg;
    struct batch b = {.count = n};

    (void)refs;
    for (size_t i = 0; i < n; i++)
        b.rows[i] = w->all->rows[at[i]];
    if (!w->recorded)
        return settle_unrecorded(w->db, w->owner, &b, w->s, w->applied, &w->again, err);
    int rc = settle_recorded(w->db, w->owner, &b, w->history_all, false, w->s, w->applied,
                             &w->again, err);
    return rc == ERR_DUPLICATE ? settle_recorded(w->db, w->owner, &b, w->history_all, true, w->s,
                                                 w->applied, &w->again, err)
                               : rc;
}

static int attempts_locked(void *arg, struct err *err)
{
    const struct settling *w = arg;

    return w->recorded ? sql_exec(w->db, NULL, err, ROWS_PROBE_ATTEMPT) : 0;
}

static int settle_all(struct db *db, const struct claim_owner *owner, const struct settlement *s,
                      size_t count, bool history_all, size_t most, bool careful, bool *applied,
                      struct rows_faults *faults, struct err *err)
{
    struct batch b;
    struct claim_ref refs[ROWS_STEP];
    bool again = false;
    int rc = 0;

    for (enum kind kind = UNRECORDED; kind < KIND_COUNT; kind++) {
        for (size_t at = 0; rc == 0 && at < count;) {
            struct settling w = {db, owner, &b, s, applied, kind != UNRECORDED, history_all, false};
            size_t before = faults ? faults->count : 0;
            next_batch(s, count, history_all, kind, most, &at, &b);
            batch_refs(&b, 0, refs);
            rc = rows_run(
                db, &(struct rows_work){refs, b.count, &w, settle_rows, attempts_locked, 0, NULL},
                careful, faults, err);
            for (size_t i = before; faults && i < faults->count; i++)
                faults->items[i].at = (size_t)(b.rows[faults->items[i].at] - s);
            again |= w.again;
        }
    }
    return rc < 0 ? rc : again;
}

int settle_store_settle(struct db *db, const struct claim_owner *owner, const struct settlement *s,
                        size_t count, bool history_all, bool careful, bool *applied,
                        struct rows_faults *faults, struct err *err)
{
    size_t packet = 0;

    for (size_t i = 0; i < count; i++)
        applied[i] = false;
    int rc = settlement_max_packet(db, &packet, err);
    if (rc < 0)
        return rc;
    struct settlement *fit = settlement_fit(s, count, packet - STATEMENT_FIXED);
    rc = settle_all(db, owner, fit ? fit : s, count, history_all,
                    MIN(packet, SQL_STATEMENT_BYTES) - STATEMENT_FIXED, careful, applied, faults,
                    err);
    settlement_free_fit(fit, s, count);
    return rc;
}
