/*
 * field.h - the columns of a table (base/column.h) as SQL: selected, read into a struct, stored.
 */
#ifndef DQ_STORE_ROW_FIELD_H
#define DQ_STORE_ROW_FIELD_H

#include "base/column.h"
#include "store/db/db.h"
#include "store/db/db_statement.h"
#include "store/row/sql.h"

/* The columns of a result, and the struct that holds a row of it. */
struct field_table {
    const struct column *columns;
    size_t count, size;
};
#define FIELD_TABLE(of, columns)                                                                   \
    {                                                                                              \
        columns, sizeof(columns) / sizeof(columns)[0], sizeof(struct of)                           \
    }

/* Reads `SELECT columns` and `tail`, which begins with FROM and whose values follow (sql.h), into
 * an array of rows. *ret, a pointer to them, and *ret_count are set; free them with field_free.
 * Blocks on the database. */
#define field_list(db, table, ret, ret_count, err, tail, ...)                                      \
    field_list_values(db, table, ret, ret_count, err, tail, SQL_VALUES(__VA_ARGS__))
int field_list_values(struct db *db, const struct field_table *t, void *ret, size_t *ret_count,
                      struct err *err, const char *tail, const struct sql_value *v, size_t count)
    __attribute__((warn_unused_result));
/* Frees what the fields of rows point to. field_free: and the array. */
void field_done(const struct field_table *t, void *rows, size_t count);
void field_free(const struct field_table *t, void *rows, size_t count);

/* Of these functions, those for many columns leave out the ones that are not read. */

/* Appends `t.id, t.tag, ...` (alias: "t."), and returns how many. */
unsigned field_put_names(struct buf *sql, const char *alias, const struct column *c, size_t count);
/* Fills a struct from the cells of a row that begins with these columns. Texts and bytes become
 * heap memory of its fields. */
void field_read_all(const struct db_rows *r, const struct column *c, size_t count, void *row);
void field_read(const struct db_rows *r, unsigned col, const struct column *c, void *row);
/* Appends the literals `1, 'mail', NULL, ...`. */
void field_put_values(struct db_statement *st, const struct column *c, size_t count,
                      const void *row);

#endif
