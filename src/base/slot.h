/*
 * slot.h - what becomes of the slots of a schedule.
 *
 * A slot is a time at which a schedule wants to run. Each one is decided once, in order.
 */
#ifndef DQ_BASE_SLOT_H
#define DQ_BASE_SLOT_H

#include "base/buf.h"
#include "base/timetable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of these are those of the columns. */
enum slot_catch_up { SLOT_CATCH_UP_SKIP, SLOT_CATCH_UP_LATEST, SLOT_CATCH_UP_ALL };
enum slot_overlap {
    SLOT_OVERLAP_SKIP,
    SLOT_OVERLAP_ONE, /* one run may wait while another one runs */
    SLOT_OVERLAP_ALLOW,
    SLOT_OVERLAP_REPLACE, /* the last run is cancelled */
};
enum slot_decision {
    SLOT_RAN, /* its task was added */
    SLOT_LATE,
    SLOT_SKIPPED_OVERLAP,
    SLOT_SKIPPED_MISSED,
    SLOT_SKIPPED_PAUSED,
    SLOT_REFUSED, /* the server did not take its task */
    SLOT_BY_HAND, /* dq schedule run-now, backfill */
};

/* "skip", "latest", "all"; "skip", "one", "allow", "replace"; "ran", ..., "skipped-overlap", ...,
 * "by-hand"; "cron", "every", "gap". "unknown" for another number. A parser returns -1 for another
 * name. */
const char *slot_catch_up_name(int number);
int slot_catch_up_parse(const char *name);
const char *slot_overlap_name(int number);
int slot_overlap_parse(const char *name);
const char *slot_decision_name(int number);
const char *slot_kind_name(int number); /* enum timetable_kind */

/* Appends NAME@SLOT, the key of a slot's task: "backup@2026-11-23T07:00:00Z", with milliseconds if
 * there are any. */
void slot_put_key(struct buf *b, const char *name, int64_t slot_at);

#endif
