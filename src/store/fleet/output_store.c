/*
 * output_store.c - the output of running attempts, in dq_output. Invariant: the row with seq 0 is
 * the mark of a follower, those with a higher one are chunks.
 */
#include "store/fleet/output_store.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/db/db_statement.h"
#include "store/row/sql.h"

#include <inttypes.h>

#define DROP_STEP 100
/* The dqd of an attempt deletes its output itself within seconds. */
#define LEFT_AFTER_MS 30000

static void put_attempt(struct buf *sql, const struct claim_ref *a)
{
    buf_printf(sql, "task_id = %" PRIu64 " AND task_version = %" PRIu64, a->id, a->version);
}

int output_store_mark(struct db *db, const struct claim_ref *attempt, int64_t for_ms,
                      struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "INSERT INTO dq_output (task_id, task_version, seq, until_time) VALUES (%" PRIu64
               ",%" PRIu64 ",0,",
               attempt->id, attempt->version);
    sql_put_from_now(&sql, for_ms);
    buf_str(&sql, ") ON DUPLICATE KEY UPDATE until_time = ");
    sql_put_from_now(&sql, for_ms);
    return db_exec(db, &sql, NULL, err);
}

int output_store_waits(struct db *db, const struct claim_ref *attempt, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    uint64_t count = 0;

    buf_printf(&sql,
               "SELECT COUNT(*) FROM dq_output o JOIN dq_task t ON t.id = o.task_id AND t.version ="
               " o.task_version JOIN dq_task own ON own.claim_token = t.claim_token"
               " WHERE own.id = %" PRIu64 " AND o.seq = 0 AND o." OUTPUT_STORE_FOLLOWED,
               attempt->id);
    int rc = db_first(db, &sql, COLUMNS_ONE, sql_take_u64, &count, err);
    return rc < 0 ? rc : count > OUTPUT_STORE_ATTEMPTS_MOST;
}

int output_store_add(struct db *db, const struct claim_ref *attempt, const struct output_chunk *c,
                     struct err *err)
{
    LOCAL_BY(db_statement_done) struct db_statement s = DB_STATEMENT_INIT;

    buf_printf(&s.sql,
               "INSERT INTO dq_output (task_id, task_version, seq, start_byte, is_last, chunk)"
               " VALUES (%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",%d,",
               attempt->id, attempt->version, c->seq, c->start, c->last);
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

    buf_printf(&sql, "SELECT %s FROM dq_output WHERE ", COLUMNS_SELECT(CHUNK_COLUMNS));
    put_attempt(&sql, attempt);
    buf_printf(&sql, " AND seq > %" PRIu32 " ORDER BY seq", after);
    return db_all_streamed(db, &sql, CHUNK_COUNT, take_chunk, &reading, err);
}

int output_store_trim(struct db *db, const struct claim_ref *attempt, uint64_t start,
                      struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "DELETE FROM dq_output WHERE ");
    put_attempt(&sql, attempt);
    buf_printf(&sql, " AND seq > 0 AND start_byte < %" PRIu64, start);
    return db_exec(db, &sql, NULL, err);
}

int output_store_drop(struct db *db, const struct claim_ref *attempt, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "DELETE FROM dq_output WHERE ");
    put_attempt(&sql, attempt);
    return db_exec(db, &sql, NULL, err);
}

int output_store_drop_left(struct db *db, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct claim_ref left[DROP_STEP];
    size_t count = 0;

    /* the table is empty or nearly so */
    buf_str(&sql, "SELECT task_id, task_version FROM dq_output GROUP BY task_id, task_version"
                  " HAVING MAX(until_time) IS NULL OR MAX(until_time) < ");
    sql_put_from_now(&sql, -LEFT_AFTER_MS);
    buf_printf(&sql, " LIMIT %d", DROP_STEP);
    int rc = claim_ref_read(db, &sql, left, DROP_STEP, &count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = output_store_drop(db, &left[i], err);
    return rc;
}
