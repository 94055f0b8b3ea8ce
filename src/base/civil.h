/*
 * civil.h - days and dates of the proleptic Gregorian calendar, without a clock or a zone.
 */
#ifndef DQ_BASE_CIVIL_H
#define DQ_BASE_CIVIL_H

#include <stdint.h>

struct civil {
    int year, month, day; /* month and day count from 1 */
};

/* Days since 1970-01-01; negative before it. Any year will do. */
int64_t civil_to_days(const struct civil *c);
struct civil civil_from_days(int64_t days);
int civil_days_in_month(int year, int month);
/* The day of the week of a day since 1970-01-01: 0 is Sunday. */
int civil_weekday(int64_t days);
extern const char *const civil_month_names[12];  /* "January" ... */
extern const char *const civil_weekday_names[7]; /* "Sunday" ... */
/* The largest integer not above a / b, for b > 0: C rounds towards zero. */
int64_t civil_floor_div(int64_t a, int64_t b);

#endif
