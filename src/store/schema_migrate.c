/*
 * schema_migrate.c - the tables, created or brought up to date.
 *
 * Invariant: each statement of a migration can be run again, so that one that broke off is repeated
 * from its beginning.
 */
#include "store/schema_migrate.h"
#include "base/when.h"
#include "store/columns.h"
#include "store/db_connect.h"
#include "store/schema_verify.h"

#include <sys/param.h>

#define LOCK_WAIT_MS 60000
#define LOCK "GET_LOCK(CONCAT('dq-init-', CRC32(DATABASE())), 2)"
#define UNLOCK "RELEASE_LOCK(CONCAT('dq-init-', CRC32(DATABASE())))"

struct number {
    int64_t if_null, value;
};

static void take_number(const struct db_rows *r, void *arg)
{
    struct number *n = arg;

    n->value = db_i64(r, COLUMNS_ONLY, n->if_null);
}

/* The first column of the first row as a number. 1: there was a row, 0: none. */
static int query_number(struct db *db, const char *statement, int64_t if_null, int64_t *ret,
                        struct err *err)
{
    struct buf sql = BUF_INIT;
    struct number number = {if_null, 0};

    buf_str(&sql, statement);
    int rc = db_first(db, &sql, COLUMNS_ONE, take_number, &number, err);
    if (rc == 1)
        *ret = number.value;
    buf_done(&sql);
    return rc;
}

static int apply(struct db *db, const struct schema_migration *m, struct err *err)
{
    struct buf script = BUF_INIT, sql = BUF_INIT;
    int rc = 0;

    schema_put_script(&script, m);
    const char *text = script.data;
    while (rc == 0 && schema_next_statement(&text, &sql))
        rc = db_exec(db, &sql, NULL, err);
    buf_done(&script);
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

/* What dq_meta says; nothing if there is none, or one of others. */
static int find_range(struct db *db, struct schema_range *ret, struct err *err)
{
    int64_t columns = 0;

    int rc = query_number(
        db,
        "SELECT COUNT(*) FROM information_schema.columns"
        " WHERE table_schema = DATABASE() AND table_name = 'dq_meta' AND column_name IN ('name', 'value')",
        0, &columns, err);
    *ret = (struct schema_range){0, 0};
    return rc < 0 || columns != 2 ? MIN(rc, 0) : schema_read(db, ret, err);
}

/* The version, of tables that are seen to be dq's: a table of the same name makes CREATE TABLE IF
 * NOT EXISTS do nothing, and say so to nobody. Without a version they are from a first migration
 * that broke off. Tables of a newer dq are its own business. */
static int find_version(struct db *db, int *ret_version, struct err *err)
{
    struct schema_range range;

    int rc = find_range(db, &range, err);
    if (rc < 0)
        return rc;
    *ret_version = range.compat ? range.version : 0;
    if (*ret_version > schema_latest)
        return schema_check(db, err);
    return schema_verify(db, *ret_version ? *ret_version : 1, !*ret_version, err);
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
