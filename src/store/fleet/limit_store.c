/*
 * limit_store.c - see limit_store.h. Invariant: a change and its event are one transaction.
 */
#include "store/fleet/limit_store.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/row/field.h"
#include "store/row/sql.h"

#include <stdlib.h>
#include <sys/param.h>

#define COLUMN_ROW(sql, name, type, field, ...)                                                    \
    COLUMN_UNSHOWN(limit_paused, sql, name, type, info.field, __VA_ARGS__),
static const struct column columns[] = {
    COLUMN(limit_paused, "UTC_TIMESTAMP(3)", NULL, TIME, now_at, 0, 0, NULL, ""),
    COLUMN(limit_paused, "g.pattern IS NOT NULL", NULL, BOOL, glob, 0, 0, NULL, ""),
    TAG_INFO_COLUMNS(COLUMN_ROW)};
static const struct field_table table = FIELD_TABLE(limit_paused, columns);

/* Returns at least one row, which has the clock. */
int limit_store_paused(struct db *db, const char *tag, struct limit_paused **ret, size_t *ret_count,
                       struct err *err)
{
    BUF_LOCAL struct buf which = BUF_INIT;

    if (tag)
        sql_put(&which, "(g.name = ? OR (g.pattern IS NOT NULL AND ?" SQL_LIKE_GLOB "))",
                SQL_TAG(tag), SQL_TAG(tag));
    else
        buf_str(&which, "g.name NOT LIKE '" LIMIT_STORE_DQD "%'");
    return field_list(db, &table, ret, ret_count, err,
                      "FROM (SELECT 1) one LEFT JOIN dq_limit g ON " SQL_PAUSED("g.") " AND ?",
                      SQL_PART(which.data));
}

void limit_store_paused_free(struct limit_paused *p, size_t count)
{
    field_free(&table, p, count);
}

int limit_store_tag(struct db *db, const char *tag, struct tag_info *ret, struct err *err)
{
    struct limit_paused *rows = NULL;
    size_t count = 0;
    int rc = limit_store_paused(db, tag, &rows, &count, err);

    *ret = (struct tag_info){TAG_INFO_NONE};
    for (size_t i = 0; i < count; i++)
        if (rows[i].info.paused_until_at > ret->paused_until_at) {
            limit_store_tag_done(ret);
            *ret = rows[i].info;
            rows[i].info = (struct tag_info){.tag = NULL};
        }
    limit_store_paused_free(rows, count);
    return rc;
}

void limit_store_tag_done(struct tag_info *t)
{
    free(t->tag);
    free(t->paused_by);
    free(t->pause_reason);
}

/* --- limits --- */

struct limits {
    struct limit_row *rows;
    size_t count, cap;
};

static void take_limit(const struct db_rows *r, void *arg)
{
    struct limits *l = arg;

    MEM_ROOM(l->rows, l->count, l->cap);
    limit_row_read(r, &l->rows[l->count++]);
}

static int list(struct db *db, const struct buf *sql, struct limit_row **ret, size_t *ret_count,
                struct err *err)
{
    struct limits l = {0};
    int rc = db_all(db, sql, limit_row_columns, take_limit, &l, err);

    if (rc < 0) {
        limit_store_free(l.rows, l.count);
        return rc;
    }
    *ret = l.rows;
    *ret_count = l.count;
    return 0;
}

/* By two indexes, however many tags are paused. */
int limit_store_stops(struct db *db, const char *const *names, size_t count, struct limit_row **ret,
                      size_t *ret_count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT, which = BUF_INIT;

    for (size_t i = 0; i < count; i++)
        sql_put(&which, i ? ",?" : "?", SQL_TEXT(names[i]));
    limit_row_put_select(&sql, NULL);
    sql_put(&sql,
            " JOIN (SELECT name FROM dq_limit FORCE INDEX (PRIMARY) WHERE name IN (?)"
            " UNION SELECT name FROM dq_limit FORCE INDEX (pattern) WHERE pattern IS NOT NULL) n"
            " ON n.name = g.name WHERE " LIMIT_ROW_STOPS("g.") " OR g.hours IS NOT NULL",
            SQL_PART(which.data));
    return list(db, &sql, ret, ret_count, err);
}

int limit_store_list(struct db *db, const char *name, bool past, struct limit_row **ret,
                     size_t *ret_count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    limit_row_put_select(&sql, NULL);
    if (name)
        sql_put(&sql, " WHERE g.name = ?", SQL_TEXT(name));
    else
        sql_put(
            &sql,
            " WHERE (" LIMIT_ROW_STRICT("g.") "?) AND g.name NOT LIKE '" LIMIT_STORE_DQD
                                              "%' ORDER BY g.name",
            SQL_PART(past ? " OR g.update_time IS NOT NULL OR g.held_until IS NOT NULL" : NULL));
    return list(db, &sql, ret, ret_count, err);
}

void limit_store_free(struct limit_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        limit_row_done(&rows[i]);
    free(rows);
}

/* The statement and its event, in one transaction. */
static int change_tag(struct db *db, const struct buf *sql, struct event_act *act,
                      uint64_t *ret_rows, struct err *err)
{
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = db_exec(db, sql, ret_rows, err);
    if (rc == 0 && *ret_rows)
        rc = event_store_add(db, act, NULL, 0, err);
    const bool sent = rc == 0;
    rc = db_end(db, rc, err);
    if (sent && rc == ERR_LOST)
        err_set(err, rc,
                "%s; it is not known whether the tag was changed: running it again is safe",
                err->text);
    return rc;
}

int limit_store_pause(struct db *db, struct event_act *act, bool glob, int64_t until_at,
                      int64_t for_ms, const char *reason, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    uint64_t rows;

    sql_put(
        &sql,
        "INSERT INTO dq_limit (name, pattern, version, paused_until, paused_by, pause_reason, update_time)"
        " VALUES (?,?,1,?,?,?,UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE version = version + 1,"
        " pattern = VALUES(pattern), paused_until = VALUES(paused_until), paused_by = VALUES(paused_by),"
        " pause_reason = VALUES(pause_reason), update_time = VALUES(update_time)",
        SQL_TEXT(act->tag), glob ? SQL_LIKE(act->tag) : SQL_PART("NULL"),
        until_at == TASK_TIME_NONE ? SQL_FROM_NOW(for_ms) : SQL_TIME(MIN(until_at, WHEN_AT_MAX)),
        SQL_TEXT(act->actor), SQL_TEXT(reason));
    int rc = change_tag(db, &sql, act, &rows, err);
    return rc < 0 ? rc : 1;
}

int limit_store_resume(struct db *db, struct event_act *act, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    uint64_t rows = 0;

    sql_put(
        &sql,
        "UPDATE dq_limit SET version = version + 1, paused_until = NULL, paused_by = NULL, pause_reason = NULL,"
        " held_until = NULL, hold_reason = NULL, breaker = 0, update_time = UTC_TIMESTAMP(3) WHERE name = ?"
        " AND (" LIMIT_ROW_STOPS("") " OR breaker > 0)",
        SQL_TEXT(act->tag));
    int rc = change_tag(db, &sql, act, &rows, err);
    return rc < 0 ? rc : rows > 0;
}

/* An empty row says nothing: the next statement changes it. */
static int make_row(struct db *db, const char *name, struct err *err)
{
    return sql_exec(db, NULL, err,
                    "INSERT INTO dq_limit (name) VALUES (?) ON DUPLICATE KEY UPDATE name = name",
                    SQL_TEXT(name));
}

/* What --clear leaves, what is set then, and of which limit. */
static void put_set(struct buf *sql, const struct event_act *act, const struct limit_set *set)
{
    if (set->clear)
        buf_str(sql, ", running = NULL, rate = NULL, rate_period = NULL, burst = NULL,"
                     " hours = NULL, reason = NULL");
    if (set->clear && !set->rate.count) /* a new rate heeds what was reserved before */
        buf_str(sql, ", next_at = NULL, rate_full = 0");
    if (set->running >= 0)
        sql_put(sql, ", running = NULLIF(?, 0)", SQL_INT(set->running));
    if (set->rate.count)
        sql_put(sql,
                ", rate = ?, rate_period = ?, burst = ?,"
                " next_at = LEAST(next_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)",
                SQL_INT(set->rate.count), SQL_INT(set->rate.period_ms), SQL_INT(set->rate.burst),
                SQL_INT(rate_most_us(&set->rate)));
    if (set->hours)
        sql_put(sql, ", hours = ?", SQL_TEXT(set->hours));
    if (set->reason)
        sql_put(sql, ", reason = ?", SQL_TEXT(set->reason));
    sql_put(sql, ", actor = ?, update_time = UTC_TIMESTAMP(3) WHERE name = ?", SQL_TEXT(act->actor),
            SQL_TEXT(act->tag));
}

int limit_store_set(struct db *db, struct event_act *act, const struct limit_set *set,
                    struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    uint64_t rows = 0;
    bool only_clears = set->clear && set->running < 0 && !set->rate.count && !set->hours;

    if (!only_clears) {
        int rc = make_row(db, act->tag, err);
        if (rc < 0)
            return rc;
    }
    buf_str(&sql, "UPDATE dq_limit SET version = version + 1");
    put_set(&sql, act, set);
    if (only_clears)
        buf_str(&sql, " AND (running IS NOT NULL OR rate IS NOT NULL OR hours IS NOT NULL)");
    int rc = change_tag(db, &sql, act, &rows, err);
    return rc < 0 ? rc : rows > 0;
}

int limit_store_hold(struct db *db, const char *name, int64_t for_ms, const char *reason,
                     struct err *err)
{
    return sql_exec(db, NULL, err,
                    "INSERT INTO dq_limit (name, hold_time, held_until, hold_reason)"
                    " VALUES (?,UTC_TIMESTAMP(3),?,LEFT(?,255)) ON DUPLICATE KEY UPDATE"
                    " version = version + 1, hold_reason ="
                    " IF(COALESCE(held_until >= VALUES(held_until), 0), hold_reason,"
                    " VALUES(hold_reason)), held_until = GREATEST(COALESCE(held_until,"
                    " VALUES(held_until)), VALUES(held_until)), hold_time ="
                    " GREATEST(COALESCE(hold_time, VALUES(hold_time)), VALUES(hold_time))",
                    SQL_TEXT(name), SQL_FROM_NOW(for_ms), SQL_TEXT(reason));
}

/* An attempt that began before the rest has begun long before it ended. */
#define TRY_SLACK_MS 500

int limit_store_break(struct db *db, struct event_act *act, const struct limit_break *b,
                      struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    uint64_t rows = 0;
    int rc = b->start_at ? 0 : make_row(db, act->tag, err);

    buf_str(&sql, "UPDATE dq_limit SET version = version + 1, update_time = UTC_TIMESTAMP(3)");
    if (b->rest_ms)
        sql_put(
            &sql,
            ", hold_reason = LEFT(?, 255), held_until = GREATEST(COALESCE(held_until,"
            " UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3) + INTERVAL ? * (1 << LEAST(breaker, 3)) MICROSECOND),"
            " breaker = LEAST(breaker + 1, 255),"
            " hold_time = GREATEST(COALESCE(hold_time, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3))",
            SQL_TEXT(b->reason), SQL_INT(b->rest_ms * 1000));
    else
        buf_str(&sql, ", breaker = 0");
    sql_put(&sql, " WHERE name = ?", SQL_TEXT(act->tag));
    if (b->start_at)
        sql_put(&sql, " AND breaker > 0 AND COALESCE(held_until <= ?, 1)",
                SQL_TIME(b->start_at + TRY_SLACK_MS));
    else
        sql_put(&sql, " AND breaker = 0 AND version = ?", SQL_ID(b->version));
    if (rc == 0)
        rc = change_tag(db, &sql, act, &rows, err);
    return rc < 0 ? rc : rows > 0;
}
