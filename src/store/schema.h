/*
 * schema.h - the tables, their version, and the numbered migrations of sql/ (built into the
 * program).
 */
#ifndef DQ_STORE_SCHEMA_H
#define DQ_STORE_SCHEMA_H

#include "store/db.h"

struct schema_migration {
    int number;       /* 1, 2, ... without gaps */
    const char *name; /* "0001_base" */
    const char *sql;  /* the file's text: statements end with ";" at the end of a line */
};
extern const struct schema_migration schema_migrations[];
extern const int schema_latest; /* number of the last one */

/* Appends the statement, without ";", that records a migration as applied: what `dq init
 * --print-sql` prints behind its text. */
void schema_put_record(struct buf *sql, const struct schema_migration *m);

/* Appends the next statement of a migration's text, with its line ends but without ";" and
 * comments. 1, or 0 at the end. */
int schema_next_statement(const char **text, struct buf *sql);

/* The version the database has: 0 when it has no dq_meta, or one of others. ERR_CONFIG when newer
 * than schema_latest ("made by a newer dq"). */
int schema_version(struct db *db, int *ret_version, struct err *err)
    __attribute__((warn_unused_result));
/* ERR_CONFIG "run dq init" unless the version is schema_latest. Cheap: one read of one row. */
int schema_check(struct db *db, struct err *err) __attribute__((warn_unused_result));
/* Applies what is missing, in order, telling `done` after each. Concurrent callers wait for each
 * other (GET_LOCK, 60 s, plus idempotent statements, as that lock is per node in a cluster).
 * Creates the database when it is missing and the account may. A migration that broke off is taken
 * up again by the next call. Tables that are there are verified first and all of them at the end:
 * on a database that holds tables of others by these names, or whose tables were changed since,
 * nothing is done: ERR_CONFIG. */
int schema_migrate(struct db *db, void (*done)(const struct schema_migration *m, void *arg),
                   void *arg, int *ret_from, struct err *err) __attribute__((warn_unused_result));

#endif
