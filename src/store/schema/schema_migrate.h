/*
 * schema_migrate.h - the tables, created or brought up to date.
 */
#ifndef DQ_STORE_SCHEMA_SCHEMA_MIGRATE_H
#define DQ_STORE_SCHEMA_SCHEMA_MIGRATE_H

#include "store/schema/schema.h"

/* Applies what is missing, in order, calling `done` after each. Concurrent callers wait for each
 * other (GET_LOCK, 60 s, plus idempotent statements, as that lock is per node in a cluster).
 * Creates the database when it is missing and the account may. A migration that broke off is taken
 * up again by the next call. Tables that are there are verified first and all of them at the end:
 * on a database that holds tables of others by these names, or whose tables were changed since,
 * nothing is done: ERR_CONFIG. On tables of a newer dq nothing is done either: 0 if this program
 * works with them, else ERR_CONFIG. *ret_from: the version before. */
int schema_migrate(struct db *db, void (*done)(const struct schema_migration *m, void *arg),
                   void *arg, int *ret_from, struct err *err) __attribute__((warn_unused_result));

/* A statement that schema_migrate would run, as far as can be seen before any has run. */
struct schema_migrate_step {
    const char *migration, *statement;
    const char *table; /* NULL: it changes rows of dq_meta or of any table */
    bool creates;      /* the table, with a line a column */
    /* About how many the table has, and how many of them the server reads or copies, while others
     * go on reading and, unless writers_wait, writing. */
    int64_t rows, touched;
    bool writers_wait; /* of the whole cluster, until it is done: with Galera, if it is INPLACE */
};
/* Calls fn for each of them, and changes nothing. *ret_from, and ERR_CONFIG: as above, also if the
 * database does not exist. */
int schema_migrate_plan(struct db *db, void (*fn)(const struct schema_migrate_step *s, void *arg),
                        void *arg, int *ret_from, struct err *err)
    __attribute__((warn_unused_result));

#endif
