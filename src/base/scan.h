/*
 * scan.h - a cursor over a short text that a person wrote, and faults that point at the place.
 */
#ifndef DQ_BASE_SCAN_H
#define DQ_BASE_SCAN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan {
    const char *what, *text; /* "duration", and all of it */
    const char *p;           /* the next character; begins as text */
    struct err *err;
};

/* Sets ERR_DATA, `time "2026-02-31": at character 9: February 2026 has 28 days (hint)`, and
 * returns it. at NULL: no place; hint NULL: none. Places count characters from 1. */
int scan_fault(const struct scan *s, const char *at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

void scan_blanks(struct scan *s); /* skips spaces and tabs */

/* The length of the word at p: up to the next blank, digit or end, at most 40 bytes. */
int scan_word_length(const char *p);

/* Skips `word` if it is the whole word at p, ignoring case. */
bool scan_word(struct scan *s, const char *word);

/* Reads a number of `digits` digits (`fewer`: one less is fine too). False: there is none, nothing
 * was read. */
bool scan_number(struct scan *s, size_t digits, bool fewer, int *ret);

/* Reads the digits behind a decimal point, 1 to 9 of them: the value is *ret / *ret_scale.
 * ERR_DATA. */
int scan_fraction(struct scan *s, int64_t *ret, int64_t *ret_scale)
    __attribute__((warn_unused_result));

#endif
