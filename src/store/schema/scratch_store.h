/*
 * scratch_store.h - databases that exist only to be measured, and the server's settings.
 *
 * No function touches a table that dq bench did not create: a scratch database has a random name,
 * dq_bench_ and twelve hexadecimal digits, or is one that was empty. Its user holds a lock on the
 * name until the connection ends. All functions block on the database.
 */
#ifndef DQ_STORE_SCHEMA_SCRATCH_STORE_H
#define DQ_STORE_SCHEMA_SCRATCH_STORE_H

#include "store/db/db.h"

#define SCRATCH_NAME_SIZE 24
#define SCRATCH_PATTERN "dq_bench_%" /* of the names, for a GRANT */

/* Makes a new random name. */
void scratch_store_new_name(char ret[SCRATCH_NAME_SIZE]);

/* Takes the lock on a database's name. ERR_BUSY: another session has it. */
int scratch_store_hold(struct db *db, const char *name, struct err *err)
    __attribute__((warn_unused_result));
/* Lists the scratch databases that a killed dq bench left behind: those visible to this account
 * that no session holds and that have no tables but dq's. The caller frees *ret with
 * scratch_store_free_names. */
int scratch_store_list(struct db *db, char ***ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void scratch_store_free_names(char **names, size_t count);
/* Drops a scratch database if it exists. ERR_FATAL, before anything is sent, for a name that
 * scratch_store_new_name does not make. */
int scratch_store_drop(struct db *db, const char *name, struct err *err)
    __attribute__((warn_unused_result));
/* The account, as a GRANT names it: 'dq'@'%'. The caller frees *ret. */
int scratch_store_account(struct db *db, char **ret, struct err *err)
    __attribute__((warn_unused_result));

/* The same for an existing database, to which `db` is connected. check_empty: ERR_STATE if it has a
 * table, ERR_DENIED if the account could not drop one. drop_tables drops the tables of dq; the
 * database stays. */
int scratch_store_check_empty(struct db *db, struct err *err) __attribute__((warn_unused_result));
int scratch_store_drop_tables(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* To be timed: ping is a statement that does nothing, commit changes one small row (`n` differs
 * from call to call). */
int scratch_store_ping(struct db *db, struct err *err) __attribute__((warn_unused_result));
int scratch_store_commit(struct db *db, unsigned n, struct err *err)
    __attribute__((warn_unused_result));
/* Renews the statistics of dq_task. A server does that by itself some seconds after a bulk insert,
 * and until then plans with the old ones. */
int scratch_store_analyze(struct db *db, struct err *err) __attribute__((warn_unused_result));

/* Settings that decide how fast the server is; -1: unknown. */
struct scratch_server {
    int64_t flush_log;   /* innodb_flush_log_at_trx_commit */
    int64_t sync_binlog; /* 0 also without a binary log */
    bool binlog;
    int64_t buffer_pool; /* bytes */
    int64_t max_connections, connections;
    int64_t table_size; /* bytes of dq_task in the database `tables_of`, with indexes */
};
int scratch_store_server(struct db *db, const char *tables_of, struct scratch_server *ret,
                         struct err *err) __attribute__((warn_unused_result));

#endif
