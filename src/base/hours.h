/*
 * hours.h - the hours in which something is open: windows of the week, by the clock of a zone.
 *
 * A window is open from its first instant to before its last one. One that passes midnight belongs
 * to the day on which it begins. Clocks that are changed count as they show: a window that a clock
 * skips does not open that day, and one that it shows twice opens twice.
 */
#ifndef DQ_BASE_HOURS_H
#define DQ_BASE_HOURS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct hours;
#define HOURS_WINDOWS_MAX 32
#define HOURS_TEXT_MAX 2000 /* bytes of the canonical text */

/* Windows, one a line: "Mon-Fri 08:00-18:00 Europe/Berlin", "Sat,Sun 00:00-24:00", "22:00-06:00".
 * zone: of windows that name none; NULL: each must. ERR_DATA, with a text that shows the place, and
 * the nearest zone to an unknown one. Reads the files of zones. */
int hours_parse(const char *lines, const char *zone, struct hours **ret, struct err *err)
    __attribute__((warn_unused_result));
void hours_free(struct hours *h);
/* The same, which is to be freed once more. */
struct hours *hours_share(struct hours *h);
/* The canonical text, in which each window names its zone; lines end with `end` but for the last.
 */
void hours_put(struct buf *b, const struct hours *h, const char *end);

bool hours_open(const struct hours *h, int64_t at);
/* When they next close, if they are open, or open; INT64_MAX: not within a year. */
int64_t hours_next(const struct hours *h, int64_t at);
/* When they opened, of those that are open; INT64_MIN: more than a week ago. */
int64_t hours_since(const struct hours *h, int64_t at);
/* Appends "Mon 08:00 Europe/Berlin": when they next open, by the clock of the window that does. */
void hours_put_opening(struct buf *b, const struct hours *h, int64_t at);

#endif
