/*
 * body.h - a body as it is given on the command line.
 */
#ifndef DQ_CLI_BODY_H
#define DQ_CLI_BODY_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the body that a word stands for: "-" is standard input, "@FILE" that file, anything else
 * itself, NULL nothing. ERR_USAGE; ERR_DATA if it cannot be read or is too long. */
int body_read(const char *word, struct buf *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
