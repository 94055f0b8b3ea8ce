/*
 * db_orphan.h - the connection that broke while its answer was awaited. Private to src/store/db.
 */
#ifndef DQ_STORE_DB_DB_ORPHAN_H
#define DQ_STORE_DB_DB_ORPHAN_H

#include "base/err.h"

struct db;

/* Of a new connection that lasts: asks what db_orphan_kill will need if it breaks. */
int db_orphan_prepare(struct db *db, struct err *err);

/* On a new connection: kills the one that broke, if there is one, and waits for up to three seconds
 * until it is gone. ERR_UNAVAILABLE: it is not. */
int db_orphan_kill(struct db *db, struct err *err);

#endif
