/*
 * duration.h - reads a duration at a cursor, for when_parse.h and moment.h, which document it.
 */
#ifndef DQ_BASE_DURATION_H
#define DQ_BASE_DURATION_H

#include "base/scan.h"

/* Reads everything from the cursor to the end of the text. ret_ago: whether the word "ago" ends it;
 * NULL: it may not. ERR_DATA. */
int duration_scan(struct scan *s, int64_t *ret_ms, bool *ret_ago)
    __attribute__((warn_unused_result));
/* Reads a unit alone, as "m", and how long it is. ERR_DATA. */
int duration_scan_unit(struct scan *s, int64_t *ret_ms) __attribute__((warn_unused_result));

#endif
