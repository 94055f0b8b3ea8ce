/*
 * schedule_run.h - runs of schedules by hand. All functions block on the database.
 */
#ifndef DQ_STORE_ASK_SCHEDULE_RUN_H
#define DQ_STORE_ASK_SCHEDULE_RUN_H

#include "store/db/db.h"
#include "store/fleet/event_store.h"

#include <stddef.h>
#include <stdint.h>

/* Runs it now, as a slot of its own; the next slot stays. 1, *ret_id: its task, *ret_slot_at: its
 * slot. ERR_NOT_FOUND; ERR_STATE: its last run lives, and runs must not overlap. ERR_LOST: it is
 * not known whether it was added. */
int schedule_run_now(struct db *db, const char *name, const struct event_act *act, uint64_t *ret_id,
                     int64_t *ret_slot_at, struct err *err) __attribute__((warn_unused_result));
/* Runs these slots (ascending), whatever has become of them, spread evenly over over_ms from now
 * on. Their records are replaced. ERR_NOT_FOUND; ERR_STATE: a task of one of them lives,
 * or one of them is still to be decided. ERR_LOST: it is not known whether they were added. */
int schedule_run_backfill(struct db *db, const char *name, const int64_t *slots, size_t count,
                          int64_t over_ms, const struct event_act *act, struct err *err)
    __attribute__((warn_unused_result));

#endif
