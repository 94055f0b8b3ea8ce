/*
 * timetable.h - when a schedule's slots are: of a cron expression, at a fixed distance, or after
 * the end of the last run.
 *
 * Pure but for the files of the host's time zone database: no clock, no connection. The next slot
 * takes microseconds, however far away it is.
 */
#ifndef DQ_BASE_TIMETABLE_H
#define DQ_BASE_TIMETABLE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum timetable_kind {
    TIMETABLE_CRON,
    TIMETABLE_EVERY,
    TIMETABLE_GAP, /* a time after the end of the last run: it has no slots of its own */
};

struct timetable_spec {
    enum timetable_kind kind;
    const char *expression; /* of cron (cron.h), or a duration ("10m"), at least 1 s */
    const char *zone;       /* "Europe/Berlin"; NULL: "UTC", for which no file is needed */
    int64_t from_at, to_at; /* the first and the last instant of slots; TASK_TIME_NONE: no bound.
                             * EVERY counts from from_at, else from 1970-01-01T00:00:00Z */
};

struct timetable;

/* NULL and ERR_DATA: the expression or the zone is wrong, in one line that names the nearest one;
 * to_at is not after from_at; or a cron expression that has no time within some five years, such
 * as 31 February. Copies what it needs of the spec. Reads the zone's file. */
struct timetable *timetable_new(const struct timetable_spec *spec, struct err *err)
    __attribute__((warn_unused_result));
void timetable_free(struct timetable *t);

/* Changes of the clock, as Debian's cron(8) takes them. Fixed times, of an expression whose minute
 * and hour do not begin with "*", come once a day: those that a clock set forward skips come
 * together at the first instant after the gap, and those that it shows twice come at the first
 * reading. Others follow the clock, so they do not come in the gap and come in both readings. A
 * change of three hours or more forward, or of more than three back, is a correction, after which
 * the new time counts for all. */
enum timetable_shift {
    TIMETABLE_AS_WRITTEN,
    TIMETABLE_GAP_MOVED,    /* its time is skipped that day: the first instant after the gap */
    TIMETABLE_FIRST_OF_TWO, /* its time is shown twice that day: the first one */
};

/* The first slot after after_at (strictly). False: there is none, because to_at or the year 9999
 * ends before it; always for GAP. ret_shift may be NULL. */
bool timetable_next(const struct timetable *t, int64_t after_at, int64_t *ret_at,
                    enum timetable_shift *ret_shift);

/* "One period": the distance from the last slot that is not after `at` to the one behind it,
 * without regard to from_at and to_at. EVERY and GAP: their duration. */
int64_t timetable_period_ms(const struct timetable *t, int64_t at);

/* Appends the sentence: "at 02:30 on the 1st or on Mondays (Europe/Berlin)". */
void timetable_put(struct buf *b, const struct timetable *t);

/* Of the host's time zone database, "2026a"; "" if it does not say. Versions grow as strings. Reads
 * a file at each call; the text stays valid until the next one. */
const char *timetable_zone_version(void);
/* Of the contents of the zone's file, to see whether two hosts have the same; 0: "UTC", which needs
 * none. */
uint64_t timetable_zone_digest(const struct timetable *t);

#endif
