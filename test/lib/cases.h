/*
 * cases.h - tests as a text file: input, and below it what must come of it.
 *
 *   #: what this case shows
 *   input line
 *   input line
 *   => expectation
 *   => another one
 *
 * Lines before the first "#:" are talk. <0d> is the byte with that hexadecimal number, <a*300> is
 * 300 times "a".
 */
#ifndef DQ_TEST_CASES_H
#define DQ_TEST_CASES_H

#include "base/buf.h"

struct test_case {
    char *name;
    struct buf input;
    char **expected; /* the texts behind "=> " */
    size_t count;
};

/* Runs check once a case, each as a cmocka test of its own, after those of fixed[0..fixed_count-1].
 * Returns the number of failures. `file` is below test/data. */
struct CMUnitTest;
int cases_run(const char *file, void (*check)(const struct test_case *),
              const struct CMUnitTest *fixed, size_t fixed_count);

/* message must be "FILE:" and the expected text, of which the part behind a final "..." is free. */
void cases_check_message(const char *message, const char *file, const char *expected);

#endif
