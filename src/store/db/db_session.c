/*
 * db_session.c - the settings of every session, whatever the server's configuration, its
 * init_connect and the operator's init_command set.
 *
 * Invariant: a new session has each of the settings below, and no transaction open. Setting them
 * takes one statement.
 */
#include "store/db/db_session.h"
#include "base/buf.h"
#include "base/when.h"
#include "store/db/db_error.h"
#include "store/db/db_handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An application that locks rows tends to do it again within the minute. */
#define WARY_MS 60000

enum servers { ALL, ON_MARIADB, ON_MYSQL, OLD_NAMES, NEW_NAMES };

static unsigned lock_wait(const struct db *db)
{
    unsigned s = db->lock_wait_s;
    return s || db->mariadb ? s : 1; /* MySQL's minimum */
}

static unsigned table_wait(const struct db *db)
{
    return db->table_wait_s ? db->table_wait_s : 1;
}

static unsigned idle(const struct db *db)
{
    return db->idle_s;
}

static unsigned idle_within(const struct db *db)
{
    return db->idle_s < 30 ? db->idle_s : 30;
}

#define NAMES "SET NAMES utf8mb4 COLLATE utf8mb4_bin"
#define ER_NO_RIGHT 1227
#define NO_LIMIT "18446744073709551615"
#define IDENTITY(of) "(CRC32(" of ") & 2147483647) << 32 | CONNECTION_ID()"

/* Settings that a server's configuration, init_connect or init_command may change, and that could
 * make a statement of the store fail, return something else, or not be committed. DEFAULT would
 * mean the server's own value, except for timestamp. */
static const struct setting {
    enum servers servers;
    const char *name, *value;
    unsigned (*seconds)(const struct db *db); /* instead of value */
} settings[] = {
    /* clang-format off */
    {ALL, "sql_mode", "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'", NULL},
    {ALL, "autocommit", "1", NULL},
    {ALL, "completion_type", "0", NULL}, /* CHAIN begins a transaction at every COMMIT */
    {OLD_NAMES, "tx_isolation", "'READ-COMMITTED'", NULL},
    {NEW_NAMES, "transaction_isolation", "'READ-COMMITTED'", NULL},
    {OLD_NAMES, "tx_read_only", "0", NULL},
    {NEW_NAMES, "transaction_read_only", "0", NULL},
    {ALL, "unique_checks", "1", NULL},
    {ALL, "sql_safe_updates", "0", NULL},
    {ALL, "sql_auto_is_null", "0", NULL}, /* id IS NULL would find the last row that was added */
    {ALL, "sql_select_limit", NO_LIMIT, NULL},
    {ALL, "max_join_size", NO_LIMIT, NULL}, /* and with it sql_big_selects */
    {ALL, "group_concat_max_len", "1048576", NULL},
    {ALL, "lc_messages", "'en_US'", NULL},         /* db_duplicates reads a message */
    {ALL, "timestamp", "DEFAULT", NULL},           /* lets the clock run; secure_timestamp allows this value */
    {ON_MARIADB, "max_statement_time", "0", NULL}, /* read_timeout is the limit */
    {ON_MYSQL, "max_execution_time", "0", NULL},
    {ALL, "innodb_lock_wait_timeout", NULL, lock_wait},
    {ALL, "lock_wait_timeout", NULL, table_wait},
    {ALL, "wait_timeout", NULL, idle},
    {ALL, "net_write_timeout", NULL, idle},
    {ALL, "net_read_timeout", NULL, idle_within},
    {ON_MARIADB, "idle_transaction_timeout", NULL, idle_within},
    /* These return who the server is with the answer: see note_identity. */
    {ALL, "session_track_system_variables", "'last_insert_id'", NULL},
    {ON_MARIADB, "last_insert_id", IDENTITY("CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@socket)"), NULL},
    {ON_MYSQL, "last_insert_id", IDENTITY("@@server_uuid"), NULL},
    /* clang-format on */
};

#define SETTING_COUNT (sizeof settings / sizeof *settings)

static bool has(const struct db *db, const struct setting *s)
{
    bool new_names = db->version >= (db->mariadb ? 110101u : 80000u);

    switch (s->servers) {
    case ALL:
        return true;
    case ON_MARIADB:
        return db->mariadb;
    case ON_MYSQL:
        return !db->mariadb;
    case OLD_NAMES:
        return !new_names;
    case NEW_NAMES:
        return new_names;
    }
    return false;
}

static void put_setting(struct buf *sql, const struct db *db, const struct setting *s)
{
    buf_printf(sql, "%s = ", s->name);
    if (s->value)
        buf_str(sql, s->value);
    else
        buf_u64(sql, s->seconds(db));
}

/* Learns which server has answered, without a statement of its own: the answer to the settings has
 * the value of last_insert_id. The server numbers its connections; if it gave this one another id
 * than we were told, something on the way has connections of its own, and who the server is may
 * change from statement to statement. */
static void note_identity(struct db *db)
{
    const enum enum_session_state_type changed = SESSION_TRACK_SYSTEM_VARIABLES;
    const char *text;
    char last[24] = "", digits[24];
    size_t len;

    /* names and values in turn */
    for (int end = mysql_session_track_get_first(db->my, changed, &text, &len); !end;
         end = mysql_session_track_get_next(db->my, changed, &text, &len)) {
        snprintf(digits, sizeof digits, "%.*s", (int)len, text);
        const uint64_t value = strcmp(last, "last_insert_id") ? 0 : strtoull(digits, NULL, 10);
        if (value && (value & UINT32_MAX) == mysql_thread_id(db->my))
            db->identity = (uint32_t)(value >> 32);
        memcpy(last, digits, sizeof last);
    }
}

/* Sends all of them in one statement. Returns whether that worked. */
static bool set_all(struct db *db)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, NAMES);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (has(db, &settings[i])) {
            buf_str(&sql, ", SESSION ");
            put_setting(&sql, db, &settings[i]);
        }
    }
    db->sent_at = when_steady();
    db->identity = 0;
    int failed = mysql_real_query(db->my, sql.data, sql.len);
    if (!failed)
        note_identity(db);
    return !failed;
}

/* The error of a statement of set_singly: of the connection, or of a setting, which it names. */
static int refused(struct db *db, const char *setting, struct err *err)
{
    unsigned number = mysql_errno(db->my);
    char text[256];

    snprintf(text, sizeof text, "%s", mysql_error(db->my));
    int rc = db_handle_fail(db, err);
    if (number != ER_NO_RIGHT && rc != ERR_FATAL)
        return rc;
    return err_set(err, db_error_of_statement(number) ? ERR_CONFIG : rc,
                   "%s: the server refuses the session setting %s, which dq needs: %s (error %u)",
                   db->at, setting, text, number);
}

/* Sends them one by one, to find the one that the server refuses. */
static int set_singly(struct db *db, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    int rc = mysql_query(db->my, NAMES) ? refused(db, &NAMES[strlen("SET ")], err) : 0;

    for (size_t i = 0; rc == 0 && i < SETTING_COUNT; i++) {
        if (!has(db, &settings[i]))
            continue;
        buf_reset(&sql);
        buf_str(&sql, "SET SESSION ");
        size_t name = sql.len;
        put_setting(&sql, db, &settings[i]);
        if (mysql_query(db->my, sql.data))
            rc = refused(db, sql.data + name, err);
    }
    return rc;
}

void db_session_set(struct db *db, const struct db_session *session)
{
    db->lock_wait_s = session->lock_wait_s;
    db->table_wait_s = session->table_wait_s;
    db->idle_s = session->idle_s;
    db->lasts = session->lasts;
}

static int set_lock_wait(struct db *db, unsigned s, struct err *err)
{
    char sql[64];

    if (!db->my || !db->mariadb || !db->lock_wait_s) /* a new connection waits */
        return 0;
    snprintf(sql, sizeof sql, "SET SESSION innodb_lock_wait_timeout = %u", s);
    return db_handle_run(db, sql, err);
}

int db_session_wait_not(struct db *db, struct err *err)
{
    return set_lock_wait(db, 0, err);
}

void db_session_wait(struct db *db)
{
    if (set_lock_wait(db, db->lock_wait_s, NULL) < 0)
        db_handle_drop(db);
}

int64_t db_session_can_try(const struct db *db)
{
    return db->mariadb ? (int64_t)db->lock_wait_s * 1000 : 0;
}

void db_session_beware(struct db *db)
{
    if (!db->mariadb && !db->lock_wait_s)
        db->wary_until = when_steady() + WARY_MS;
}

bool db_session_wary(const struct db *db)
{
    return when_steady() < db->wary_until;
}

void db_session_brief(struct db *db, bool brief)
{
    char sql[64];

    snprintf(sql, sizeof sql, "SET SESSION lock_wait_timeout = %u", brief ? 1 : table_wait(db));
    if (db->my && db_handle_run(db, sql, NULL) < 0)
        db_handle_drop(db);
}

/* Servers that speak the protocol, but keep and find rows in ways of their own; doc/servers says
 * what dq lacks there. They are known by the version or, if they refuse a setting, by the comment
 * on it. */
static const char *const others[] = {
    "TiDB",  "Vitess",    "OceanBase", "SingleStore", "MemSQL",     "Dolt",
    "Doris", "StarRocks", "PolarDB-X", "TDDL",        "ClickHouse", "Xpand",
};

static int refuse_other(const struct db *db, const char *said, struct err *err)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasestr(said, others[i]))
            return err_set(err, ERR_CONFIG,
                           "%s: this is %s; dq needs MySQL or MariaDB: see doc/servers", db->at,
                           others[i]);
    return 0;
}

static int refuse_by_comment(struct db *db, struct err *err)
{
    int rc = 0;
    MYSQL_RES *res =
        mysql_query(db->my, "SELECT @@version_comment") ? NULL : mysql_store_result(db->my);
    MYSQL_ROW row = res ? mysql_fetch_row(res) : NULL;

    if (row && row[0])
        rc = refuse_other(db, row[0], err);
    mysql_free_result(res);
    return rc;
}

int db_session_set_up(struct db *db, struct err *err)
{
    int rc = refuse_other(db, mysql_get_server_info(db->my), err);

    if (rc == 0 && !set_all(db) && (rc = refuse_by_comment(db, err)) == 0)
        rc = set_singly(db, err);

    /* A flag of the last answer: init_connect or init_command may have begun a transaction. */
    if (rc == 0 && db->my->server_status & SERVER_STATUS_IN_TRANS)
        rc = db_handle_run(db, "COMMIT", err);
    return rc;
}
