/*
 * poller_store.c - the pollers that are alive.
 *
 * Invariant: correctness never depends on these rows; a wrong share only causes lost races.
 */
#include "store/fleet/poller_store.h"
#include "base/text.h"
#include "base/timetable.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/row/field.h"
#include "store/fleet/ahead_store.h"
#include "store/fleet/limit_store.h"
#include "store/row/sql.h"
#include "store/schema/schema.h"

#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

#define ALIVE                                                                                      \
    "(last_seen > UTC_TIMESTAMP(3) - INTERVAL (stale_after * 1000) MICROSECOND"                    \
    " AND NOT " SQL_SEEN_AHEAD ")"
/* whether dq quiet has asked it to claim nothing; two looks by the primary key */
#define QUIET_AS(name)                                                                             \
    "EXISTS (SELECT 1 FROM dq_limit g WHERE g.name = " name " AND " SQL_PAUSED("g.") ")"
#define QUIET                                                                                      \
    "(" QUIET_AS("CONCAT('" LIMIT_STORE_DQD "', host)") " OR " QUIET_AS("CONCAT('" LIMIT_STORE_DQD \
                                                                        "', host, ':', pid)") ")"
/* a pass that has ended, and is to be followed by another one */
#define EXPECTED "(COALESCE(next_pass > UTC_TIMESTAMP(3), 0) AND NOT " SQL_SEEN_AHEAD ")"
/* Those that have ended their work for us, but not all of it. Twice our token. */
#define ENDING                                                                                     \
    "(slots = 0 AND running > 0 AND token <> ? AND " POLLER_PLACE " = (SELECT " POLLER_PLACE       \
    " FROM dq_poller WHERE token = ?))"
/* Of the passes that one timer starts. Host, handlers file and tags. */
#define TIMERS "next_pass IS NOT NULL AND host = ? AND handlers_file <=> ? AND tags <=> ?"
#define LONG_GONE "(last_seen < UTC_TIMESTAMP(3) - INTERVAL 1 DAY AND NOT " EXPECTED ")"

static struct sql_value clock_value(int64_t ahead_ms)
{
    return ahead_ms == POLLER_CLOCK_NONE ? SQL_PART("NULL") : SQL_INT(ahead_ms);
}

static int say_alive(struct db *db, const struct claim_owner *owner, const struct poller_say *say,
                     struct err *err)
{
    return sql_exec(
        db, NULL, err,
        "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, lease, version, knows,"
        " tags, handlers, handlers_file, clock_ahead, tzdata)"
        " VALUES (?,?,?,?,?,?,UTC_TIMESTAMP(3),UTC_TIMESTAMP(3),?,?,?,?,?,?,?,?,?)"
        " ON DUPLICATE KEY UPDATE slots = VALUES(slots), running = VALUES(running), last_seen = UTC_TIMESTAMP(3),"
        " stale_after = VALUES(stale_after), handlers = VALUES(handlers), clock_ahead = VALUES(clock_ahead),"
        " tzdata = VALUES(tzdata)",
        SQL_TOKEN(owner->token), SQL_TEXT(owner->host), SQL_INT(owner->pid), SQL_TEXT(say->mode),
        SQL_INT(say->slots), SQL_INT(say->running), SQL_INT(say->stale_after_ms),
        SQL_INT(say->lease_ms), SQL_TEXT(PACKAGE_VERSION), SQL_INT(POLLER_KNOWS),
        SQL_TEXT(say->tags), SQL_ID(say->handlers), SQL_TEXT(say->handlers_file),
        clock_value(say->clock_ahead_ms), SQL_TEXT(timetable_zone_version()));
}

/* ERR_LOCKED, without waiting, if another session has locked our row. */
static int probe(struct db *db, const struct claim_owner *owner, struct err *err)
{
    return sql_read(db, COLUMNS_ONE, NULL, NULL, err,
                    "SELECT token FROM dq_poller WHERE token = ? FOR UPDATE NOWAIT",
                    SQL_TOKEN(owner->token));
}

/* Whether it takes the tasks that we take: not if it starts none, or serves other tags. */
#define ALIKE                                                                                      \
    "(slots > 0 AND tags <=> %s AND (handlers = 0 OR handlers >> " TEXT_OF(                        \
        POLLER_SERVES_SHIFT) " = %" PRIu64 "))"
/* The last ones get values: when the last pass began, whether it is ending beside us, our tags and
 * handlers, our token. */
/* clang-format off */
#define SHARE_COLUMNS(X)                 \
    SQL_NOW(X, SHARE_NOW)                \
    X(SHARE_COMPAT, SCHEMA_COMPAT_VALUE) \
    X(SHARE_AHEAD, SQL_SEEN_AHEAD)       \
    X(SHARE_LONGEST, SQL_LONGEST_LEASE)  \
    X(SHARE_QUIET, QUIET)                \
    X(SHARE_SLOT, "(SELECT MIN(next_slot) FROM dq_schedule)") \
    X(SHARE_SLOTS, "EXISTS (SELECT 1 FROM dq_slot)") \
    X(SHARE_OPEN, "(SELECT MAX(is_open) FROM dq_slot)") \
    X(SHARE_LIMITS, "CAST((SELECT SUM(version) FROM dq_limit) AS UNSIGNED)") \
    X(SHARE_DECIDED, AHEAD_STORE_ANY)    \
    X(SHARE_PASS, "%s")                  \
    X(SHARE_ENDING, "IF(%s, running, 0)") \
    X(SHARE_ALIKE, ALIKE)                \
    X(SHARE_ORDER, "STRCMP(token, %s)")
/* clang-format on */
enum { SHARE_COLUMNS(COLUMNS_NAME) SHARE_COUNT };

struct counting {
    struct poller_share share;
    bool ahead; /* one was last seen while the clock was ahead */
};

static void count_poller(const struct db_rows *r, void *arg)
{
    struct counting *w = arg;
    struct poller_share *found = &w->share;

    found->now_us = sql_now_us(r, SHARE_NOW);
    found->since_pass_ms = db_i64(r, SHARE_PASS, -1);
    found->schema_compat = db_int(r, SHARE_COMPAT, 0);
    found->longest_lease_ms = db_i64(r, SHARE_LONGEST, WHEN_DAY);
    found->slot_at = db_time(r, SHARE_SLOT);
    found->slots = db_u64(r, SHARE_SLOTS) == 1;
    found->open_slots = db_u64(r, SHARE_OPEN) == 1;
    found->limits = db_u64(r, SHARE_LIMITS);
    found->decided_ahead = db_u64(r, SHARE_DECIDED) == 1;
    const bool own = db_i64(r, SHARE_ORDER, 1) == 0;
    if (own)
        found->quiet = db_u64(r, SHARE_QUIET) == 1;
    if (db_u64(r, SHARE_AHEAD) == 1) {
        w->ahead = true;
        return;
    }
    found->alive++;
    found->ending += db_u64(r, SHARE_ENDING);
    if (!own && (db_u64(r, SHARE_QUIET) == 1 || db_u64(r, SHARE_ALIKE) != 1))
        return;
    found->share += db_i64(r, SHARE_ORDER, 0) < 0;
    found->shares++;
}

/* The columns of a poller's share, all of which every live poller's row has. */
static void put_share_columns(struct buf *sql, const struct claim_owner *owner,
                              const struct poller_say *say)
{
    BUF_LOCAL struct buf pass = BUF_INIT, token = BUF_INIT, tags = BUF_INIT, ending = BUF_INIT;

    sql_put(&ending, ENDING, SQL_TOKEN(owner->token), SQL_TOKEN(owner->token));
    sql_put_token(&token, owner->token);
    sql_put(&tags, "?", SQL_TEXT(say->tags));
    buf_str(&pass, say->passes ? "" : "NULL");
    if (say->passes)
        sql_put(&pass,
                "(SELECT TIMESTAMPDIFF(MICROSECOND, MAX(start_time), UTC_TIMESTAMP(3)) DIV 1000"
                " FROM dq_poller WHERE " TIMERS ")",
                SQL_TEXT(owner->host), SQL_TEXT(say->handlers_file), SQL_TEXT(say->tags));
    buf_printf(sql, COLUMNS_SELECT(SHARE_COLUMNS), pass.data, ending.data, tags.data,
               say->serves >> POLLER_SERVES_SHIFT, token.data);
}

/* Counts as seen now: a live one says so itself soon, and a dead one is found to be silent. */
static int correct(struct db *db, struct err *err)
{
    int rc = sql_exec(
        db, NULL, err,
        "UPDATE dq_poller SET start_time = LEAST(start_time, UTC_TIMESTAMP(3)), next_pass = UTC_TIMESTAMP(3)"
        " + INTERVAL TIMESTAMPDIFF(MICROSECOND, last_seen, next_pass) MICROSECOND,"
        " last_seen = UTC_TIMESTAMP(3) WHERE " SQL_SEEN_AHEAD);

    return rc == ERR_LOCKED ? 0 : rc; /* with the next heartbeat */
}

int poller_store_beat(struct db *db, const struct claim_owner *owner, const struct poller_say *say,
                      struct poller_share *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct counting found = {.share = {.since_pass_ms = -1, .slot_at = TASK_TIME_NONE}};

    int rc = say->careful && db_skips_locked(db) ? probe(db, owner, err) : 0;
    if (rc == 0)
        rc = say_alive(db, owner, say, err);
    if (rc == ERR_LOCKED) {
        found.share.unheard = true;
        rc = 0;
    }
    buf_str(&sql, "SELECT ");
    put_share_columns(&sql, owner, say);
    /* our own row, too, if it could not be written: we are alive */
    sql_put(&sql, " FROM dq_poller WHERE " ALIVE " OR " SQL_SEEN_AHEAD " OR token = ?",
            SQL_TOKEN(owner->token));
    if (rc == 0)
        rc = db_all(db, &sql, SHARE_COUNT, count_poller, &found, err);
    if (rc == 0 && found.ahead)
        rc = correct(db, err);
    found.share.shares = MAX(found.share.shares, 1); /* our own row may be locked, and ahead */
    if (rc == 0)
        *ret = found.share;
    return rc;
}

#define TASKS(sql, type, field) COLUMN(poller_tasks, sql, NULL, type, field, 0, 0, NULL, NULL)
static const struct column tasks_columns[] = {TASKS("tag", TAG, tag), TASKS("dqd", TOKEN, token),
                                              TASKS("COUNT(*)", U64, tasks),
                                              TASKS("SUM(part)", U64, part)};
static const struct field_table tasks_table = FIELD_TABLE(poller_tasks, tasks_columns);

int poller_store_tasks(struct db *db, bool by_dqd, const char *part, const char *of,
                       struct poller_tasks **ret, size_t *ret_count, struct err *err)
{
    return field_list(db, &tasks_table, ret, ret_count, err,
                      "FROM (SELECT tag, ? dqd, ? part FROM dq_task FORCE INDEX (due)"
                      " WHERE status = ? ?) r GROUP BY tag, dqd",
                      SQL_PART(by_dqd ? "claim_token" : "NULL"), SQL_PART(part),
                      SQL_INT(TASK_RUNNING), SQL_PART(of));
}

void poller_store_tasks_free(struct poller_tasks *t, size_t count)
{
    field_free(&tasks_table, t, count);
}

int poller_store_ending(struct db *db, const struct claim_owner *owner, struct poller_tasks **ret,
                        size_t *ret_count, struct err *err)
{
    BUF_LOCAL struct buf of = BUF_INIT;

    sql_put(&of, "AND claim_token IN (SELECT token FROM dq_poller WHERE " ALIVE " AND " ENDING ")",
            SQL_TOKEN(owner->token), SQL_TOKEN(owner->token));
    return poller_store_tasks(db, false, "0", of.data, ret, ret_count, err);
}

int poller_store_leave(struct db *db, const struct claim_owner *owner, struct err *err)
{
    int rc =
        sql_exec(db, NULL, err, "DELETE FROM dq_poller WHERE token = ?", SQL_TOKEN(owner->token));

    if (rc == 0)
        rc = sql_exec(db, NULL, err, "DELETE FROM dq_poller WHERE " LONG_GONE);
    return rc;
}

/* Resident dqds that serve what our pass has served. Our host, handlers file and tags. The server
 * reads the table that it updates in a derived one only. */
#define BESIDE                                                                                     \
    "(SELECT n FROM (SELECT COUNT(*) AS n FROM dq_poller WHERE mode = 'resident' AND host = ?"     \
    " AND handlers_file <=> ? AND (tags IS NULL OR tags <=> ?) AND " ALIVE ") beside)"

/* With stale_after 0 it has no share any more, for any dqd. */
int poller_store_pass_ended(struct db *db, const struct claim_owner *owner,
                            const struct poller_say *say, int64_t next_ms, struct err *err)
{
    int rc = sql_exec(db, NULL, err,
                      "UPDATE dq_poller SET slots = ?, running = 0, stale_after = 0,"
                      " last_seen = UTC_TIMESTAMP(3), next_pass = IF(" BESIDE " > 0, NULL, ?),"
                      " clock_ahead = ? WHERE token = ?",
                      SQL_INT(say->slots), SQL_TEXT(owner->host), SQL_TEXT(say->handlers_file),
                      SQL_TEXT(say->tags), SQL_FROM_NOW(next_ms), clock_value(say->clock_ahead_ms),
                      SQL_TOKEN(owner->token));

    if (rc == 0)
        rc = sql_exec(db, NULL, err,
                      "DELETE FROM dq_poller WHERE " LONG_GONE
                      " OR (next_pass IS NULL AND token = ?)"
                      " OR (" TIMERS " AND token <> ?)",
                      SQL_TOKEN(owner->token), SQL_TEXT(owner->host), SQL_TEXT(say->handlers_file),
                      SQL_TEXT(say->tags), SQL_TOKEN(owner->token));
    return rc;
}

#define SILENT_MS "GREATEST(TIMESTAMPDIFF(MICROSECOND, last_seen, UTC_TIMESTAMP(3)), 0) DIV 1000"
#define LIVES "(" ALIVE ") OR " EXPECTED
#define COLUMN_ROW(...) COLUMN_UNSHOWN(poller_info, __VA_ARGS__),
static const struct column columns[] = {POLLER_STORE_COLUMNS(COLUMN_ROW)
                                            POLLER_STORE_MORE(COLUMN_ROW)};
static const struct field_table table = FIELD_TABLE(poller_info, columns);

int poller_store_list(struct db *db, struct poller_info **ret, size_t *ret_count, struct err *err)
{
    return field_list(db, &table, ret, ret_count, err, "FROM dq_poller ORDER BY host, pid, token");
}

/* clang-format off */
#define OLD_COLUMNS(X)      \
    X(OLD_HOST, "host")     \
    X(OLD_PID, "pid")       \
    X(OLD_VERSION, "version")
/* clang-format on */
enum { OLD_COLUMNS(COLUMNS_NAME) OLD_COUNT };

static void take_old(const struct db_rows *r, void *arg)
{
    err_set(arg, ERR_CONFIG,
            "dqd %s/%" PRIu64 " of version %s is too old for that: replace it first",
            db_string(r, OLD_HOST), db_u64(r, OLD_PID), db_string(r, OLD_VERSION));
}

int poller_store_check_knows(struct db *db, int what, struct err *err)
{
    int rc = sql_first(db, OLD_COUNT, take_old, err, err,
                       "SELECT ? FROM dq_poller WHERE knows < ? AND (" LIVES ") LIMIT 1",
                       SQL_PART(COLUMNS_SELECT(OLD_COLUMNS)), SQL_INT(what));
    return rc == 1 ? ERR_CONFIG : rc;
}

bool poller_store_is_between(const struct poller_info *p)
{
    return p->alive && p->next_pass_at != TASK_TIME_NONE;
}

bool poller_store_is_silent(const struct poller_info *p)
{
    return !p->alive && !p->ahead && strcmp(p->mode, "resident") == 0;
}

void poller_store_free(struct poller_info *p, size_t count)
{
    field_free(&table, p, count);
}
