/*
 * ahead_store.c - see ahead_store.h. Invariant: it is dqd that computes next slots, and it asks
 * for those that are decided, so a decision that comes between is not repeated.
 */
#include "store/fleet/ahead_store.h"
#include "base/buf.h"
#include "base/when.h"
#include "base/when_parse.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MOST 4

#define WRONG                                                                                      \
    "name IN (SELECT name FROM dq_slot FORCE INDEX (is_open) WHERE " AHEAD_STORE_SLOT              \
    ") OR " SQL_AHEAD("update_time")
/* '?' asks dqd for the next slot; a gap has none, and looks at the end of its last run. */
static const char schedules[] =
    "UPDATE dq_schedule c FORCE INDEX (PRIMARY) SET version = version + 1,"
    " zone_version = IF(kind = 2 OR next_slot <= UTC_TIMESTAMP(3), zone_version, '?'),"
    " next_slot = IF(next_slot <= UTC_TIMESTAMP(3), next_slot, GREATEST(UTC_TIMESTAMP(3),"
    " IF(kind = 2, COALESCE(from_time, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3)))),"
    " last_slot = IF(last_slot" AHEAD_STORE_FAR
    ", (SELECT MAX(e.slot) FROM dq_slot e FORCE INDEX (PRIMARY)"
    " WHERE e.name = c.name AND e.decision IN (0, 1, 6) AND NOT e.slot" AHEAD_STORE_FAR
    "), last_slot), update_time = LEAST(update_time, UTC_TIMESTAMP(3)) WHERE name IN (?)";
static const char keep[] = "UPDATE dq_slot FORCE INDEX (is_open) SET decide_time = UTC_TIMESTAMP(3)"
                           " WHERE " AHEAD_STORE_SLOT;
static const char limits[] =
    "UPDATE dq_limit SET version = version + 1,"
    " held_until = IF(" SQL_AHEAD("hold_time") ", UTC_TIMESTAMP(3), held_until),"
                                               " hold_time = LEAST(hold_time, UTC_TIMESTAMP(3)),"
                                               " update_time = LEAST(update_time, UTC_TIMESTAMP(3))"
                                               " WHERE " SQL_AHEAD("hold_time") " OR " SQL_AHEAD(
                                                   "update_time");

struct wrong {
    struct ahead_store_done *done;
    struct buf names;
};

/* A gap whose run lived then has no other record of it than a next slot that is too far. */
static void take_wrong(const struct db_rows *r, void *arg)
{
    enum { NAME, GAP, AHEAD_MS };
    struct wrong *w = arg;
    const char *name = db_string(r, NAME), *gap = db_string(r, GAP);
    struct err err;
    int64_t gap_ms;

    if (*gap && (when_parse_duration(gap, &gap_ms, &err) < 0 ||
                 db_i64(r, AHEAD_MS, 0) <= gap_ms + WHEN_MINUTE))
        return;
    sql_put(&w->names, "??", SQL_PART(w->names.len ? "," : ""), SQL_TEXT(name));
    if (w->done->schedules++ < NAMES_MOST) {
        const size_t at = strlen(w->done->names);
        snprintf(w->done->names + at, sizeof w->done->names - at, "%s%s", at ? " " : "", name);
    }
}

static int correct(struct db *db, struct wrong *w, struct err *err)
{
    int rc = sql_all(db, 3, take_wrong, w, err,
                     "SELECT name, IF(" WRONG ", NULL, expression), COALESCE(TIMESTAMPDIFF("
                     "MICROSECOND, UTC_TIMESTAMP(3), next_slot) DIV 1000, 0) FROM dq_schedule"
                     " WHERE " WRONG " OR (kind = 2 AND last_slot IS NOT NULL AND " SQL_AHEAD(
                         "next_slot") " AND (from_time IS NULL OR next_slot > from_time))");

    if (rc == 0 && w->names.len)
        rc = sql_exec(db, NULL, err, schedules, SQL_PART("?"), SQL_PART(w->names.data));
    if (rc == 0)
        rc = sql_exec(db, NULL, err, keep);
    return rc < 0 ? rc : sql_exec(db, &w->done->limits, err, limits);
}

int ahead_store_correct(struct db *db, struct ahead_store_done *ret, struct err *err)
{
    struct wrong w = {ret, BUF_INIT};
    int rc = db_begin(db, err);

    *ret = (struct ahead_store_done){0};
    if (rc == 0)
        rc = db_end(db, correct(db, &w, err), err);
    buf_done(&w.names);
    return rc;
}
