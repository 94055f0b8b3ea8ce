/*
 * db_latest.h - reads that see what was committed on another server of a cluster.
 */
#ifndef DQ_STORE_DB_DB_LATEST_H
#define DQ_STORE_DB_DB_LATEST_H

#include "base/err.h"

struct db;

/* For looking up an unknown outcome. The new connection may lead to another server of a cluster,
 * which has not yet applied what the first one committed. Between begin and end, reads wait until
 * it has (Galera: wsrep_sync_wait; Group Replication: group_replication_consistency = BEFORE). That
 * costs two statements on such servers, none on others, and one per connection to find out which it
 * is. Connects if need be. db_latest_end cannot fail, but may close the connection. */
int db_latest_begin(struct db *db, struct err *err) __attribute__((warn_unused_result));
void db_latest_end(struct db *db);

/* The same, but if no host of several can be written, a read-only one will do: the members of a
 * group that has lost its primary, for example. What is found there has been committed. What is not
 * (db_connect_is_read_only) may be on its way. db_latest_end leaves such a host. */
int db_latest_begin_anywhere(struct db *db, struct err *err) __attribute__((warn_unused_result));

#endif
