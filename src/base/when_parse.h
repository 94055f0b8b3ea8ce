/*
 * when_parse.h - reads durations and instants that people, applications and the server wrote.
 */
#ifndef DQ_BASE_WHEN_PARSE_H
#define DQ_BASE_WHEN_PARSE_H

#include "base/err.h"

#include <stdint.h>

/* A duration: "500ms", "10s", "10m", "1h30m", "2d", "1w", "1.5h", "0". Units are ms s m h d w (also
 * min, hour(s), day(s), ...), from large to small, each once; blanks are allowed between the parts.
 * A number needs a unit, unless it is 0, and cannot be negative. ERR_DATA, with a text that shows
 * the place: `duration "10x": unknown unit "x" at character 3 (use ms, s, m, h, d or w)`. */
int when_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
    __attribute__((warn_unused_result));

/* An instant, relative to now_at and in the local zone of the process (TZ):
 *   "2026-11-21T09:00:00.250+01:00", "...Z"   RFC 3339
 *   "2026-11-21 09:00[:00[.250]]"             local
 *   "2026-11-21"                              midnight, local
 *   "09:00[:00]"                              when the clock next shows that
 *   "yesterday", "today", "tomorrow [09:00]"  midnight if no time is given
 *   "monday [09:00]", "mon"                   the next such instant, today's if it is still ahead
 *   "now", "+10m", "-10m"                     now and a duration
 *   "@1790000000[.250]"                       seconds since the epoch
 * Fractions of a millisecond are rounded up: a task must not start early. A day that does not exist
 * (31 February) is refused. So is a local time that a clock change skips or repeats; the message
 * then has both readings with their offsets, ready to be pasted. ERR_DATA. */
int when_parse_instant(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

/* A DATETIME(3) as the server prints it, with or without a fraction. ERR_FATAL if it is no date,
 * such as "0000-00-00 00:00:00". */
int when_parse_sql(const char *text, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

#endif
