/*
 * inert.h - output of a handler on its way to a terminal, piece by piece: lines stay lines, and
 * whatever else a terminal would act on is escaped as text_escape does.
 */
#ifndef DQ_CLI_SHOW_INERT_H
#define DQ_CLI_SHOW_INERT_H

#include "base/buf.h"

/* The beginning of a character whose rest comes with the next piece. All zero: none. */
struct inert {
    char part[4];
    size_t size;
};
/* The next piece to stdout: made inert if that is a terminal, else as it is. */
void inert_print(struct inert *s, const char *p, size_t len);
void inert_print_end(struct inert *s); /* what is left */

/* Commands, as out_take. Of a line on which a terminal does not act, nothing is escaped, not even a
 * backslash, so that it can be copied. */
void inert_take(struct buf *b);

#endif
