/*
 * db_orphan.h - the connection that broke while its answer was awaited. Private to src/store/db.
 */
#ifndef DQ_STORE_DB_DB_ORPHAN_H
#define DQ_STORE_DB_DB_ORPHAN_H

#include "base/err.h"

struct db;

/* Of a new connection that lasts (struct db_session): asks when its server was started, which
 * db_orphan_kill needs if the connection breaks. Blocks. 0 or a negative code with err. */
int db_orphan_prepare(struct db *db, struct err *err);

/* On a new connection: kills the one that broke, if there is one, and waits for up to three seconds
 * until it is gone. 0; ERR_UNAVAILABLE if it is not, and the new connection is closed; or another
 * code. */
int db_orphan_kill(struct db *db, struct err *err);

#endif
