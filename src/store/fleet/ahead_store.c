/*
 * ahead_store.c - see ahead_store.h. Invariant: the rows of schedules are locked, and their
 * versions moved, before it is read what was decided of them; what has been corrected is not ahead.
 */
#include "store/fleet/ahead_store.h"
#include "base/mem.h"

#define BY_HAND "6" /* SLOT_BY_HAND; 0 and 1 have run */
#define OF(name) " FROM dq_slot e WHERE e.name = " name ".name AND "
#define RIGHT "NOT " SQL_AHEAD("e.decide_time")
#define NAMES                                                                                      \
    "(SELECT DISTINCT s.name FROM dq_slot s FORCE INDEX (is_open) WHERE " AHEAD_STORE_SLOT(        \
        "s.") ") n"
/* The last slot that was decided by a right clock, and the first one behind it. A run that was
 * retried while the clock was ahead stands before that. */
#define LAST_RIGHT                                                                                 \
    "(SELECT e.slot" OF("n") "e.decision <> " BY_HAND " AND " RIGHT " ORDER BY e.slot DESC LIMIT 1)"
#define FIRST                                                                                      \
    "(SELECT MIN(e.slot)" OF(                                                                      \
        "r") "e.slot > COALESCE(r.last_right, '1000-01-01') AND e.decision <> " BY_HAND            \
             " AND " SQL_AHEAD("e.decide_time") ")"
#define LAST_RUN                                                                                   \
    "(SELECT e.slot" OF("r") "e.decision IN (0, 1, " BY_HAND ") AND " RIGHT                        \
                             " AND NOT " SQL_AHEAD("e.slot") " ORDER BY e.slot DESC LIMIT 1)"

static const char lock[] =
    "UPDATE " NAMES " STRAIGHT_JOIN dq_schedule c ON c.name = n.name SET c.version = c.version + 1";
static const char take_back[] =
    "UPDATE (SELECT r.name, " FIRST " AS first, " LAST_RUN " AS last_run"
    " FROM (SELECT n.name, " LAST_RIGHT " AS last_right FROM " NAMES ") r) d"
    " STRAIGHT_JOIN dq_schedule c ON c.name = d.name"
    " SET c.next_slot = COALESCE(d.first, c.next_slot),"
    " c.last_slot = IF(" SQL_AHEAD("c.last_slot") ", d.last_run, c.last_slot)";
static const char drop[] =
    "DELETE s FROM dq_slot s FORCE INDEX (is_open) JOIN dq_schedule c ON c.name = s.name"
    " WHERE " AHEAD_STORE_SLOT("s.") " AND (" SQL_AHEAD(
        "s.slot") " OR (s.slot >= c.next_slot AND s.decision <> " BY_HAND "))";
static const char keep[] = "UPDATE dq_slot FORCE INDEX (is_open) SET decide_time = UTC_TIMESTAMP(3)"
                           " WHERE " AHEAD_STORE_SLOT("");
/* '?' asks for the first slot from now on; a gap without it, for the end of its last run. */
static const char schedules[] =
    "UPDATE dq_schedule SET version = version + 1, next_slot = UTC_TIMESTAMP(3),"
    " zone_version = IF(" SQL_AHEAD(
        "update_time") ", '?', zone_version),"
                       " update_time = LEAST(update_time, UTC_TIMESTAMP(3)) WHERE " SQL_AHEAD(
                           "update_time") " OR (kind = 2 AND " SQL_AHEAD("next_slot") " AND last_slot IS NOT NULL)";
static const char limits[] =
    "UPDATE dq_limit SET version = version + 1,"
    " held_until = IF(" SQL_AHEAD("hold_time") ", UTC_TIMESTAMP(3), held_until),"
                                               " hold_time = LEAST(hold_time, UTC_TIMESTAMP(3)),"
                                               " update_time = LEAST(update_time, UTC_TIMESTAMP(3))"
                                               " WHERE " SQL_AHEAD("hold_time") " OR " SQL_AHEAD(
                                                   "update_time");

int ahead_store_correct(struct db *db, struct ahead_store_done *ret, struct err *err)
{
    static const char *const statements[] = {lock, take_back, drop, keep, schedules, limits};
    uint64_t rows[MEM_COUNT(statements)] = {0};
    int rc = db_begin(db, err);

    *ret = (struct ahead_store_done){0};
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < MEM_COUNT(statements); i++)
        rc = sql_exec(db, &rows[i], err, "?", SQL_PART(statements[i]));
    rc = db_end(db, rc, err);
    if (rc == 0)
        *ret = (struct ahead_store_done){rows[0] + rows[4], rows[5]};
    return rc;
}
