/*
 * moment.h - what a text says about an instant, before anything is computed from it: in which zone,
 * on which day, at which time of day. when_parse.h documents the texts.
 */
#ifndef DQ_BASE_MOMENT_H
#define DQ_BASE_MOMENT_H

#include "base/civil.h"
#include "base/scan.h"

#include <stdbool.h>

struct zone;

enum moment_kind {
    MOMENT_AT,       /* an instant: ms */
    MOMENT_FROM_NOW, /* a distance: ms */
    MOMENT_DATE,     /* date, and ms since its midnight */
    MOMENT_CLOCK,    /* when the clock next shows ms since midnight, or last did */
    MOMENT_NEAR,     /* number: days from today; and ms since midnight */
    MOMENT_WEEKDAY,  /* number: the next or last such day (0: Sunday); and ms */
    MOMENT_NEXT,     /* number: that day of the next week, Monday to Sunday; and ms */
};

struct moment {
    enum moment_kind kind;
    bool past; /* what repeats is the last one, not the next one */
    int64_t ms;
    struct civil date;
    int number;
    const char *tonight; /* where that word is in the text; NULL: nowhere */
    bool has_offset;     /* of its clock, offset_ms ahead of UTC */
    int64_t offset_ms;
    struct zone *zone; /* of its clock; NULL: of the process */
};

/* Reads everything from the cursor to the end; past: as when_parse_past. Free *ret with
 * moment_done, also after a failure. ERR_DATA. */
int moment_scan(struct scan *s, bool past, struct moment *ret) __attribute__((warn_unused_result));
void moment_done(struct moment *m);

/* Parts, at a cursor. A date of that year or a later one. HH:MM[:SS[.fraction]] as ms since
 * midnight: the fraction may round up to the next second, or day. */
int moment_scan_date(struct scan *s, int first_year, struct civil *ret)
    __attribute__((warn_unused_result));
int moment_scan_clock(struct scan *s, int64_t *ret_ms) __attribute__((warn_unused_result));

#endif
