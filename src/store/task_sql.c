/*
 * task_sql.c - pieces of statements on dq_task.
 *
 * Invariant: what a transition demands and sets is derived from task_transition() here, and nowhere else.
 */
#include "store/task_sql.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

char *sql_dup(const struct db_rows *r, unsigned col, size_t *ret_len)
{
    size_t len;
    const char *p = db_text(r, col, &len);

    if (!p)
        return NULL;
    if (ret_len)
        *ret_len = len;
    return mem_dup(p, len);
}

char *sql_dup_tag(const struct db_rows *r, unsigned col)
{
    size_t len;
    const char *p = db_text(r, col, &len);

    if (!p)
        return mem_strdup("");
    char *tag = mem_dup(p, task_tag_length(p, len));
    for (size_t i = 0; i < task_tag_length(p, len); i++)
        if (!tag[i])
            tag[i] = TASK_TAG_NUL;
    return tag;
}

void sql_put_tag(struct buf *sql, const char *tag)
{
    size_t len = strlen(tag);
    const char *nul = memchr(tag, TASK_TAG_NUL, len);

    if (!nul) {
        db_put_text(sql, tag);
        return;
    }
    char *bytes = mem_dup(tag, len);
    for (size_t i = (size_t)(nul - tag); i < len; i++)
        if (bytes[i] == TASK_TAG_NUL)
            bytes[i] = '\0';
    buf_str(sql, "CONVERT(");
    db_put_bytes(sql, bytes, len);
    buf_str(sql, " USING utf8mb4)");
    free(bytes);
}

int sql_status(const struct db_rows *r, unsigned col)
{
    uint64_t status = db_u64(r, col);

    return status < TASK_STATUS_COUNT ? (int)status : TASK_STATUS_UNKNOWN;
}

int64_t sql_due(const struct db_rows *r, unsigned col)
{
    int64_t at = db_time(r, col);

    return at == TASK_TIME_NONE ? TASK_TIME_ZERO : at;
}

int sql_odd_row(const struct db *db, struct err *err)
{
    return err_set(err, ERR_FATAL, "%s: the server's answer has a row that was not asked for: is something else listening there?",
                   db_server(db));
}

void task_read(const struct db_rows *r, struct task *ret)
{
    size_t len;

    task_init(ret);
    ret->id = db_u64(r, 0);
    ret->tag = sql_dup_tag(r, 1);
    ret->key = sql_dup(r, 2, NULL);
    ret->body_size = db_is_null(r, 3) ? SIZE_MAX : (size_t)db_u64(r, 3);
    ret->status = sql_status(r, 4);
    ret->version = db_u64(r, 5);
    ret->attempt = db_u32(r, 6);
    ret->max_attempts = db_u32(r, 7);
    const char *token = db_text(r, 8, &len);
    ret->claimed = token && len == TASK_TOKEN_SIZE;
    if (ret->claimed)
        memcpy(ret->claim_token, token, TASK_TOKEN_SIZE);
    ret->host = sql_dup(r, 9, NULL);
    ret->pid = db_u32(r, 10);
    ret->lease_until_at = db_time(r, 11);
    ret->delay_ms = db_i64(r, 12, 0);
    ret->expected_at = sql_due(r, 13);
    ret->execution_at = db_time(r, 14);
    ret->finish_at = db_time(r, 15);
    ret->exit_code = db_int(r, 16, -1);
    ret->signal = db_int(r, 17, 0);
    ret->error = sql_dup(r, 18, NULL);
    ret->create_at = db_time(r, 19);
    ret->update_at = db_time(r, 20);
}

void task_read_body(const struct db_rows *r, unsigned col, struct task *t)
{
    size_t len;
    void *body = sql_dup(r, col, &len);

    if (!body)
        return;
    free(t->body);
    t->body = body;
    t->body_size = len;
}

void sql_put_ids(struct buf *sql, const char *alias, const uint64_t *ids, size_t count)
{
    buf_str(sql, alias);
    buf_str(sql, "id IN (");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_chr(sql, ',');
        buf_u64(sql, ids[i]);
    }
    buf_chr(sql, ')');
}

void sql_put_ref_ids(struct buf *sql, const char *alias, const struct claim_ref *refs, size_t count)
{
    buf_str(sql, alias);
    buf_str(sql, "id IN (");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_chr(sql, ',');
        buf_u64(sql, refs[i].id);
    }
    buf_chr(sql, ')');
}

static int compare_refs(const void *a, const void *b)
{
    const struct claim_ref *x = a, *y = b;

    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void sql_put_refs(struct buf *sql, const char *alias, const struct claim_ref *refs, size_t count)
{
    struct claim_ref *sorted = mem_dup(refs, count * sizeof *refs);

    qsort(sorted, count, sizeof *sorted, compare_refs);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || sorted[i].version != sorted[i - 1].version)
            buf_printf(sql, "%s%sversion = %" PRIu64 " AND %sid IN (", i ? ")) OR (" : "((", alias, sorted[i].version, alias);
        else
            buf_chr(sql, ',');
        buf_u64(sql, sorted[i].id);
    }
    buf_str(sql, ")))");
    free(sorted);
}

void sql_put_token(struct buf *sql, const unsigned char token[TASK_TOKEN_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    char text[2 * TASK_TOKEN_SIZE]; /* of every row of a bulk add: printf would cost more than all the rest of the row */

    for (size_t i = 0; i < TASK_TOKEN_SIZE; i++) {
        text[2 * i] = hex[token[i] >> 4];
        text[2 * i + 1] = hex[token[i] & 15];
    }
    buf_str(sql, "x'");
    buf_add(sql, text, sizeof text);
    buf_chr(sql, '\'');
}

/* Where ids come in steps (auto_increment_increment), all of them have one id % shares. So the id is multiplied by 2^32 / the
 * golden ratio, which no BIGINT UNSIGNED overflows from 32 bits, and the upper ones of the product's low 32 bits are taken. */
void sql_put_share(struct buf *sql, const char *alias, unsigned shares)
{
    buf_printf(sql, "((%sid & 4294967295) * 2654435761 >> 12 & 1048575) %% %u", alias, shares);
}

void sql_put_statuses(struct buf *sql, const char *alias, unsigned mask)
{
    const char *separator = "";

    if (mask & TASK_BIT(TASK_STATUS_UNKNOWN)) {
        buf_printf(sql, "(%sstatus >= %d OR ", alias, (int)TASK_STATUS_COUNT);
        sql_put_statuses(sql, alias, mask & ~TASK_BIT(TASK_STATUS_UNKNOWN));
        buf_chr(sql, ')');
        return;
    }
    if (!mask) {
        buf_str(sql, "FALSE");
        return;
    }
    buf_printf(sql, "%sstatus IN (", alias);
    for (unsigned s = 0; s < TASK_STATUS_COUNT; s++) {
        if (mask & TASK_BIT(s)) {
            buf_printf(sql, "%s%u", separator, s);
            separator = ",";
        }
    }
    buf_chr(sql, ')');
}

int64_t sql_now_us(const struct db_rows *r)
{
    int64_t at = db_time(r, 0);

    return at > 0 ? at * 1000 + db_i64(r, 1, 0) % 1000 : 0;
}

void sql_put_from_now(struct buf *sql, int64_t ms)
{
    buf_str(sql, "UTC_TIMESTAMP(3)");
    if (ms)
        buf_printf(sql, " + INTERVAL %" PRId64 " MICROSECOND", ms * 1000);
}

void sql_put_from(struct buf *sql, const char *alias, enum task_event event)
{
    sql_put_statuses(sql, alias, task_transition(event)->from);
}

void sql_put_transition(struct buf *sql, const char *alias, enum task_event event, const char *finish)
{
    const struct task_transition *t = task_transition(event);

    buf_printf(sql, "%sstatus = %d, %sversion = %sversion + 1, %supdate_time = UTC_TIMESTAMP(3)", alias, (int)t->to, alias, alias,
               alias);
    if (event == TASK_RETRY) /* a new ladder */
        buf_printf(sql, ", %sattempt = 0", alias);
    else if (t->attempt_change)
        buf_printf(sql, ", %sattempt = %sattempt %c 1", alias, alias, t->attempt_change > 0 ? '+' : '-');
    /* From the second time on, apart from those it was claimed with: one of them may be what kills dqd. */
    if (event == TASK_TAKE_BACK)
        buf_printf(sql,
                   ", %sexpected_time = IF(%sattempt < 2, %sexpected_time, UTC_TIMESTAMP(3) + INTERVAL FLOOR(RAND() * "
                   "LEAST(%sattempt - 1, 30)"
                   " * 1000000) MICROSECOND)",
                   alias, alias, alias, alias);
    if (t->from & TASK_FINISHED)
        buf_printf(sql, ", %slive = IF(%stask_key IS NULL, NULL, 1)", alias, alias);
    if (TASK_BIT(t->to) & TASK_FINISHED)
        buf_printf(sql, ", %slive = NULL, %sfinish_time = %s", alias, alias, finish ? finish : "UTC_TIMESTAMP(3)");
    else
        buf_printf(sql, ", %sfinish_time = NULL", alias);
    if (t->to != TASK_RUNNING)
        buf_printf(sql, ", %slease_until = NULL", alias);
}

int attempt_add_running(struct db *db, const struct claim_ref *refs, size_t count, enum task_outcome outcome, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "INSERT INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome)"
               " SELECT id, version, attempt, host, pid, execution_time, UTC_TIMESTAMP(3), '%s'"
               " FROM dq_task FORCE INDEX (PRIMARY) WHERE status = %d AND ",
               task_outcome_name((int)outcome), TASK_RUNNING);
    sql_put_refs(&sql, "", refs, count);
    int rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc;
}

int attempt_drop_stale(struct db *db, const struct claim_ref *refs, size_t count, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "DELETE FROM dq_attempt WHERE");
    for (size_t i = 0; i < count; i++)
        buf_printf(&sql, "%s (task_id = %" PRIu64 " AND version = %" PRIu64 ")", i ? " OR" : "", refs[i].id, refs[i].version);
    int rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc;
}

int sql_read_refs(struct db *db, const struct buf *sql, struct claim_ref *refs, size_t count, size_t *ret_count, struct err *err)
{
    struct db_rows *rows = NULL;
    size_t n = 0;

    int rc = db_query(db, sql, 2, false, &rows, err);
    while (rc == 0 && n < count && (rc = db_rows_next(rows, err)) == 1) {
        refs[n++] = (struct claim_ref){db_u64(rows, 0), db_u64(rows, 1)};
        rc = 0;
    }
    db_rows_free(rows);
    if (rc == 0)
        *ret_count = n;
    return rc;
}

/* id and create_time of the first task with this id or a later one: 1, 0 when there is none. */
static int task_from_id(struct db *db, uint64_t id, uint64_t *ret_id, int64_t *ret_create_at, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_printf(&sql, "SELECT id, create_time FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= %" PRIu64 " ORDER BY id LIMIT 1", id);
    int rc = db_query(db, &sql, 2, false, &rows, err);
    if (rc == 0)
        rc = db_rows_next(rows, err);
    if (rc == 1 && db_u64(rows, 0) < id) {
        rc = sql_odd_row(db, err);
    } else if (rc == 1) {
        *ret_id = db_u64(rows, 0);
        *ret_create_at = db_time(rows, 1);
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    uint64_t low = 0, high = 0, id = 0;
    int64_t create_at = 0;

    buf_str(&sql, "SELECT COALESCE(MIN(id), 0), COALESCE(MAX(id), 0) + 1 FROM dq_task");
    int rc = db_query(db, &sql, 2, false, &rows, err);
    if (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        low = db_u64(rows, 0);
        high = db_u64(rows, 1);
    }
    db_rows_free(rows);
    buf_done(&sql);
    while (rc >= 0 && low < high) {
        uint64_t middle = low + (high - low) / 2;
        rc = task_from_id(db, middle, &id, &create_at, err);
        if (rc == 1 && create_at < at)
            low = id + 1;
        else
            high = middle;
    }
    if (rc < 0)
        return rc;
    *ret_id = low;
    return 0;
}
