/*
 * scratch_store.h - a database that is made to be measured and dropped again, and what the server
 * is set to.
 *
 * Nothing here touches a table that it did not make: a scratch database has a random name of its
 * own, dq_bench_ and twelve hexadecimal digits, or is one that was empty. Whoever uses one holds a
 * lock of its name for as long as his connection lives. All functions block on the database.
 */
#ifndef DQ_STORE_SCRATCH_STORE_H
#define DQ_STORE_SCRATCH_STORE_H

#include "store/db.h"

#define SCRATCH_NAME_SIZE 24
#define SCRATCH_PATTERN "dq_bench_%" /* of the names, as a GRANT wants it */

/* A new name. */
void scratch_store_new_name(char ret[SCRATCH_NAME_SIZE]);

/* Takes the lock of a database's name. ERR_BUSY: somebody else has it. */
int scratch_store_hold(struct db *db, const char *name, struct err *err)
    __attribute__((warn_unused_result));
/* Scratch databases that this account sees and nobody holds: left behind by somebody who was
 * killed. Only such as have nothing but dq's tables. *ret is heap memory:
 * scratch_store_free_names(*ret, count). */
int scratch_store_list(struct db *db, char ***ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void scratch_store_free_names(char **names, size_t count);
/* Drops one of these, if it is there. ERR_FATAL, before anything is asked, for a name that
 * scratch_store_new_name does not make. */
int scratch_store_drop(struct db *db, const char *name, struct err *err)
    __attribute__((warn_unused_result));
/* The account as a GRANT names it: 'dq'@'%'. Heap memory. */
int scratch_store_account(struct db *db, char **ret, struct err *err)
    __attribute__((warn_unused_result));

/* The same for an existing database, which `db` is connected to: ERR_STATE unless it has no table,
 * ERR_DENIED where the account could not drop one; afterwards the tables of dq are dropped and the
 * database stays. */
int scratch_store_check_empty(struct db *db, struct err *err) __attribute__((warn_unused_result));
int scratch_store_drop_tables(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* What is measured and belongs to no other store: a statement that does nothing, and the commit of
 * one small row (`n` differs from call to call). */
int scratch_store_ping(struct db *db, struct err *err) __attribute__((warn_unused_result));
/* Renews the statistics of dq_task. A server does that by itself some seconds after many rows came,
 * and plans by the old ones until then. */
int scratch_store_analyze(struct db *db, struct err *err) __attribute__((warn_unused_result));
int scratch_store_commit(struct db *db, unsigned n, struct err *err)
    __attribute__((warn_unused_result));

/* Settings that decide how fast it is; -1: the server does not say. */
struct scratch_server {
    int64_t flush_log;   /* innodb_flush_log_at_trx_commit */
    int64_t sync_binlog; /* 0 also where there is no binary log */
    bool binlog;
    int64_t buffer_pool; /* bytes */
    int64_t max_connections, connections;
    int64_t table_size; /* bytes of dq_task in the database `tables_of`, with indexes */
};
int scratch_store_server(struct db *db, const char *tables_of, struct scratch_server *ret,
                         struct err *err) __attribute__((warn_unused_result));

#endif
