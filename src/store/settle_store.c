/*
 * settle_store.c - how attempts end: results of our own, and leases of others that ended.
 *
 * Values differ from row to row, so a statement joins dq_task with a table of them: `UPDATE (SELECT ... UNION ALL ...) v STRAIGHT_JOIN
 * dq_task t ...`, one round trip for some hundred rows, each found by primary key.
 * Invariant: a row changes only while it is running, at the version of the claim, and (for results) carries our token; the token stays
 * in the row, so that what a broken connection left behind can be told: our token at version + 1 means that it was applied.
 */
#include "base/mem.h"
#include "store/claim_store.h"
#include "store/task_sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENT_BYTES (1u << 20)
#define ERROR_BYTES 60000 /* error_stack is a TEXT */

/* Results that go into one statement or one transaction. */
struct batch {
    const struct settlement *s;
    size_t index[TASK_STEP]; /* into s */
    struct claim_ref refs[TASK_STEP];
    size_t count, bytes;
};

static void put_error(struct buf *sql, const char *error)
{
    char *cut = NULL;

    if (error && strlen(error) > ERROR_BYTES) {
        cut = mem_dup(error, ERROR_BYTES);
        for (size_t n = ERROR_BYTES; n > ERROR_BYTES - 4 && ((unsigned char)cut[n - 1] & 0xc0) == 0x80; n--)
            cut[n - 1] = '\0';
    }
    db_put_text(sql, cut ? cut : error);
    free(cut);
}

static void put_number_or_null(struct buf *sql, int number, int none)
{
    if (number == none)
        buf_str(sql, "NULL");
    else
        buf_printf(sql, "%d", number);
}

/* The table v of the rows of one event (or of all), and its join: `(SELECT ...) v STRAIGHT_JOIN dq_task t ... ON ...`. */
static size_t put_values(struct buf *sql, const struct batch *b, const struct claim_owner *owner, bool (*pick)(const struct settlement *, int), int arg)
{
    size_t n = 0;

    for (size_t i = 0; i < b->count; i++) {
        const struct settlement *s = &b->s[b->index[i]];
        if (!pick(s, arg))
            continue;
        if (n++ == 0) {
            buf_str(sql, "(SELECT 0 AS id, 0 AS version, NULL AS start, NULL AS finish, NULL AS delay, '' AS outcome, NULL AS exit_code,"
                         " NULL AS sig, NULL AS error, NULL AS output");
        }
        buf_printf(sql, " UNION ALL SELECT %" PRIu64 ",%" PRIu64 ",", s->id, s->version);
        db_put_time(sql, s->start_at);
        buf_chr(sql, ',');
        db_put_time(sql, s->finish_at);
        buf_printf(sql, ",%" PRId64 ",'%s',", s->retry_delay_ms * 1000, task_outcome_name((int)s->outcome));
        put_number_or_null(sql, s->exit_code, -1);
        buf_chr(sql, ',');
        put_number_or_null(sql, s->signal, 0);
        buf_chr(sql, ',');
        put_error(sql, s->error);
        buf_chr(sql, ',');
        db_put_bytes(sql, s->output, s->output_size);
    }
    if (n) {
        buf_printf(sql,
                   ") v STRAIGHT_JOIN dq_task t FORCE INDEX (PRIMARY) ON t.id = v.id AND t.version = v.version AND t.status = %d"
                   " AND t.claim_token = ",
                   TASK_RUNNING);
        sql_put_token(sql, owner->token);
    }
    return n;
}

static bool pick_event(const struct settlement *s, int event)
{
    return s->event == (enum task_event)event;
}

/* Which attempts are recorded: all that did not succeed, but for tasks given back unstarted without a complaint. */
static bool pick_recorded(const struct settlement *s, int history_all)
{
    if (s->event == TASK_SUCCEED)
        return history_all;
    return s->event != TASK_RELEASE || s->error;
}

/* One UPDATE for the rows of an event. */
static int settle_event(struct db *db, const struct claim_owner *owner, const struct batch *b, enum task_event event, uint64_t *ret_rows,
                        struct err *err)
{
    struct buf sql = BUF_INIT;
    int rc = 0;

    *ret_rows = 0;
    buf_str(&sql, "UPDATE ");
    if (put_values(&sql, b, owner, pick_event, (int)event)) {
        buf_str(&sql, " SET ");
        sql_put_transition(&sql, "t.", event, "COALESCE(v.finish, UTC_TIMESTAMP(3))");
        buf_printf(&sql, ", t.execution_time = %s, t.exit_code = v.exit_code, t.`signal` = v.sig, t.error_stack = v.error, t.output = v.output",
                   event == TASK_RELEASE ? "NULL" : "COALESCE(v.start, t.execution_time)");
        if (event == TASK_TRY_LATER)
            buf_str(&sql, ", t.expected_time = UTC_TIMESTAMP(3) + INTERVAL v.delay MICROSECOND");
        rc = db_exec(db, &sql, ret_rows, err);
    }
    buf_done(&sql);
    return rc;
}

static int record_attempts(struct db *db, const struct claim_owner *owner, const struct batch *b, bool history_all, struct err *err)
{
    struct buf sql = BUF_INIT;
    int rc = 0;

    buf_str(&sql, "INSERT INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome, exit_code, `signal`,"
                  " error_stack, output) SELECT t.id, t.version, t.attempt, t.host, t.pid, v.start, COALESCE(v.finish, UTC_TIMESTAMP(3)),"
                  " v.outcome, v.exit_code, v.sig, v.error, v.output FROM ");
    if (put_values(&sql, b, owner, pick_recorded, history_all))
        rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc;
}

/* Those of the batch that an earlier call has already settled: our token, one version on, in the state that the event leads to. */
static int find_applied(struct db *db, const struct claim_owner *owner, const struct batch *b, bool *applied, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    struct claim_ref next[TASK_STEP];

    for (size_t i = 0; i < b->count; i++)
        next[i] = (struct claim_ref){b->refs[i].id, b->refs[i].version + 1};
    buf_str(&sql, "SELECT id, version, status FROM dq_task FORCE INDEX (PRIMARY) WHERE claim_token = ");
    sql_put_token(&sql, owner->token);
    buf_str(&sql, " AND ");
    sql_put_refs(&sql, "", next, b->count);
    int rc = db_query(db, &sql, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        for (size_t i = 0; i < b->count; i++) {
            const struct settlement *s = &b->s[b->index[i]];
            if (next[i].id == db_u64(rows, 0) && next[i].version == db_u64(rows, 1) &&
                task_transition(s->event)->to == (enum task_status)db_u64(rows, 2))
                applied[b->index[i]] = true;
        }
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

static int settle_successes(struct db *db, const struct claim_owner *owner, const struct batch *b, bool *applied, struct err *err)
{
    uint64_t rows;

    int rc = settle_event(db, owner, b, TASK_SUCCEED, &rows, err);
    if (rc < 0)
        return rc;
    if (rows < b->count)
        return find_applied(db, owner, b, applied, err);
    for (size_t i = 0; i < b->count; i++)
        applied[b->index[i]] = true;
    return 0;
}

/* The rows are locked first, so that what is recorded is what is changed. */
static int settle_recorded(struct db *db, const struct claim_owner *owner, const struct batch *b, bool history_all, bool *applied, struct err *err)
{
    static const enum task_event events[] = {TASK_SUCCEED, TASK_TRY_LATER, TASK_GIVE_UP, TASK_RELEASE, TASK_TAKE_BACK};
    struct buf sql = BUF_INIT;
    struct claim_ref ours[TASK_STEP];
    size_t count = 0;
    uint64_t rows;

    int rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    buf_printf(&sql, "SELECT id, version FROM dq_task FORCE INDEX (PRIMARY) WHERE status = %d AND claim_token = ", TASK_RUNNING);
    sql_put_token(&sql, owner->token);
    buf_str(&sql, " AND ");
    sql_put_refs(&sql, "", b->refs, b->count);
    buf_str(&sql, " FOR UPDATE");
    rc = sql_read_refs(db, &sql, ours, b->count, &count, err);
    buf_done(&sql);
    if (rc == 0 && count)
        rc = record_attempts(db, owner, b, history_all, err);
    for (size_t e = 0; rc == 0 && count && e < sizeof events / sizeof *events; e++)
        rc = settle_event(db, owner, b, events[e], &rows, err);
    if (rc == 0)
        rc = db_commit(db, err);
    if (rc < 0) {
        db_rollback(db);
        return rc;
    }
    return find_applied(db, owner, b, applied, err);
}

/* The next results of one kind, as many as fit into a statement. */
static void next_batch(const struct settlement *s, size_t count, bool history_all, bool recorded, size_t *at, struct batch *b)
{
    b->s = s;
    b->count = b->bytes = 0;
    for (; *at < count && b->count < TASK_STEP; ++*at) {
        const struct settlement *x = &s[*at];
        if ((x->event != TASK_SUCCEED || history_all) != recorded)
            continue;
        size_t bytes = x->output_size + (x->error ? strlen(x->error) : 0);
        if (b->count && b->bytes + bytes > STATEMENT_BYTES)
            return;
        b->index[b->count] = *at;
        b->refs[b->count++] = (struct claim_ref){x->id, x->version};
        b->bytes += bytes;
    }
}

int claim_store_settle(struct db *db, const struct claim_owner *owner, const struct settlement *s, size_t count, bool history_all, bool *applied,
                       struct err *err)
{
    struct batch b;
    int rc = 0;

    for (size_t i = 0; i < count; i++)
        applied[i] = false;
    for (int recorded = 0; recorded <= 1; recorded++) {
        for (size_t at = 0; rc == 0 && at < count;) {
            next_batch(s, count, history_all, recorded, &at, &b);
            if (!b.count)
                break;
            rc = recorded ? settle_recorded(db, owner, &b, history_all, applied, err) : settle_successes(db, owner, &b, applied, err);
        }
    }
    return rc;
}

/* ---- leases of others that ended */

/* claim_token goes, so that the former owner cannot take this for a result of his own. */
static int take_event(struct db *db, enum task_event event, const struct claim_ref *refs, size_t n, uint64_t *ret_rows, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET ");
    sql_put_transition(&sql, "", event, NULL);
    buf_printf(&sql, ", claim_token = NULL, error_stack = '%s' WHERE ",
               "the lease ended: its owner stopped renewing (crashed, frozen or cut off from the database)");
    sql_put_from(&sql, "", event);
    buf_str(&sql, " AND lease_until < UTC_TIMESTAMP(3) AND ");
    sql_put_refs(&sql, "", refs, n);
    int rc = db_exec(db, &sql, ret_rows, err);
    buf_done(&sql);
    return rc;
}

static int take_back_step(struct db *db, enum task_event event, const struct claim_ref *refs, size_t n, size_t *ret_taken, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct claim_ref ended[TASK_STEP];
    size_t count = 0;
    uint64_t rows = 0;

    int rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    buf_str(&sql, "SELECT id, version FROM dq_task FORCE INDEX (PRIMARY) WHERE ");
    sql_put_from(&sql, "", event);
    buf_str(&sql, " AND lease_until < UTC_TIMESTAMP(3) AND ");
    sql_put_refs(&sql, "", refs, n);
    buf_str(&sql, " FOR UPDATE");
    rc = sql_read_refs(db, &sql, ended, n, &count, err);
    if (rc == 0 && count)
        rc = attempt_add_running(db, ended, count, OUTCOME_LEASE_EXPIRED, err);
    if (rc == 0 && count)
        rc = take_event(db, event, ended, count, &rows, err);
    if (rc == 0)
        rc = db_commit(db, err);
    if (rc < 0)
        db_rollback(db);
    else
        *ret_taken += (size_t)rows;
    buf_done(&sql);
    return rc;
}

int claim_store_take_back(struct db *db, const struct task_list *expired, const bool *give_up, size_t *ret_taken, struct err *err)
{
    struct claim_ref refs[TASK_STEP];
    int rc = 0;

    *ret_taken = 0;
    for (int failed = 0; failed <= 1; failed++) {
        for (size_t i = 0, n = 0; rc == 0 && i < expired->count; i++) {
            if (give_up[i] == (failed == 1))
                refs[n++] = (struct claim_ref){expired->items[i].id, expired->items[i].version};
            if (n && (n == TASK_STEP || i + 1 == expired->count)) {
                rc = take_back_step(db, failed ? TASK_GIVE_UP : TASK_TAKE_BACK, refs, n, ret_taken, err);
                n = 0;
            }
        }
    }
    return rc;
}
