/*
 * db_put.h - values as SQL literals.
 *
 * Each function appends one literal, which means the same in every character set and sql_mode:
 * nothing is escaped, what is not plain ASCII is in hex. No connection is needed.
 */
#ifndef DQ_STORE_DB_DB_PUT_H
#define DQ_STORE_DB_DB_PUT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A utf8mb4 string; bytes that are not UTF-8 become '?'. s NULL: NULL. */
void db_put_text(struct buf *sql, const char *s);
/* A binary string. p NULL: NULL. */
void db_put_bytes(struct buf *sql, const void *p, size_t len);
/* A DATETIME(3), from milliseconds. TASK_TIME_NONE: NULL. */
void db_put_time(struct buf *sql, int64_t at);
/* A DATETIME(3), from the digits that db_stamp returns. */
void db_put_stamp(struct buf *sql, int64_t stamp);

/* The most that db_put_text and db_put_bytes append for a value of that length. */
size_t db_put_room(size_t len);
/* Whether these bytes stand between quotes as they are; if not, they are put in hex. */
bool db_put_is_plain(const char *p, size_t len);

#endif
