/*
 * when_parse.h - reads durations and instants that people, applications and the server wrote.
 */
#ifndef DQ_BASE_WHEN_PARSE_H
#define DQ_BASE_WHEN_PARSE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* A duration: "500ms", "10s", "10m", "1h30m", "2d", "1w", "1.5h", "0". Units are ms s m h d w (also
 * min, hour(s), day(s), ...), from large to small, each once; blanks are allowed between the parts.
 * A number needs a unit, unless it is 0, and cannot be negative; "a" and "an" are 1. ERR_DATA, with
 * a text that shows the place: `duration "10x": at character 3: unknown unit "x" (use ms, s, m, h, d
 * or w)`. */
int when_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
    __attribute__((warn_unused_result));

/* An instant, relative to now_at and in the local zone of the process (TZ):
 *   "2026-11-21T09:00:00.250+01:00", "...Z"   RFC 3339; also "20261121T090000Z"
 *   "2026-11-21 09:00[:00[.250]]"             local
 *   "2026-11-21"                              midnight, local
 *   "21 Nov 2026 [09:00]"                     the same; the month's name or its first three letters
 *   "09:00[:00]", "5pm", "noon", "midnight"   when the clock next shows that
 *   "yesterday", "today", "tomorrow [09:00]"  midnight if no time is given
 *   "tonight 11pm"                            today, from 5pm on
 *   "monday [09:00]", "mon"                   the next such instant, today's if it is still ahead
 *   "next monday [09:00]"                     of the next week, Monday to Sunday
 *   "now", "+10m", "-10m", "now + 10m"        now and a duration
 *   "in 10m", "10m ago"                       the same
 *   "@1790000000[.250]"                       seconds since the epoch
 * A time of day may be 9:30pm, may stand before the words for the day ("5pm tomorrow") or follow
 * them with "at" between, and may be followed by an offset ("+01:00", "UTC") or a zone of the
 * host's database ("Europe/Berlin"), whose clock it then is. Fractions of a millisecond are rounded
 * up: a task must not start early.
 *
 * ERR_DATA: a day that does not exist (31 February); a local time that a clock change skips or
 * repeats; and what people read in different ways: 12pm, "tomorrow midnight", an abbreviation of a
 * time zone, "next friday" while this week's is ahead. The message has both readings, where there
 * are two, ready to be pasted. */
int when_parse_instant(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

/* The same for what has happened: "09:00", "midnight", "monday [09:00]" are the last such instant
 * that is not ahead, and a duration is the time before now. What says that it is ahead ("tomorrow",
 * "+10m", a date) is not refused. */
int when_parse_past(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

/* Whether it is a text for when_parse_instant, or when_parse_past, as far as that does not depend
 * on the clock. ERR_DATA. Reads a named zone's file, as these do. */
int when_parse_check(const char *text, bool past, struct err *err)
    __attribute__((warn_unused_result));

/* A DATETIME(3) as the server prints it, with or without a fraction. ERR_FATAL if it is no date,
 * such as "0000-00-00 00:00:00". */
int when_parse_sql(const char *text, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

#endif
