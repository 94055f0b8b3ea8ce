/*
 * scratch_db.c - see scratch_db.h.
 */
#include "bench/scratch_db.h"

#include "base/mem.h"
#include "store/db/db_connect.h"
#include "store/schema/schema_migrate.h"

#include <stdlib.h>

int scratch_db_new(struct scratch_db **ret, const struct conf_mysql *conf, const char *given,
                   struct err *err)
{
    static char no_database[] = "";
    struct scratch_db *s = *ret = mem_zero(1, sizeof *s);

    s->given = given;
    scratch_store_new_name(s->name);
    s->server = *conf;
    s->server.database = no_database;
    s->conf = *conf;
    s->conf.database = given ? (char *)(uintptr_t)given : s->name;
    s->holder = db_new(&s->server);
    return db_connect(s->holder, err);
}

static int explain_denied(struct scratch_db *s, struct err *err)
{
    MEM_LOCAL char *account = NULL;

    if (scratch_store_account(s->holder, &account, err) == 0 && account)
        err_set(
            err, ERR_DENIED,
            "this account may not create a database to measure in. An administrator can allow it: GRANT ALL ON `%s`.* TO %s; "
            "or name an existing empty database with --database",
            SCRATCH_PATTERN, account);
    return err->code;
}

static int open_given(struct scratch_db *s, struct err *err)
{
    int rc = db_connect(s->db, err);

    if (rc == ERR_CONFIG)
        return err_set(
            err, rc,
            "--database %s: there is no such database. Create it (CREATE DATABASE), or leave the option out",
            s->given);
    if (rc == 0)
        rc = scratch_store_check_empty(s->db, err);
    return rc < 0 ? err_prefix(err, "--database %s", s->given) : 0;
}

int scratch_db_make(struct scratch_db *s, struct err *err)
{
    int from, rc = scratch_store_hold(s->holder, s->conf.database, err);

    if (rc < 0)
        return rc;
    s->db = db_new(&s->conf);
    if (s->given)
        rc = open_given(s, err);
    if (rc < 0)
        return rc;
    s->made = true;
    rc = schema_migrate(s->db, NULL, NULL, &from, err);
    if (rc == 0)
        rc = scratch_store_commit(s->db, 0, err); /* marks it as ours */
    if (rc == ERR_DENIED && !s->given)
        rc = explain_denied(s, err);
    return rc;
}

/* On a connection that may have been idle for too long: a second time on a new one. */
static int drop(struct scratch_db *s, struct err *err)
{
    int rc = ERR_LOST;

    for (int try = 0; try < 2 && rc == ERR_LOST; try++)
        rc = s->given ? scratch_store_drop_tables(s->db, err)
                      : scratch_store_drop(s->holder, s->name, err);
    return rc;
}

int scratch_db_end(struct scratch_db *s, int rc, struct err *err)
{
    struct err drop_err = {0};
    bool dropped = !s->made || drop(s, &drop_err) == 0;

    if (!dropped && rc == 0) {
        *err = drop_err;
        rc = err_prefix(err, "the measurement is complete, but %s could not be dropped",
                        s->conf.database);
    } else if (!dropped && rc != ERR_DENIED) {
        if (s->given)
            err_set(err, rc, "%s; the tables of dq in %s could not be dropped", err->text,
                    s->given);
        else
            err_set(err, rc, "%s; %s could not be dropped: dq bench --clean drops it later",
                    err->text, s->name);
    }
    db_free(s->db);
    db_free(s->holder);
    free(s);
    return rc;
}
