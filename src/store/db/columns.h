/*
 * columns.h - the columns of a result, listed once: its SELECT and its reader both come from the
 * list.
 *
 * A list is a macro of entries X(NAME, "expression"), or X(NAME, "expression", statement), where
 * the statement reads the cell:
 *
 *     #define PAIR_COLUMNS(X) X(PAIR_STATUS, "status") X(PAIR_TAG, "tag")
 *     enum { PAIR_COLUMNS(COLUMNS_NAME) PAIR_COUNT };
 *     buf_printf(&sql, "SELECT %s FROM ...", COLUMNS_SELECT(PAIR_COLUMNS));
 *
 * The enum numbers the cells, and its last entry counts them.
 */
#ifndef DQ_STORE_DB_COLUMNS_H
#define DQ_STORE_DB_COLUMNS_H

#define COLUMNS_NAME(name, ...) name,
#define COLUMNS_TEXT(name, text, ...) ", " text
#define COLUMNS_SELECT(LIST) (&(LIST(COLUMNS_TEXT))[2]) /* behind the first comma */

/* A result with a single column: its number, and the count. */
enum { COLUMNS_ONLY, COLUMNS_ONE };
/* The result of SHOW VARIABLES and SHOW STATUS. */
enum { COLUMNS_SHOW_NAME, COLUMNS_SHOW_VALUE, COLUMNS_SHOW };

#endif
