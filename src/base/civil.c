/*
 * civil.c - see civil.h. Invariant: exact for every date; the C library, whose mktime and timegm
 * turn 31 February into 3 March, is not asked.
 */
#include "base/civil.h"

#include <stdbool.h>

const char *const civil_month_names[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
const char *const civil_weekday_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                           "Thursday", "Friday", "Saturday"};

int64_t civil_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Years begin in March here, so that leap days come last. */
int64_t civil_to_days(const struct civil *c)
{
    int64_t y = c->month > 2 ? c->year : c->year - 1;
    int64_t era = civil_floor_div(y, 400), year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (c->month > 2 ? c->month - 3 : c->month + 9) + 2) / 5 + c->day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

struct civil civil_from_days(int64_t days)
{
    struct civil c;

    days += 719468;
    int64_t era = civil_floor_div(days, 146097), day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */
    c.day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    c.month = (int)(month < 10 ? month + 3 : month - 9);
    c.year = (int)(year_of_era + era * 400 + (c.month <= 2));
    return c;
}

int civil_days_in_month(int year, int month)
{
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 ? 28 + leap : 30 + (month + month / 8) % 2;
}

int civil_weekday(int64_t days)
{
    int64_t since = days + 4; /* 1970-01-01 was a Thursday */
    return (int)(since - civil_floor_div(since, 7) * 7);
}
