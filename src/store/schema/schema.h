/*
 * schema.h - the tables, their version, and the numbered migrations of sql/ (built into the
 * program).
 */
#ifndef DQ_STORE_SCHEMA_SCHEMA_H
#define DQ_STORE_SCHEMA_SCHEMA_H

#include "store/db/db.h"

struct schema_migration {
    int number;       /* 1, 2, ... without gaps */
    const char *name; /* "0001_base" */
    const char *sql;  /* the file's text: statements end with ";" at the end of a line */
    int compat;       /* the oldest schema number whose programs work with the tables it leaves */
};
extern const struct schema_migration schema_migrations[];
extern const int schema_latest;   /* number of the last one */
#define SCHEMA_OLDEST_MYSQL 80013 /* 8.0.13, as db_server_version: an expression as DEFAULT */

/* Appends a migration's text with what it records in dq_meta: before it, from which number on
 * programs still work; behind it, that it has been applied. */
void schema_put_script(struct buf *sql, const struct schema_migration *m);

/* Appends the next statement of a migration's text, with its line ends but without ";" and
 * comments. 1, or 0 at the end. */
int schema_next_statement(const char **text, struct buf *sql);

/* What dq_meta says: programs whose schema_latest is compat to version work with the tables. */
struct schema_range {
    int compat, version; /* 0: not there */
    int rows;            /* of these two */
};
#define SCHEMA_COMPAT "schema_compat" /* its name there */
/* A scalar subquery with the same compat, for a statement that is sent anyway; NULL: not there. */
#define SCHEMA_COMPAT_VALUE "(SELECT value FROM dq_meta WHERE name = '" SCHEMA_COMPAT "')"
/* ERR_CONFIG if there is no dq_meta. One read of two rows. */
int schema_read(struct db *db, struct schema_range *ret, struct err *err)
    __attribute__((warn_unused_result));
/* ERR_CONFIG, with both numbers and what to do, unless this program works with the tables. */
int schema_check(struct db *db, struct err *err) __attribute__((warn_unused_result));
/* ` FROM ... WHERE ...` of one row if this program works with the tables, else of none. */
void schema_put_from(struct buf *sql);

#endif
