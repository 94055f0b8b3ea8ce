/*
 * output_store.c - the output of running attempts, in dq_output. Invariant: the row with seq 0 is
 * the mark of a follower, those with a higher one are chunks.
 */
#include "store/fleet/output_store.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/db/db_statement.h"
#include "store/row/sql.h"


#define DROP_STEP 100
/* The dqd of an attempt deletes its output itself within seconds. */
#define LEFT_AFTER_MS 30000

/* Of an attempt: two values. */
#define OF_ATTEMPT "task_id = ? AND task_version = ?"
#define ATTEMPT_VALUES(a) SQL_ID((a)->id), SQL_ID((a)->version)

int output_store_mark(struct db *db, const struct claim_ref *attempt, int64_t for_ms,
                      struct err *err)
{
    return sql_exec(db, NULL, err,
                    "INSERT INTO dq_output (task_id, task_version, seq, until_time)"
                    " VALUES (?,?,0,?) ON DUPLICATE KEY UPDATE until_time = ?",
                    ATTEMPT_VALUES(attempt), SQL_FROM_NOW(for_ms), SQL_FROM_NOW(for_ms));
}

int output_store_waits(struct db *db, const struct claim_ref *attempt, struct err *err)
{
    uint64_t count = 0;
    int rc = sql_first(
        db, COLUMNS_ONE, sql_take_u64, &count, err,
        "SELECT COUNT(*) FROM dq_output o JOIN dq_task t ON t.id = o.task_id AND t.version ="
        " o.task_version JOIN dq_task own ON own.claim_token = t.claim_token"
        " WHERE own.id = ? AND o.seq = 0 AND o." OUTPUT_STORE_FOLLOWED,
        SQL_ID(attempt->id));
    return rc < 0 ? rc : count > OUTPUT_STORE_ATTEMPTS_MOST;
}

int output_store_add(struct db *db, const struct claim_ref *attempt, const struct output_chunk *c,
                     struct err *err)
{
    LOCAL_BY(db_statement_done) struct db_statement s = DB_STATEMENT_INIT;

    sql_put(&s.sql,
            "INSERT INTO dq_output (task_id, task_version, seq, start_byte, is_last, chunk)"
            " VALUES (?,?,?,?,?,",
            ATTEMPT_VALUES(attempt), SQL_INT(c->seq), SQL_ID(c->start), SQL_INT(c->last));
    db_statement_put(&s, c->data ? c->data : "", c->size);
    buf_str(&s.sql, ") ON DUPLICATE KEY UPDATE seq = dq_output.seq");
    return db_statement_exec(db, &s, NULL, err);
}

#define CHUNK_COLUMNS(X)                                                                           \
    X(CHUNK_SEQ, "seq")                                                                            \
    X(CHUNK_START, "start_byte") X(CHUNK_LAST, "is_last") X(CHUNK_DATA, "chunk")
enum { CHUNK_COLUMNS(COLUMNS_NAME) CHUNK_COUNT };

struct reading {
    void (*fn)(const struct output_chunk *c, void *arg);
    void *arg;
};

static void take_chunk(const struct db_rows *r, void *arg)
{
    const struct reading *reading = arg;
    struct output_chunk c = {.seq = db_u32(r, CHUNK_SEQ),
                             .start = db_u64(r, CHUNK_START),
                             .last = db_u64(r, CHUNK_LAST) == 1};

    c.data = db_text(r, CHUNK_DATA, &c.size);
    if (!c.data)
        c.size = 0;
    reading->fn(&c, reading->arg);
}

int output_store_read(struct db *db, const struct claim_ref *attempt, uint32_t after,
                      void (*fn)(const struct output_chunk *c, void *arg), void *arg,
                      struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct reading reading = {fn, arg};

    sql_put(&sql, "SELECT ? FROM dq_output WHERE " OF_ATTEMPT " AND seq > ? ORDER BY seq",
            SQL_PART(COLUMNS_SELECT(CHUNK_COLUMNS)), ATTEMPT_VALUES(attempt), SQL_INT(after));
    return db_all_streamed(db, &sql, CHUNK_COUNT, take_chunk, &reading, err);
}

int output_store_trim(struct db *db, const struct claim_ref *attempt, uint64_t start,
                      struct err *err)
{
    return sql_exec(db, NULL, err,
                    "DELETE FROM dq_output WHERE " OF_ATTEMPT " AND seq > 0 AND start_byte < ?",
                    ATTEMPT_VALUES(attempt), SQL_ID(start));
}

int output_store_drop(struct db *db, const struct claim_ref *attempt, struct err *err)
{
    return sql_exec(db, NULL, err, "DELETE FROM dq_output WHERE " OF_ATTEMPT,
                    ATTEMPT_VALUES(attempt));
}

int output_store_drop_left(struct db *db, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct claim_ref left[DROP_STEP];
    size_t count = 0;

    /* the table is empty or nearly so */
    sql_put(&sql,
            "SELECT task_id, task_version FROM dq_output GROUP BY task_id, task_version"
            " HAVING MAX(until_time) IS NULL OR MAX(until_time) < ? LIMIT ?",
            SQL_FROM_NOW(-LEFT_AFTER_MS), SQL_INT(DROP_STEP));
    int rc = claim_ref_read(db, &sql, left, DROP_STEP, &count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = output_store_drop(db, &left[i], err);
    return rc;
}
