/*
 * pattern.h - what errors have in common: the same text for all that differ only in numbers, ids
 * and quoted words.
 */
#ifndef DQ_BASE_PATTERN_H
#define DQ_BASE_PATTERN_H

#include "base/buf.h"

#define PATTERN_MAX 200 /* bytes; a longer pattern is cut, and ends with '*' */

/* Appends the pattern of an error: a glob (task_tag_glob) that matches it. Numbers, also several
 * joined as in a date or an address, hexadecimal ids and what stands in quotes become '*', and each
 * character that a terminal would act on '?'. An exit status, a signal, a code or a timeout stays,
 * because it says what went wrong. Pure; the cases are in test/data/errors.tbl. */
void pattern_put(struct buf *b, const char *error);

#endif
