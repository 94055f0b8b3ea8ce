/*
 * when.h - durations and instants: reading what people write, writing what people read.
 *
 * One unit: int64_t milliseconds. A duration is a length; an instant is ms since
 * 1970-01-01T00:00:00Z. People's instants are in the range of DATETIME(3), years 1000 to 9999;
 * those of the database begin in the year 0, as applications store what a server takes. Nothing
 * here asks a clock, but for the last three functions; callers hand in "now", which in dq is the
 * database's.
 */
#ifndef DQ_BASE_WHEN_H
#define DQ_BASE_WHEN_H

#include "base/err.h"

#include <stdint.h>

#define WHEN_TEXT_SIZE 48
#define WHEN_SECOND INT64_C(1000)
#define WHEN_MINUTE (60 * WHEN_SECOND)
#define WHEN_HOUR (60 * WHEN_MINUTE)
#define WHEN_DAY (24 * WHEN_HOUR)
#define WHEN_WEEK (7 * WHEN_DAY)
#define WHEN_MAX_DURATION_MS (3660 * WHEN_DAY) /* ten years and a bit */

/* Durations: "500ms", "10s", "10m", "1h30m", "2d", "1w", "1.5h", "0"; units ms s m h d w (and min,
 * hour(s), day(s), ...), largest first, each once; blanks between parts allowed. A number without
 * unit is refused, but for 0. Negative: refused. ERR_DATA with a text that shows the place:
 * `duration "10x": unknown unit "x" at character 3 (use ms, s, m, h, d or w)`. */
int when_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
    __attribute__((warn_unused_result));
/* Shortest exact form, "1h30m", "250ms", "0s"; negative with a leading '-'. Returns out. */
char *when_format_duration(char out[WHEN_TEXT_SIZE], int64_t ms);
/* For people, rounded to two parts at most: "3d4h", "12m5s", "1.25s", "7ms". Returns out. */
char *when_format_rough(char out[WHEN_TEXT_SIZE], int64_t ms);

/* Instants, read relative to now_at in the local zone of the process (TZ):
 *   RFC 3339 "2026-11-21T09:00:00.250+01:00" or "...Z"; "2026-11-21 09:00[:00[.250]]" and
 * "2026-11-21" (midnight) local; "09:00[:00]" the next time the clock shows that; "yesterday",
 * "today", "tomorrow" (midnight), "tomorrow 09:00"; weekday names "monday 09:00", "mon" (the next
 * such instant: today's counts while it is ahead); "now"; "+10m", "-10m" (now and a duration);
 *   "@1790000000[.250]" seconds since the epoch.
 * Parts of a millisecond are rounded up. A day that does not exist (31 February, 29 February of a
 * common year) is refused. A local time that does not exist or exists twice (clock change) is
 * refused with both readings, each as RFC 3339 with its offset, ready to be pasted. ERR_DATA. */
int when_parse_instant(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

/* "2026-11-21T09:00:00.250Z"; like the next two "-" for what is out of range (TASK_TIME_NONE).
 * Returns out. */
char *when_format_utc(char out[WHEN_TEXT_SIZE], int64_t at);
/* "2026-11-21 10:00:00.250 +01:00" in the process's zone. Returns out. */
char *when_format_local(char out[WHEN_TEXT_SIZE], int64_t at);
/* DATETIME(3) literal without quotes, "2026-11-21 09:00:00.250", and back (also without a
 * fraction); ERR_FATAL for what is no date, as "0000-00-00 00:00:00". */
char *when_format_sql(char out[WHEN_TEXT_SIZE], int64_t at);
int when_parse_sql(const char *text, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));

/* Clocks of this host. wall: CLOCK_REALTIME, only for log lines. steady: CLOCK_BOOTTIME, runs on in
 * suspend, the same for every process of the host: leases, deadlines and timeouts are measured with
 * it. Both ms; steady_us in microseconds. */
int64_t when_host_wall(void);
int64_t when_steady(void);
int64_t when_steady_us(void);

#endif
