/*
 * schema.c - the tables and their version.
 *
 * Invariant: schema_version in dq_meta is a number whose migrations, up to and including it, have
 * all been applied. Each statement of a migration can be run again, so that one that broke off is
 * repeated from its beginning.
 */
#include "store/schema.h"
#include "base/when.h"
#include "store/db_connect.h"
#include "store/schema_verify.h"

#include <string.h>

#define LOCK_WAIT_MS 60000
#define LOCK "GET_LOCK(CONCAT('dq-init-', CRC32(DATABASE())), 2)"
#define UNLOCK "RELEASE_LOCK(CONCAT('dq-init-', CRC32(DATABASE())))"

struct number {
    int64_t if_null, value;
};

static void take_number(const struct db_rows *r, void *arg)
{
    struct number *n = arg;

    n->value = db_i64(r, 0, n->if_null);
}

/* The first column of the first row as a number. 1: there was a row, 0: none. */
static int query_number(struct db *db, const char *statement, int64_t if_null, int64_t *ret,
                        struct err *err)
{
    struct buf sql = BUF_INIT;
    struct number number = {if_null, 0};

    buf_str(&sql, statement);
    int rc = db_first(db, &sql, 1, take_number, &number, err);
    if (rc == 1)
        *ret = number.value;
    buf_done(&sql);
    return rc;
}

static int read_version(struct db *db, int *ret_version, struct err *err)
{
    int64_t version = 0;

    int rc = query_number(db, "SELECT value FROM dq_meta WHERE name = 'schema_version'", 0,
                          &version, err);
    if (rc < 0)
        return rc;
    if (version > schema_latest)
        return err_set(
            err, ERR_CONFIG,
            "%s: the schema is version %d, made by a newer dq; this one knows %d: upgrade dq",
            db_server(db), (int)version, schema_latest);
    *ret_version = (int)version;
    return 0;
}

int schema_version(struct db *db, int *ret_version, struct err *err)
{
    int64_t columns = 0;

    int rc = query_number(
        db,
        "SELECT COUNT(*) FROM information_schema.columns"
        " WHERE table_schema = DATABASE() AND table_name = 'dq_meta' AND column_name IN ('name', 'value')",
        0, &columns, err);
    if (rc < 0)
        return rc;
    if (columns == 2)
        return read_version(db, ret_version, err);
    *ret_version = 0;
    return 0;
}

int schema_check(struct db *db, struct err *err)
{
    int version = 0;

    int rc = read_version(db, &version, err);
    if (rc == 0 && version < schema_latest)
        rc = err_set(err, ERR_CONFIG, "%s: the schema is version %d, this dq needs %d: run dq init",
                     db_server(db), version, schema_latest);
    return rc;
}

int schema_next_statement(const char **text, struct buf *sql)
{
    const char *line = *text;

    buf_reset(sql);
    while (*line) {
        size_t len = strcspn(line, "\n");
        const char *next = line + len + (line[len] == '\n');
        if (len && strncmp(line, "--", 2)) {
            bool last = line[len - 1] == ';';
            buf_add(sql, line, last ? len - 1 : len + 1);
            if (last) {
                *text = next;
                return 1;
            }
        }
        line = next;
    }
    return 0;
}

void schema_put_record(struct buf *sql, const struct schema_migration *m)
{
    buf_printf(sql,
               "INSERT INTO dq_meta (name, value) VALUES ('schema_version', '%d')"
               " ON DUPLICATE KEY UPDATE value = IF(value + 0 < %d, '%d', value)",
               m->number, m->number, m->number);
}

static int apply(struct db *db, const struct schema_migration *m, struct err *err)
{
    struct buf sql = BUF_INIT;
    const char *text = m->sql;
    int rc = 0;

    while (rc == 0 && schema_next_statement(&text, &sql))
        rc = db_exec(db, &sql, NULL, err);
    if (rc == 0) {
        buf_reset(&sql);
        schema_put_record(&sql, m);
        rc = db_exec(db, &sql, NULL, err);
    }
    buf_done(&sql);
    return rc < 0 ? err_prefix(err, "migration %s", m->name) : 0;
}

/* In short waits, as a long one would run into the connection's read timeout. */
static int lock(struct db *db, struct err *err)
{
    int64_t deadline = when_steady() + LOCK_WAIT_MS, got = 0;

    for (;;) {
        int rc = query_number(db, "SELECT " LOCK, 0, &got, err);
        if (rc < 0)
            return rc;
        if (got)
            return 0;
        if (when_steady() > deadline)
            return err_set(err, ERR_BUSY,
                           "%s: another dq init has been at work for a minute: try again",
                           db_server(db));
    }
}

/* The version, of tables that are seen to be dq's: a table of the same name makes CREATE TABLE IF
 * NOT EXISTS do nothing, and say so to nobody. Without a version they are from a first migration
 * that broke off. */
static int find_version(struct db *db, int *ret_version, struct err *err)
{
    int rc = schema_version(db, ret_version, err);

    return rc < 0 ? rc : schema_verify(db, *ret_version ? *ret_version : 1, !*ret_version, err);
}

int schema_migrate(struct db *db, void (*done)(const struct schema_migration *m, void *arg),
                   void *arg, int *ret_from, struct err *err)
{
    int version = 0;
    int64_t unlocked;

    int rc = db_connect_create(db, err);
    if (rc < 0)
        return rc;
    rc = lock(db, err);
    if (rc < 0)
        return rc;
    rc = find_version(db, &version, err);
    if (rc < 0)
        goto out;
    *ret_from = version;
    for (int i = version; i < schema_latest && rc == 0; i++) {
        rc = apply(db, &schema_migrations[i], err);
        if (rc == 0 && done)
            done(&schema_migrations[i], arg);
    }
    if (rc == 0 && version < schema_latest)
        rc = schema_verify(db, schema_latest, false, err);
out:
    if (db_connected(db) && query_number(db, "SELECT " UNLOCK, 0, &unlocked, NULL) < 0)
        db_close(db); /* which frees the lock as well */
    return rc;
}
