/*
 * schema_migrate.c - the tables, created or brought up to date.
 *
 * Invariants: a statement whose effect is there already is left out, so that a migration that broke
 * off anywhere is taken up again. Nobody waits longer than TABLE_WAIT_S for a table that is being
 * altered: the server does it beside the work on the table or refuses, and an ALTER that waits for
 * a transaction, with everybody else behind it, gives up and tries again.
 */
#include "store/schema/schema_migrate.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_connect.h"
#include "store/db/db_session.h"
#include "store/row/sql.h"
#include "store/schema/schema_shape.h"
#include "store/schema/schema_verify.h"

#include <string.h>
#include <time.h>

#define LOCK_WAIT_MS 60000
#define TABLE_WAIT_S 1 /* the least there is */
#define TABLE_PAUSE_S 2
#define TABLE_TRIES 20
#define LOCK "GET_LOCK(CONCAT('dq-init-', CRC32(DATABASE())), 2)"
#define UNLOCK "RELEASE_LOCK(CONCAT('dq-init-', CRC32(DATABASE())))"

static int set_table_wait(struct db *db, unsigned seconds, struct err *err)
{
    return sql_exec(db, NULL, err, "SET SESSION lock_wait_timeout = ?", SQL_INT(seconds));
}

/* Between the tries, what had to wait behind us goes on. */
static int alter_patiently(struct db *db, const char *table, const struct buf *sql, struct err *err)
{
    const struct timespec pause = {TABLE_PAUSE_S, 0};

    for (int tries = 0; tries < TABLE_TRIES; tries++) {
        if (tries)
            nanosleep(&pause, NULL);
        int rc = db_exec(db, sql, NULL, err);
        if (rc != ERR_LOCKED)
            return rc;
    }
    return err_set(
        err, ERR_LOCKED,
        "%s: %s is in use by a transaction that has been open for %d s or longer: end it, and run dq init again",
        db_server(db), table, TABLE_TRIES * (TABLE_WAIT_S + TABLE_PAUSE_S));
}

/* A table that cannot be changed instantly, because of its format or of many changes before, may
 * still be rebuilt beside the work on it. */
static int alter_online(struct db *db, const struct schema_shape_change *c, struct buf *sql,
                        struct err *err)
{
    struct err why = {0};

    int rc = alter_patiently(db, c->part.table, sql, &why);
    if (rc == ERR_STATE && c->instant) {
        sql->len -= strlen("INSTANT");
        buf_str(sql, "INPLACE, LOCK=NONE");
        rc = alter_patiently(db, c->part.table, sql, &why);
    }
    if (rc < 0)
        err_set(err, rc == ERR_STATE ? ERR_CONFIG : rc, "%s", why.text);
    return rc == ERR_STATE ? ERR_CONFIG : rc;
}

static int alter(struct db *db, const struct schema_shape_change *c, struct buf *sql,
                 struct err *err)
{
    const struct db_session usual = DB_SESSION_DEFAULT;
    struct schema_shape_part table = c->part;
    LOCAL_BY(schema_shape_done) struct schema_shape have = {0};

    int rc = schema_shape_read(db, &(struct schema_shape_parts){&table, 1, 1}, &have, err);
    bool done = rc == 0 && schema_shape_has(&have, c);
    if (rc < 0 || done)
        return rc;
    rc = set_table_wait(db, TABLE_WAIT_S, err);
    if (rc == 0)
        rc = alter_online(db, c, sql, err);
    if (db_connected(db)) {
        int restored = set_table_wait(db, usual.table_wait_s, rc < 0 ? NULL : err);
        rc = rc < 0 ? rc : restored;
    }
    return rc;
}

static int run(struct db *db, struct buf *sql, struct err *err)
{
    LOCAL_BY(schema_shape_change_done) struct schema_shape_change c = {0};

    int rc = schema_shape_parse(sql->data, &c, err);
    if (rc < 0)
        return rc;
    rc = c.kind == SCHEMA_SHAPE_ROWS || c.kind == SCHEMA_SHAPE_CREATE ? db_exec(db, sql, NULL, err)
                                                                      : alter(db, &c, sql, err);
    return rc;
}

static int apply(struct db *db, const struct schema_migration *m, struct err *err)
{
    BUF_LOCAL struct buf script = BUF_INIT, sql = BUF_INIT;
    int rc = 0;

    schema_put_script(&script, m);
    const char *text = script.data;
    while (rc == 0 && schema_next_statement(&text, &sql))
        rc = run(db, &sql, err);
    return rc < 0 ? err_prefix(err, "migration %s", m->name) : 0;
}

/* In short waits, as a long one would run into the connection's read timeout. */
static int lock(struct db *db, struct err *err)
{
    int64_t deadline = when_steady() + LOCK_WAIT_MS;
    uint64_t got = 0;

    for (;;) {
        int rc = sql_first(db, COLUMNS_ONE, sql_take_u64, &got, err, "SELECT " LOCK);
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

/* The versions that dq_meta has; {0} if there is no such table, or another program's. */
static int find_range(struct db *db, struct schema_range *ret, struct err *err)
{
    uint64_t columns = 0;

    int rc = sql_first(
        db, COLUMNS_ONE, sql_take_u64, &columns, err,
        "SELECT COUNT(*) FROM information_schema.columns"
        " WHERE table_schema = DATABASE() AND table_name = 'dq_meta' AND column_name IN ('name', 'value')");
    *ret = (struct schema_range){0};
    if (rc < 0)
        return rc;
    return columns == 2 ? schema_read(db, ret, err) : schema_verify_seen(db, "dq_meta", err);
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
    return schema_verify(db, *ret_version, NULL, err);
}

static void take_size(const struct db_rows *r, void *arg)
{
    *(bool *)arg = db_u64(r, COLUMNS_SHOW_VALUE) > 0;
}

/* A Galera cluster runs such a statement on all nodes at the same time, and nothing else. */
static int is_galera(struct db *db, bool *ret, struct err *err)
{
    return sql_read(db, COLUMNS_SHOW, take_size, ret, err,
                    "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'");
}

/* A statement of a plan, on tables as they are now. false: it is done already. */
static bool cost(const struct schema_shape *have, const struct schema_shape_change *c, bool galera,
                 struct schema_migrate_step *ret)
{
    if (schema_shape_has(have, c))
        return false;
    const struct schema_shape_part *table =
        c->part.table ? schema_shape_find(&have->tables, c->part.table, NULL) : NULL;
    ret->table = c->part.table;
    ret->creates = c->kind == SCHEMA_SHAPE_CREATE;
    ret->rows = table ? table->rows : 0;
    ret->touched = ret->creates || c->instant ? 0 : ret->rows;
    ret->writers_wait = galera && !c->instant && !ret->creates && c->kind != SCHEMA_SHAPE_ROWS;
    return true;
}

static int plan_one(const struct schema_migration *m, struct schema_shape *have, bool galera,
                    void (*fn)(const struct schema_migrate_step *s, void *arg), void *arg,
                    struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    const char *text = m->sql;
    int rc = 0;

    while (rc == 0 && schema_next_statement(&text, &sql)) {
        struct schema_migrate_step step = {.migration = m->name, .statement = sql.data};
        struct schema_shape_change c;
        rc = schema_shape_parse(sql.data, &c, err);
        if (rc == 0 && cost(have, &c, galera, &step)) {
            fn(&step, arg);
            schema_shape_apply(have, &c, sql.data);
        } else {
            schema_shape_change_done(&c);
        }
    }
    return rc;
}

int schema_migrate_plan(struct db *db, void (*fn)(const struct schema_migrate_step *s, void *arg),
                        void *arg, int *ret_from, struct err *err)
{
    LOCAL_BY(schema_shape_done) struct schema_shape expected = {0}, have = {0};
    bool galera = false;
    int version = 0;

    int rc = db_connect(db, err);
    if (rc == 0)
        rc = is_galera(db, &galera, err);
    if (rc == 0)
        rc = find_version(db, &version, err);
    if (rc == 0)
        rc = schema_shape_expected(schema_latest, &expected, err);
    if (rc == 0)
        rc = schema_shape_read(db, &expected.tables, &have, err);
    if (rc == 0)
        *ret_from = version;
    for (int i = version; i < schema_latest && rc == 0; i++)
        rc = plan_one(&schema_migrations[i], &have, galera, fn, arg, err);
    return rc;
}

int schema_migrate(struct db *db, void (*done)(const struct schema_migration *m, void *arg),
                   void *arg, int *ret_from, struct err *err)
{
    int version = 0;
    uint64_t unlocked;

    int rc = db_connect_create(db, err);
    if (rc == 0 && !db_is_mariadb(db) && db_server_version(db) < SCHEMA_OLDEST_MYSQL)
        rc = err_set(err, ERR_CONFIG, "%s: dq needs MySQL 8.0.13 or later, or MariaDB",
                     db_server(db));
    if (rc == 0)
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
        rc = schema_verify(db, schema_latest, NULL, err);
out:
    if (db_connected(db) &&
        sql_first(db, COLUMNS_ONE, sql_take_u64, &unlocked, NULL, "SELECT " UNLOCK) < 0)
        db_close(db); /* which frees the lock as well */
    return rc;
}
