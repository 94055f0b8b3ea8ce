/*
 * when.h - durations and instants: units, texts, and the clocks of this host. when_parse.h reads
 * them.
 *
 * The unit is the millisecond, in an int64_t. A duration is a length; an instant is counted from
 * 1970-01-01T00:00:00Z. Instants that people give lie in the range of DATETIME(3), the years 1000
 * to 9999. Those of the database may begin in the year 0, because applications store whatever a
 * server accepts.
 */
#ifndef DQ_BASE_WHEN_H
#define DQ_BASE_WHEN_H

#include <stdint.h>

#define WHEN_TEXT_SIZE 48
#define WHEN_SECOND INT64_C(1000)
#define WHEN_MINUTE (60 * WHEN_SECOND)
#define WHEN_HOUR (60 * WHEN_MINUTE)
#define WHEN_DAY (24 * WHEN_HOUR)
#define WHEN_WEEK (7 * WHEN_DAY)
#define WHEN_MAX_DURATION_MS (3660 * WHEN_DAY)        /* a little more than ten years */
#define WHEN_AT_MIN (INT64_C(-354285) * WHEN_DAY)     /* 1000-01-01T00:00:00.000Z */
#define WHEN_AT_MAX (INT64_C(2932897) * WHEN_DAY - 1) /* 9999-12-31T23:59:59.999Z */

/* The shortest exact form: "1h30m", "250ms", "0s"; a leading '-' if negative. Returns out. */
char *when_format_duration(char out[WHEN_TEXT_SIZE], int64_t ms);
/* For people, rounded to at most two parts: "3d4h", "12m5s", "1.25s", "7ms". Returns out. */
char *when_format_rough(char out[WHEN_TEXT_SIZE], int64_t ms);

/* "2026-11-21T09:00:00.250Z". Like the next two, "-" if the instant is out of range
 * (TASK_TIME_NONE). Returns out. */
char *when_format_utc(char out[WHEN_TEXT_SIZE], int64_t at);
/* "2026-11-21 10:00:00.250 +01:00", in the zone of the process. Returns out. */
char *when_format_local(char out[WHEN_TEXT_SIZE], int64_t at);
/* A DATETIME(3) literal without quotes, "2026-11-21 09:00:00.250". Returns out. */
char *when_format_sql(char out[WHEN_TEXT_SIZE], int64_t at);
/* RFC 3339 by a clock that is ahead of UTC by offset_ms, ready to be pasted:
 * "2026-11-21T10:00:00+01:00", with a fraction unless that is zero. Returns out. */
char *when_format_ahead(char out[WHEN_TEXT_SIZE], int64_t at, int64_t offset_ms);

/* How far the local clock is ahead of UTC at an instant, in ms. */
int64_t when_local_offset(int64_t at);

/* The clocks of this host. wall is CLOCK_REALTIME, for log lines only. steady is CLOCK_BOOTTIME,
 * which goes on while the host is suspended and is the same for all its processes: leases,
 * deadlines and timeouts are measured with it. Milliseconds; steady_us: microseconds. */
int64_t when_host_wall(void);
int64_t when_steady(void);
int64_t when_steady_us(void);

#endif
