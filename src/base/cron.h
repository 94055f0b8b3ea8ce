/*
 * cron.h - expressions of crontab(5) as data, and the local times that they stand for; without a
 * clock or a zone.
 *
 *   MINUTE HOUR DAY MONTH WEEKDAY   minute 0 to 59, hour 0 to 23, day of the month 1 to 31 or L
 *                                   (the last one), month 1 to 12 or jan to dec, day of the week 0
 *                                   to 7 or sun to sat (0 and 7 are Sunday)
 *   @hourly @daily @midnight @weekly @monthly @yearly @annually
 *
 * A field is a list ("1,15"); its items are a value, a range ("8-18"), "*", or one of these two
 * with a step ("8-18/2"). As in Vixie cron, a day matches if both of its fields do, if one of them
 * begins with "*"; otherwise if one of them does.
 */
#ifndef DQ_BASE_CRON_H
#define DQ_BASE_CRON_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum cron_field { CRON_MINUTE, CRON_HOUR, CRON_DAY, CRON_MONTH, CRON_WEEKDAY, CRON_FIELDS };
#define CRON_LAST_DAY 32 /* the bit of CRON_DAY that stands for L */

struct cron {
    uint64_t bits[CRON_FIELDS]; /* bit 0 is minute 0, hour 0, Sunday; bit 1 the 1st, January */
    bool either;                /* a day matches if its date or its weekday does */
    bool elapsed; /* minute or hour begins with "*": when the clock is changed, time that elapses
                   * counts; without, the time of the day does */
};

/* ERR_DATA, in a line that names the field and its range. ERR_STATE, with such a line: cron takes
 * it, but a schedule cannot: what never comes, or leaves out five years, such as 31 February;
 * @reboot; what cron overlooks. */
int cron_parse(const char *text, struct cron *ret, struct err *err)
    __attribute__((warn_unused_result));

/* The first time that matches, from `local` on: ms since 1970 by a clock that is never changed.
 * False: none within 28 years. */
bool cron_next(const struct cron *c, int64_t local, int64_t *ret);

/* Appends "at 02:30 on the 1st or on Mondays", "every 5 minutes in the hours 8 to 18". */
void cron_put(struct buf *b, const struct cron *c);

#endif
