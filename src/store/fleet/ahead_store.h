/*
 * ahead_store.h - what was decided while the server's clock was ahead, and would last until that
 * time comes: slots of schedules, changes of these, and what lets limits rest. Pauses are an
 * operator's, and stay. Blocks on the database.
 */
#ifndef DQ_STORE_FLEET_AHEAD_STORE_H
#define DQ_STORE_FLEET_AHEAD_STORE_H

#include "base/err.h"
#include "store/row/sql.h"

/* Whether a slot or a limit was decided later than now. */
#define AHEAD_STORE_SLOT(alias)                                                                    \
    "(" alias "is_open IS NULL OR " alias "is_open = 1) AND " SQL_AHEAD(alias "decide_time")
#define AHEAD_STORE_ANY                                                                            \
    "(EXISTS (SELECT 1 FROM dq_slot FORCE INDEX (is_open) WHERE " AHEAD_STORE_SLOT(                \
        "") ")"                                                                                    \
            " OR EXISTS (SELECT 1 FROM dq_limit WHERE " SQL_AHEAD("hold_time") " OR " SQL_AHEAD(   \
                "update_time") "))"

struct ahead_store_done {
    uint64_t schedules, limits; /* that were corrected */
};
/* Takes such decisions back: the first slot that was decided ahead is the next one again, and its
 * record is deleted; a schedule that was set then is as if set now; a gap looks at its last run;
 * what was held may start. Each is corrected once, in one transaction. The caller has made sure
 * that it is the clock now that is right. */
int ahead_store_correct(struct db *db, struct ahead_store_done *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
