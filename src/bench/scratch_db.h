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

struct scratch_db;
/* On the configured server: a new database, or the existing empty one called `given` (NULL: none).
 * Nothing is asked yet. The strings are borrowed. */
struct scratch_db *scratch_db_new(const struct conf_mysql *conf, const char *given);
/* Connects, without a database. */
int scratch_db_connect(struct scratch_db *s, struct err *err) __attribute__((warn_unused_result));
/* Databases that a killed dq bench left, of those that this account sees. Free with
 * scratch_store_free_names (store/schema/scratch_store.h). */
int scratch_db_leftovers(struct scratch_db *s, char ***ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
/* Drops one of these. */
int scratch_db_drop_leftover(struct scratch_db *s, const char *name, struct err *err)
    __attribute__((warn_unused_result));

/* Makes the database and its tables. */
int scratch_db_make(struct scratch_db *s, struct err *err) __attribute__((warn_unused_result));
/* Afterwards: its name, settings by which it is connected to, and a connection. They live as long
 * as s. */
const char *scratch_db_name(const struct scratch_db *s);
const struct conf_mysql *scratch_db_conf(const struct scratch_db *s);
struct db *scratch_db_db(const struct scratch_db *s);

/* Drops what was made and frees s. rc and err are what happened before: if that was an error it
 * stays the first thing in err. Returns rc, or, if only this failed, its error. */
int scratch_db_end(struct scratch_db *s, int rc, struct err *err)
    __attribute__((warn_unused_result));

#endif
