/*
 * body.h - a body as it is given on the command line.
 */
#ifndef DQ_CLI_SHOW_BODY_H
#define DQ_CLI_SHOW_BODY_H

#include "base/buf.h"
#include "base/err.h"

/* Without a word for the body, standard input is not read: ERR_USAGE if data wait there, which were
 * most likely meant as one. Never blocks. */
int body_check_input(struct err *err) __attribute__((warn_unused_result));
/* Appends the body that a word stands for: "-" is standard input, "@FILE" that file, anything else
 * itself, NULL nothing, see body_check_input. ERR_USAGE; ERR_DATA if it cannot be read or is too
 * long. */
int body_read(const char *word, struct buf *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
