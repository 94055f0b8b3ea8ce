/*
 * sql.c - parts of statements, and cells of results.
 *
 * Invariant: the conditions and assignments of a transition are derived from task_transition()
 * here, and nowhere else.
 */
#include "store/row/sql.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* ---- statements */

static void put_ids(struct buf *sql, const char *items, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        buf_chr(sql, i ? ',' : '(');
        buf_u64(sql, *(const uint64_t *)(const void *)(items + i * size));
    }
    buf_chr(sql, ')');
}

static void put_level(struct buf *sql, int64_t level)
{
    if (level == TASK_NORMAL)
        buf_str(sql, "NULL");
    else
        buf_u64(sql, sql_pending((int)level));
}

static void put_statuses(struct buf *sql, unsigned mask)
{
    const char *separator = "";

    if (mask & TASK_BIT(TASK_STATUS_UNKNOWN)) {
        buf_printf(sql, "(status >= %d OR ", SQL_STATUS_COUNT);
        put_statuses(sql, mask & ~TASK_BIT(TASK_STATUS_UNKNOWN));
        buf_chr(sql, ')');
        return;
    }
    if (!mask) {
        buf_str(sql, "FALSE");
        return;
    }
    buf_str(sql, "status IN (");
    for (unsigned s = 0; s < SQL_STATUS_COUNT; s++) {
        if (mask & TASK_BIT(sql_status_of(s))) {
            buf_printf(sql, "%s%u", separator, s);
            separator = ",";
        }
    }
    buf_chr(sql, ')');
}

static void put_transition(struct buf *sql, enum task_event event, const char *finish)
{
    const struct task_transition *t = task_transition(event);

    if (t->from & TASK_BIT(TASK_DONE)) /* while status is what it has been */
        buf_printf(sql, SQL_NEXT_RUN_IF("status = %d") ", ", TASK_DONE);
    if (t->to == TASK_PENDING)
        buf_printf(sql, "status = IF(priority " SQL_PENDING ", priority, %d)", TASK_PENDING);
    else
        buf_printf(sql, "status = %d", (int)t->to);
    buf_str(sql, ", version = version + 1, update_time = UTC_TIMESTAMP(3)");
    if (t->new_ladder)
        buf_str(sql, ", attempt = 0");
    else if (t->attempt_change)
        buf_printf(sql, ", attempt = attempt %c 1", t->attempt_change > 0 ? '+' : '-');
    if (t->due == DUE_GIVEN) /* as SQL_MOVED needs it */
        buf_str(sql, ", delay_time = 0, host = IF(execution_time IS NULL, NULL, host)");
    if (t->keeps_first)
        buf_str(sql, ", delay_time = IF(delay_time, delay_time, GREATEST(1, IFNULL(TIMESTAMPDIFF("
                     "MICROSECOND, create_time, expected_time) DIV 1000, 1)))");
    /* From the second time on, at another time than the tasks it was claimed with: one of them may
     * be what kills dqd. */
    if (t->due == DUE_APART)
        buf_str(sql, ", expected_time = IF(attempt < 2, expected_time, UTC_TIMESTAMP(3) + INTERVAL "
                     "FLOOR(RAND() * LEAST(attempt - 1, 30) * 1000000) MICROSECOND)");
    if (t->from & TASK_FINISHED)
        buf_str(sql, ", live = IF(task_key IS NULL, NULL, 1)");
    if (TASK_BIT(t->to) & TASK_FINISHED)
        buf_printf(sql, ", live = NULL, finish_time = %s", finish ? finish : "UTC_TIMESTAMP(3)");
    else
        buf_str(sql, ", finish_time = NULL");
    if (t->to != TASK_RUNNING)
        buf_str(sql, ", lease_until = NULL");
    if (t->to == TASK_CANCELLED)
        buf_str(sql, ", again_time = NULL, again_body = NULL");
}

/* Assignments are made from left to right. */
static void put_end_of_run(struct buf *sql, enum task_event event, bool again, const char *finish)
{
    bool ends = TASK_BIT(task_transition(event)->to) & TASK_FINISHED;

    put_transition(sql, again && ends ? TASK_AGAIN : event, finish);
    if (again)
        buf_printf(
            sql,
            "%s, " SQL_NEXT_RUN_IF("TRUE") ", message_body = COALESCE(again_body, ''),"
                                           " body_size = COALESCE(OCTET_LENGTH(again_body), 0)",
            ends ? ", expected_time = again_time" : "");
}

static void put_value(struct buf *sql, const struct sql_value *v)
{
    switch (v->kind) {
    case KIND_TEXT:
        db_put_text(sql, v->p);
        break;
    case KIND_TAG:
        sql_put_tag(sql, v->p);
        break;
    case KIND_TOKEN:
        sql_put_token(sql, v->p);
        break;
    case KIND_PART:
        buf_str(sql, v->p ? v->p : "");
        break;
    case KIND_TIME:
        db_put_time(sql, v->number);
        break;
    case KIND_AFTER:
        buf_str(sql, "UTC_TIMESTAMP(3)");
        if (v->number)
            buf_printf(sql, " + INTERVAL %" PRId64 " MICROSECOND", v->number * 1000);
        break;
    case KIND_INT:
        buf_printf(sql, "%" PRId64, v->number);
        break;
    case KIND_ID:
        buf_u64(sql, (uint64_t)v->number);
        break;
    case KIND_IDS:
        put_ids(sql, v->p, (size_t)v->number, v->size);
        break;
    case KIND_LIKE:
        sql_put_like(sql, v->p, strlen(v->p));
        break;
    case KIND_LEVEL:
        put_level(sql, v->number);
        break;
    case KIND_STATUSES:
        put_statuses(sql, (unsigned)v->number);
        break;
    case KIND_TRANSITION:
        put_end_of_run(sql, (enum task_event)v->number, v->size, v->p);
        break;
    case KIND_OTHER:
        v->put(sql, v->p, v->number);
        break;
    }
}

/* v[0] stands for no value: an array of none is no array. */
void sql_put_values(struct buf *sql, const char *text, const struct sql_value *v, size_t count)
{
    size_t at = 1;

    for (const char *mark; (mark = strchr(text, '?')) && at < count; text = mark + 1, at++) {
        buf_add(sql, text, (size_t)(mark - text));
        put_value(sql, &v[at]);
    }
    if (at != count || strchr(text, '?'))
        abort(); /* this statement is wrong whatever the values are */
    buf_str(sql, text);
}

int sql_exec_values(struct db *db, uint64_t *ret_rows, struct err *err, const char *text,
                    const struct sql_value *v, size_t count)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    sql_put_values(&sql, text, v, count);
    return db_exec(db, &sql, ret_rows, err);
}

int sql_one(struct db *db, const struct buf *sql, unsigned columns, db_take_row *take, void *arg,
            struct err *err)
{
    int rc = db_first(db, sql, columns, take, arg, err);

    return rc < 0 ? rc : 0;
}

int sql_ask_values(struct db *db, sql_fetch *fetch, unsigned columns, db_take_row *take, void *arg,
                   struct err *err, const char *text, const struct sql_value *v, size_t count)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    sql_put_values(&sql, text, v, count);
    return fetch(db, &sql, columns, take, arg, err);
}

/* ---- parts */

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

static char *dup_name(const char *p, size_t len)
{
    char *name = mem_dup(p, len);

    for (size_t i = 0; i < len; i++)
        if (!name[i])
            name[i] = TASK_TAG_NUL;
    return name;
}

char *sql_dup_tag(const struct db_rows *r, unsigned col)
{
    size_t len;
    const char *p = db_text(r, col, &len);

    return p ? dup_name(p, task_tag_length(p, len)) : mem_strdup("");
}

char *sql_dup_key(const struct db_rows *r, unsigned col)
{
    size_t len;
    const char *p = db_text(r, col, &len);

    return p ? dup_name(p, len) : NULL;
}

void sql_put_like(struct buf *sql, const char *glob, size_t len)
{
    BUF_LOCAL struct buf pattern = BUF_INIT;

    buf_str(&pattern, "");
    for (const char *c = glob; c < glob + len; c++) {
        if (strchr("%_!", *c))
            buf_chr(&pattern, '!');
        buf_chr(&pattern, *c == '*' ? '%' : *c == '?' ? '_' : *c);
    }
    db_put_text(sql, pattern.data);
}

void sql_put_tag(struct buf *sql, const char *tag)
{
    size_t len = strlen(tag);
    const char *nul = memchr(tag, TASK_TAG_NUL, len);

    if (!nul) {
        db_put_text(sql, tag);
        return;
    }
    MEM_LOCAL char *bytes = mem_dup(tag, len);
    for (size_t i = (size_t)(nul - tag); i < len; i++)
        if (bytes[i] == TASK_TAG_NUL)
            bytes[i] = '\0';
    buf_str(sql, "CONVERT(");
    db_put_bytes(sql, bytes, len);
    buf_str(sql, " USING utf8mb4)");
}

int sql_status_of(uint64_t value)
{
    return value < TASK_STATUS_COUNT  ? (int)value
           : value < SQL_STATUS_COUNT ? TASK_PENDING
                                      : TASK_STATUS_UNKNOWN;
}

int sql_status(const struct db_rows *r, unsigned col)
{
    return sql_status_of(db_u64(r, col));
}

_Static_assert(TASK_PENDING == 0 && TASK_STATUS_COUNT == 5 && TASK_HIGH == 1 && TASK_LOW == 2 &&
                   SQL_STATUS_COUNT == 5 + TASK_LEVELS - 1,
               "the values of status");

unsigned sql_pending(int level)
{
    return level == TASK_NORMAL ? TASK_PENDING : TASK_STATUS_COUNT - 1 + (unsigned)level;
}

enum task_level sql_level_of(uint64_t value)
{
    return value == sql_pending(TASK_HIGH)  ? TASK_HIGH
           : value == sql_pending(TASK_LOW) ? TASK_LOW
                                            : TASK_NORMAL;
}

enum task_level sql_level(const struct db_rows *r, unsigned col)
{
    return sql_level_of(db_u64(r, col));
}

void sql_read_token(const struct db_rows *r, unsigned col, unsigned char ret[TASK_TOKEN_SIZE])
{
    size_t len = 0;
    const char *token = db_text(r, col, &len);

    if (token)
        memcpy(ret, token, MIN(len, TASK_TOKEN_SIZE));
}

int64_t sql_due(const struct db_rows *r, unsigned col)
{
    int64_t at = db_time(r, col);

    return at == TASK_TIME_NONE ? TASK_TIME_ZERO : at;
}

void sql_take_u64(const struct db_rows *r, void *arg)
{
    *(uint64_t *)arg = db_u64(r, COLUMNS_ONLY);
}

void sql_take_time(const struct db_rows *r, void *arg)
{
    *(int64_t *)arg = db_time(r, COLUMNS_ONLY);
}

const struct sql_explain *sql_explain_columns(const struct db *db)
{
    static const struct sql_explain mariadb = {10, 0, 3, 5, 8, 9}, mysql = {12, 0, 4, 6, 9, 11};

    return db_is_mariadb(db) ? &mariadb : &mysql;
}

void sql_put_select_within(struct buf *sql, int64_t ms)
{
    if (ms)
        buf_printf(sql, "/*M! SET STATEMENT max_statement_time = %" PRId64 ".%03d FOR */ ",
                   ms / 1000, (int)(ms % 1000));
    buf_str(sql, "SELECT ");
    if (ms)
        buf_printf(sql, "/*+ MAX_EXECUTION_TIME(%" PRId64 ") */ ", ms);
}

void sql_put_token(struct buf *sql, const unsigned char token[TASK_TOKEN_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    /* in every row of a bulk add: printf would cost more than the rest of the row */
    char text[2 * TASK_TOKEN_SIZE];

    for (size_t i = 0; i < TASK_TOKEN_SIZE; i++) {
        text[2 * i] = hex[token[i] >> 4];
        text[2 * i + 1] = hex[token[i] & 15];
    }
    buf_str(sql, "x'");
    buf_add(sql, text, sizeof text);
    buf_chr(sql, '\'');
}

/* If ids have a step (auto_increment_increment), id % shares may be the same for all of them. So
 * the low 32 bits of the id are multiplied by 2^32 / the golden ratio, which does not overflow a
 * BIGINT UNSIGNED, and the upper 20 of the product's low 32 bits are used. */
void sql_put_share(struct buf *sql, const void *alias, int64_t shares)
{
    buf_printf(sql, "((%sid & 4294967295) * 2654435761 >> 12 & 1048575) %% %" PRId64,
               (const char *)alias, shares);
}

int64_t sql_now_us(const struct db_rows *r, unsigned col)
{
    int64_t at = db_time(r, col);

    return at > 0 ? at * 1000 + db_i64(r, col + 1, 0) % 1000 : 0;
}

void sql_put_expires(struct buf *sql, const void *columns, int64_t default_ms)
{
    const char *const *column = columns;

    if (default_ms)
        sql_put(sql, "COALESCE(?, ? + INTERVAL ? MICROSECOND)", SQL_PART(column[0]),
                SQL_PART(column[1]), SQL_INT(default_ms * 1000));
    else
        buf_str(sql, column[0]);
}

void sql_put_due_beyond(struct buf *sql, const char *alias, char beyond,
                        void (*put)(struct buf *sql, int64_t at), int64_t at, uint64_t id)
{
    buf_printf(sql, " AND (%sexpected_time %c%s ", alias, beyond, id || beyond == '<' ? "" : "=");
    put(sql, at);
    if (id) { /* two ranges of the index, whose entries end with the id */
        buf_printf(sql, " OR %sexpected_time = ", alias);
        put(sql, at);
        buf_printf(sql, " AND %sid %c %" PRIu64, alias, beyond, id);
    }
    buf_chr(sql, ')');
}
