/*
 * db_statement.h - statements whose long values are sent beside their text.
 *
 * A long value is a ? in the text and a parameter of a prepared statement: in a packet it takes its
 * own length, not twice that as a literal in hex would. If the server has no prepared statement
 * left, literals are sent after all.
 */
#ifndef DQ_STORE_DB_DB_STATEMENT_H
#define DQ_STORE_DB_DB_STATEMENT_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct db;

/* The caller owns the values' data and keeps it until the statement has been executed. sql must
 * have no other ? outside of quotes. */
struct db_statement_value {
    const void *data;
    size_t size;
};
struct db_statement {
    struct buf sql;
    struct db_statement_value *values; /* for each ? in the order of the text */
    size_t count, cap;
};
/* clang-format off */
#define DB_STATEMENT_INIT {BUF_INIT, NULL, 0, 0}
/* clang-format on */
void db_statement_done(struct db_statement *s); /* leaves an empty usable one */

/* Appends a binary string, as a literal or, if it is long, as a parameter. p NULL: NULL. */
void db_statement_put(struct db_statement *s, const void *p, size_t len);
/* Appends the text and the values of `from`. */
void db_statement_add(struct db_statement *to, const struct db_statement *from);
/* Cuts it back to what sql.len and count were earlier. */
void db_statement_cut(struct db_statement *s, size_t len, size_t count);

/* The size of the largest packet it needs, to be compared with db_max_packet. */
size_t db_statement_packet(const struct db_statement *s);
/* The most that db_statement_put adds for a value of that length: to the text (returned), and to
 * the values (*ret_values), in bytes of a packet. */
size_t db_statement_room(size_t len, size_t *ret_values);

/* As db_exec. Two round trips more than db_exec if it has values. */
int db_statement_exec(struct db *db, const struct db_statement *s, uint64_t *ret_rows,
                      struct err *err) __attribute__((warn_unused_result));

#endif
