/*
 * schema_verify.h - whether the tables of a database are those that the migrations make.
 */
#ifndef DQ_STORE_SCHEMA_SCHEMA_VERIFY_H
#define DQ_STORE_SCHEMA_SCHEMA_VERIFY_H

#include "store/db/db.h"

/* mend, unless NULL, gets the statements that remove the differences, separated by "; ", as far as
 * that is possible without loss.
 *
 * Compares the tables with what the migrations up to that version make, and with what the next one
 * makes of it, as that may have broken off anywhere: columns (type, NULL, collation, default),
 * indexes, engine. A table that a later migration creates may be there if it is the same.
 * ERR_CONFIG names the first differences. Three reads of information_schema.
 * ERR_DENIED: information_schema shows an account only the columns that it may use. */
int schema_verify(struct db *db, int version, struct buf *mend, struct err *err)
    __attribute__((warn_unused_result));
/* ERR_DENIED if this account may not read each column of the table, whether it is there or not. */
int schema_verify_seen(struct db *db, const char *table, struct err *err)
    __attribute__((warn_unused_result));

#endif
