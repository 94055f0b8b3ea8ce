/*
 * csv.h - records of comma-separated values, as RFC 4180 has them: fields between commas, in double
 * quotes if they contain a comma, a quote (doubled) or the end of a line.
 */
#ifndef DQ_CLI_SHOW_CSV_H
#define DQ_CLI_SHOW_CSV_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether a record goes on behind this line, because a quoted field does. open: the lines before it
 * left one open. */
bool csv_is_open(bool open, const char *line, size_t len);

/* Appends the next field of a record, and a NUL. *at is where it begins, and then where the one
 * behind it does. 1: there is one behind it, 0: it was the last, ERR_DATA. */
int csv_field(const char **at, const char *end, struct buf *out, struct err *err)
    __attribute__((warn_unused_result));

#endif
