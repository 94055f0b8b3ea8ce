/*
 * results.h - what the target results shares with its client library.
 */
#ifndef DQ_TEST_FUZZ_RESULTS_H
#define DQ_TEST_FUZZ_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void results_begin(const uint8_t *bytes, size_t len); /* the answers are made of these */
unsigned results_next(void);                          /* the next byte, 0 behind the last */
bool results_ended(void);                             /* nothing is open */

#endif
