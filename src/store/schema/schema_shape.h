/*
 * schema_shape.h - which tables, columns and indexes there are: as the migrations make them, and as
 * a database has them. Private to src/store/schema*.
 *
 * A migration creates tables (CREATE TABLE IF NOT EXISTS, one line a column or key), makes one
 * change to a table in each ALTER TABLE, or changes rows. An ALTER TABLE is one of
 *
 *     ADD COLUMN name type ...            ADD [UNIQUE] KEY name (columns)
 *     DROP COLUMN name                    DROP KEY name
 *     ALTER COLUMN name SET DEFAULT ...
 *
 * and ends with `, ALGORITHM=INSTANT` or `, ALGORITHM=INPLACE, LOCK=NONE`, with which the server
 * refuses to do it in any way that makes writers wait. A migration changes a column or an index
 * only once, and none of a table that it creates.
 */
#ifndef DQ_STORE_SCHEMA_SCHEMA_SHAPE_H
#define DQ_STORE_SCHEMA_SCHEMA_SHAPE_H

#include "store/db/db.h"

/* A table (name ""), a column or an index of one. */
struct schema_shape_part {
    char *table, *name;
    /* of a table its engine, of a column its type with what belongs to it, of an index its
     * columns */
    char *text;
    char *fallback; /* DEFAULT of a column; NULL: none */
    /* a column that may be NULL or has a value of its own, an index that is not unique */
    bool optional;
    int64_t rows; /* of a table of a database, about */
};

struct schema_shape_parts {
    struct schema_shape_part *items;
    size_t count, cap;
};

struct schema_shape {
    struct schema_shape_parts tables, columns, indexes;
};

/* The part of that table (and name, if not NULL), or NULL. */
struct schema_shape_part *schema_shape_find(const struct schema_shape_parts *p, const char *table,
                                            const char *name);
void schema_shape_done(struct schema_shape *s);

enum schema_shape_kind {
    SCHEMA_SHAPE_ROWS, /* changes rows only */
    SCHEMA_SHAPE_CREATE,
    SCHEMA_SHAPE_ADD_COLUMN,
    SCHEMA_SHAPE_ADD_INDEX,
    SCHEMA_SHAPE_DROP_COLUMN,
    SCHEMA_SHAPE_DROP_INDEX,
    SCHEMA_SHAPE_SET_DEFAULT,
};

/* What a statement of a migration does. */
struct schema_shape_change {
    enum schema_shape_kind kind;
    struct schema_shape_part part; /* what it adds, drops or changes; empty for ROWS */
    bool instant;                  /* ALGORITHM=INSTANT */
};

/* ERR_FATAL if it is none of the above. schema_shape_change_done frees it. */
int schema_shape_parse(const char *statement, struct schema_shape_change *ret, struct err *err)
    __attribute__((warn_unused_result));
void schema_shape_change_done(struct schema_shape_change *c);
/* Makes that change to the lists, and frees it. */
void schema_shape_apply(struct schema_shape *s, struct schema_shape_change *c,
                        const char *statement);
/* Whether a database with these tables needs that statement no longer; never for ROWS. */
bool schema_shape_has(const struct schema_shape *s, const struct schema_shape_change *c);

/* The tables that the migrations up to and including that version make. */
int schema_shape_expected(int version, struct schema_shape *ret, struct err *err)
    __attribute__((warn_unused_result));
/* The tables as the database has them. Three reads of information_schema. */
int schema_shape_read(struct db *db, const struct schema_shape_parts *tables,
                      struct schema_shape *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
