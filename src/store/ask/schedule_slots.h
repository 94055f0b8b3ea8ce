/*
 * schedule_slots.h - what became of the slots of a schedule.
 */
#ifndef DQ_STORE_ASK_SCHEDULE_SLOTS_H
#define DQ_STORE_ASK_SCHEDULE_SLOTS_H

#include "base/column.h"
#include "store/db/db.h"
#include "store/fleet/schedule_row.h"

/* Texts are heap memory. Instants: TASK_TIME_NONE if there is none. */
struct schedule_slot {
    int64_t at;
    uint32_t slots; /* so many in a row had this decision, from this one on */
    int decision;   /* enum slot_decision */
    uint32_t missed;
    int64_t decided_at; /* or dq retry made its task pending again */
    /* as struct schedule has them */
    uint64_t task_id;
    int status;
    int64_t started_at, finished_at;
    int exit;
    char *error;
};
/* clang-format off */
/* Columns, as TASK_COLUMNS in base/task.h: of s, the slot, and t, its task. get is in
 * src/cli/verb/cmd_schedule_show.c. */
#define SCHEDULE_SLOTS_COLUMNS(X)                                                                          \
    X("s.slot", "slot", TIME, at, 0, 0, NULL, "")                                                         \
    X("s.decision", "decision", INT, decision, 0, 0, get_decision, "")                                    \
    X("s.slots", "slots", U32, slots, 0, 0, NULL, "")                                                     \
    X("s.missed", "missed", U32, missed, 0, 0, NULL, "")                                                  \
    X("s.decide_time", "decided", TIME, decided_at, 0, 0, NULL, "")                                       \
    SCHEDULE_ROW_RUN(X)
/* clang-format on */

/* The latest decided slots of a schedule, `most` at most, newest first. Blocks on the database.
 * Free *ret with schedule_slots_free. */
int schedule_slots_list(struct db *db, const char *name, size_t most, struct schedule_slot **ret,
                        size_t *ret_count, struct err *err) __attribute__((warn_unused_result));
void schedule_slots_free(struct schedule_slot *slots, size_t count);

#endif
