/*
 * attempt_store.c - the recorded attempts of tasks. Invariant: the key of a row is the task and the
 * version of its claim.
 */
#include "store/fleet/attempt_store.h"
#include "base/mem.h"
#include "store/db/db_statement.h"
#include "store/row/field.h"
#include "store/row/sql.h"

#include <inttypes.h>

#define OUTPUT_FIXED 4096 /* of a statement with an output, all but that */

#define COLUMN_ROW(...) COLUMN_UNSHOWN(task_attempt, __VA_ARGS__),
const struct column attempt_store_columns[] = {ATTEMPT_STORE_KEY(COLUMN_ROW)
                                                   ATTEMPT_STORE_COLUMNS(COLUMN_ROW)};
const size_t attempt_store_column_count =
    sizeof attempt_store_columns / sizeof attempt_store_columns[0];

static const struct field_table table = FIELD_TABLE(task_attempt, attempt_store_columns);

int attempt_store_list(struct db *db, uint64_t id, struct task_attempt **ret, size_t *ret_count,
                       struct err *err)
{
    return field_list(db, &table, ret, ret_count, err,
                      "FROM dq_attempt FORCE INDEX (PRIMARY) WHERE task_id = ? ORDER BY version",
                      SQL_ID(id));
}

struct calling {
    void (*fn)(const struct task_attempt *a, void *arg);
    void *arg;
};

static void call(const struct db_rows *r, void *arg)
{
    const struct calling *c = arg;
    struct task_attempt a = {0};

    field_read_all(r, table.columns, table.count, &a);
    c->fn(&a, c->arg);
    field_done(&table, &a, 1);
}

int attempt_store_each(struct db *db, const uint64_t *ids, size_t n,
                       void (*fn)(const struct task_attempt *a, void *arg), void *arg,
                       struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct calling calling = {fn, arg};

    buf_str(&sql, "SELECT ");
    unsigned count = field_put_names(&sql, "", table.columns, table.count);
    sql_put(&sql,
            " FROM dq_attempt FORCE INDEX (PRIMARY) WHERE task_id IN ? ORDER BY task_id, version",
            SQL_IDS(ids, n));
    return db_all_streamed(db, &sql, count, call, &calling, err);
}

void attempt_store_free(struct task_attempt *a, size_t count)
{
    field_free(&table, a, count);
}

int attempt_store_add_running(struct db *db, const struct claim_ref *refs, size_t count,
                              enum task_outcome outcome, struct err *err)
{
    return sql_exec(
        db, NULL, err,
        "INSERT INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome)"
        " SELECT id, version, attempt, host, pid, execution_time, UTC_TIMESTAMP(3), ?"
        " FROM dq_task FORCE INDEX (PRIMARY) WHERE status = ? AND ?",
        SQL_TEXT(task_outcome_name((int)outcome)), SQL_INT(TASK_RUNNING),
        CLAIM_REF_THESE(refs, count));
}

int attempt_store_add_output(struct db *db, const struct claim_ref *ref, const void *output,
                             size_t size, struct err *err)
{
    LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;
    size_t packet, most;

    int rc = db_max_packet(db, &packet, err);
    if (rc < 0)
        return rc;
    most = packet - OUTPUT_FIXED;
    if (size > most) {
        output = (const char *)output + (size - most);
        size = most;
    }
    buf_str(&st.sql, "UPDATE dq_attempt SET output = ");
    db_statement_put(&st, output, size);
    sql_put(&st.sql, " WHERE task_id = ? AND version = ? AND output IS NULL", SQL_ID(ref->id),
            SQL_ID(ref->version));
    return db_statement_exec(db, &st, NULL, err);
}

int attempt_store_drop_stale(struct db *db, const struct claim_ref *refs, size_t count,
                             struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql,
            "DELETE a FROM dq_attempt a FORCE INDEX (PRIMARY) WHERE " SQL_BY_KEY("attempt") "(");
    for (size_t i = 0; i < count; i++)
        sql_put(&sql, "?(task_id = ? AND version = ?)", SQL_PART(i ? " OR " : NULL),
                SQL_ID(refs[i].id), SQL_ID(refs[i].version));
    buf_chr(&sql, ')');
    return db_exec(db, &sql, NULL, err);
}
