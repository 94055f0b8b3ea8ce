/*
 * scratch_db.h - the database that `dq bench` measures in.
 *
 * Invariant: whatever happens, except a death by KILL, what was made on the server is dropped
 * before scratch_db_end returns; and nothing that was there before is written to.
 */
#ifndef DQ_BENCH_SCRATCH_DB_H
#define DQ_BENCH_SCRATCH_DB_H

#include "conf/conf.h"
#include "store/db/db.h"
#include "store/schema/scratch_store.h"

struct scratch_db {
    struct db *holder;      /* connected without a database: holds the lock, and drops in the end */
    struct conf_mysql conf; /* with it; its name is conf.database */
    struct db *db;          /* connected to it, by scratch_db_make */
    /* read only by scratch_db.c */
    struct conf_mysql server;
    char name[SCRATCH_NAME_SIZE];
    const char *given;
    bool made; /* there may be something to drop */
};
/* On the configured server: a new database, or the existing empty one called `given` (NULL: none).
 * Connects without it: the holder. Free *ret with scratch_db_end, also after a failure. The strings
 * are borrowed. */
int scratch_db_new(struct scratch_db **ret, const struct conf_mysql *conf, const char *given,
                   struct err *err) __attribute__((warn_unused_result));
/* Makes the database and its tables. */
int scratch_db_make(struct scratch_db *s, struct err *err) __attribute__((warn_unused_result));

/* Drops what was made and frees s. rc and err are what happened before: if that was an error it
 * stays the first thing in err. Returns rc, or, if only this failed, its error. */
int scratch_db_end(struct scratch_db *s, int rc, struct err *err)
    __attribute__((warn_unused_result));

#endif
