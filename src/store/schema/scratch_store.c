/*
 * scratch_store.c - databases that exist only to be measured.
 *
 * Invariant: a database is dropped only if its name has the form of those made here, a table
 * only if its database was empty at first.
 */
#include "store/schema/scratch_store.h"

#include "base/mem.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PREFIX "dq_bench_"
#define DIGITS 12
#define NAME_LOCK "CONCAT('dq-scratch-', CRC32("

void scratch_store_new_name(char ret[SCRATCH_NAME_SIZE])
{
    uint64_t random;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        abort(); /* 8 bytes cannot fail once the kernel's pool is up */
    snprintf(ret, SCRATCH_NAME_SIZE, PREFIX "%0*" PRIx64, DIGITS, random >> (64 - 4 * DIGITS));
}

static bool is_ours(const char *name)
{
    const char *digits = name + strlen(PREFIX);

    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strlen(digits) == DIGITS &&
           strspn(digits, "0123456789abcdef") == DIGITS;
}

/* To the heap; NULL for SQL NULL. */
static void take_text(const struct db_rows *r, void *arg)
{
    *(char **)arg = mem_strdup(db_text(r, COLUMNS_ONLY, NULL));
}

int scratch_store_hold(struct db *db, const char *name, struct err *err)
{
    uint64_t got = 0;
    int rc = sql_read(db, COLUMNS_ONE, sql_take_u64, &got, err,
                      "SELECT GET_LOCK(" NAME_LOCK "?)), 0)", SQL_TEXT(name));

    if (rc == 0 && got != 1)
        rc = err_set(err, ERR_BUSY, "%s: the database %s is in use by another dq bench",
                     db_server(db), name);
    return rc;
}

struct names {
    char **items;
    size_t count;
};

static void add_name(const struct db_rows *r, void *arg)
{
    struct names *names = arg;

    if (!is_ours(db_string(r, COLUMNS_ONLY)))
        return;
    names->items = mem_resize(names->items, names->count + 1, sizeof *names->items);
    names->items[names->count++] = mem_strdup(db_string(r, COLUMNS_ONLY));
}

int scratch_store_list(struct db *db, char ***ret, size_t *ret_count, struct err *err)
{
    struct names names = {0};
    int rc = sql_all(
        db, COLUMNS_ONE, add_name, &names, err,
        "SELECT s.schema_name FROM information_schema.schemata s WHERE s.schema_name LIKE 'dq!_bench!_%' ESCAPE '!'"
        " AND IS_FREE_LOCK(" NAME_LOCK
        "s.schema_name))) = 1 AND NOT EXISTS (SELECT 1 FROM information_schema.tables t"
        " WHERE t.table_schema = s.schema_name AND t.table_name NOT LIKE 'dq!_%' ESCAPE '!') ORDER BY s.schema_name");

    if (rc < 0) {
        scratch_store_free_names(names.items, names.count);
        return rc;
    }
    *ret = names.items;
    *ret_count = names.count;
    return 0;
}

void scratch_store_free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

int scratch_store_drop(struct db *db, const char *name, struct err *err)
{
    if (!is_ours(name))
        return err_set(err, ERR_FATAL, "%s is not the name of a scratch database", name);
    return sql_exec(db, NULL, err, "DROP DATABASE IF EXISTS `?`", SQL_PART(name));
}

int scratch_store_account(struct db *db, char **ret, struct err *err)
{
    *ret = NULL;
    return sql_read(
        db, COLUMNS_ONE, take_text, ret, err,
        "SELECT CONCAT(QUOTE(LEFT(a.n, CHAR_LENGTH(a.n) - 1 - CHAR_LENGTH(SUBSTRING_INDEX(a.n, '@', -1)))), '@',"
        " QUOTE(SUBSTRING_INDEX(a.n, '@', -1))) FROM (SELECT CURRENT_USER() AS n) a");
}

/* ---- an existing database */

/* The tables that a killed dq bench left in the database of db, as "a, b". NULL if there are none,
 * or others too. */
static char *leftovers(struct db *db)
{
    struct err ignored;
    char *names = NULL;
    int rc = sql_read(db, COLUMNS_ONE, take_text, &names, &ignored,
                      "SELECT IF(SUM(table_name NOT LIKE 'dq!_%' ESCAPE '!') = 0,"
                      " GROUP_CONCAT(table_name ORDER BY table_name SEPARATOR ', '), NULL)"
                      " FROM information_schema.tables WHERE table_schema = DATABASE()");

    if (rc == 0 && names &&
        sql_first(db, COLUMNS_ONE, NULL, NULL, &ignored,
                  "SELECT 1 FROM dq_meta WHERE name = 'bench'") == 1)
        return names;
    free(names);
    return NULL;
}

int scratch_store_check_empty(struct db *db, struct err *err)
{
    MEM_LOCAL char *table = NULL, *ours = NULL;
    int rc = sql_read(
        db, COLUMNS_ONE, take_text, &table, err,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() LIMIT 1");

    if (rc == 0 && table)
        ours = leftovers(db);
    if (rc == 0 && ours)
        rc = err_set(
            err, ERR_STATE,
            "it is not empty: a dq bench that was killed left tables there. If they have not been used since: DROP TABLE %s",
            ours);
    else if (rc == 0 && table)
        rc = err_set(err, ERR_STATE, "it is not empty: it has a table %s", table);
    /* the server checks the privilege first, even if the table does not exist */
    return rc < 0 ? rc : sql_exec(db, NULL, err, "DROP TABLE IF EXISTS dq_bench");
}

static void put_table(const struct db_rows *r, void *arg)
{
    struct buf *drop = arg;

    buf_printf(drop, "%s`%s`", drop->len ? ", " : "DROP TABLE IF EXISTS ",
               db_string(r, COLUMNS_ONLY));
}

int scratch_store_drop_tables(struct db *db, struct err *err)
{
    BUF_LOCAL struct buf drop = BUF_INIT;
    int rc = sql_all(db, COLUMNS_ONE, put_table, &drop, err,
                     "SELECT table_name FROM information_schema.tables"
                     " WHERE table_schema = DATABASE() AND table_name LIKE 'dq!_%' ESCAPE '!'");

    return rc == 0 && drop.len ? db_exec(db, &drop, NULL, err) : rc;
}

/* ---- statements to be timed */

int scratch_store_ping(struct db *db, struct err *err)
{
    return sql_read(db, COLUMNS_ONE, NULL, NULL, err, "SELECT 1");
}

int scratch_store_analyze(struct db *db, struct err *err)
{
    return sql_read(db, DB_ANY_COLUMNS, NULL, NULL, err,
                    "ANALYZE NO_WRITE_TO_BINLOG TABLE dq_task");
}

int scratch_store_commit(struct db *db, unsigned n, struct err *err)
{
    return sql_exec(db, NULL, err,
                    "INSERT INTO dq_meta (name, value) VALUES ('bench', ?)"
                    " ON DUPLICATE KEY UPDATE value = VALUES(value)",
                    SQL_INT(n));
}

/* ---- the server */

static void take_setting(const struct db_rows *r, void *arg)
{
    struct scratch_server *s = arg;
    const char *name = db_string(r, COLUMNS_SHOW_NAME), *value = db_string(r, COLUMNS_SHOW_VALUE);
    int64_t number = strtoll(value, NULL, 10);

    if (strcmp(name, "log_bin") == 0)
        s->binlog = strcmp(value, "ON") == 0 || number == 1;
    else if (strcmp(name, "sync_binlog") == 0)
        s->sync_binlog = number;
    else if (strcmp(name, "innodb_flush_log_at_trx_commit") == 0)
        s->flush_log = number;
    else if (strcmp(name, "innodb_buffer_pool_size") == 0)
        s->buffer_pool = number;
    else if (strcmp(name, "max_connections") == 0)
        s->max_connections = number;
    else if (strcmp(name, "Threads_connected") == 0)
        s->connections = number;
}

int scratch_store_server(struct db *db, const char *tables_of, struct scratch_server *ret,
                         struct err *err)
{
    struct scratch_server s = {.flush_log = -1,
                               .buffer_pool = -1,
                               .max_connections = -1,
                               .connections = -1,
                               .table_size = -1};
    uint64_t size = UINT64_MAX;
    int rc = sql_all(
        db, COLUMNS_SHOW, take_setting, &s, err,
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'log_bin',"
        " 'sync_binlog', 'innodb_buffer_pool_size', 'max_connections')");

    if (rc == 0)
        rc = sql_all(db, COLUMNS_SHOW, take_setting, &s, err,
                     "SHOW GLOBAL STATUS LIKE 'Threads_connected'");
    if (rc == 0)
        rc = sql_read(db, COLUMNS_ONE, sql_take_u64, &size, err,
                      "SELECT data_length + index_length FROM information_schema.tables"
                      " WHERE table_name = 'dq_task' AND table_schema = ?",
                      SQL_TEXT(tables_of));
    if (rc == 0 && size < INT64_MAX)
        s.table_size = (int64_t)size;
    if (rc == 0)
        *ret = s;
    return rc;
}
