/*
 * ahead_store.h - what was decided while the server's clock was ahead, and would last until that
 * time comes: next slots of schedules, changes of these, and what lets limits rest. Pauses are an
 * operator's, and stay. Blocks on the database.
 */
#ifndef DQ_STORE_FLEET_AHEAD_STORE_H
#define DQ_STORE_FLEET_AHEAD_STORE_H

#include "base/err.h"
#include "store/row/sql.h"

/* Slots that were decided up to a day ahead hold: a clock that is set back by hours repeats none.
 * What is farther ahead was decided by a clock that was wrong, and keeps no schedule waiting. */
#define AHEAD_STORE_FAR " > UTC_TIMESTAMP(3) + INTERVAL 1 DAY"
/* Up to then, all slots of the schedule of that name are decided. */
#define AHEAD_STORE_DECIDED(name)                                                                  \
    "(SELECT IF(e.slots > 1, GREATEST(e.slot, e.decide_time), e.slot)"                             \
    " FROM dq_slot e FORCE INDEX (PRIMARY) WHERE e.name = " name " AND NOT e.slot" AHEAD_STORE_FAR \
    " ORDER BY e.slot DESC LIMIT 1)"
#define AHEAD_STORE_SLOT "(is_open IS NULL OR is_open = 1) AND decide_time" AHEAD_STORE_FAR
#define AHEAD_STORE_ANY                                                                            \
    "(EXISTS (SELECT 1 FROM dq_slot FORCE INDEX (is_open) WHERE " AHEAD_STORE_SLOT ")"             \
    " OR EXISTS (SELECT 1 FROM dq_limit WHERE " SQL_AHEAD("hold_time") " OR " SQL_AHEAD(           \
        "update_time") "))"

struct ahead_store_done {
    uint64_t schedules, limits; /* that were corrected */
    char names[256];            /* of the first few of these schedules */
};
/* The next slot becomes the first one from now on that is not decided; records of slots stay. A
 * gap looks at its last run; what was held may start. Each is corrected once, in one transaction.
 * The caller has made sure that it is the clock now that is right. */
int ahead_store_correct(struct db *db, struct ahead_store_done *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
