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
bool slot_runs(enum slot_decision decision); /* it has a task */

extern const char *const slot_catch_up_names[]; /* "skip", "latest", "all", NULL */
extern const char *const slot_overlap_names[];  /* "skip", "one", "allow", "replace", NULL */
/* Those; "ran", ..., "skipped-overlap", ..., "by-hand"; "cron", "every", "gap". "unknown" for
 * another number. */
const char *slot_catch_up_name(int number);
const char *slot_overlap_name(int number);
const char *slot_decision_name(int number);
const char *slot_kind_name(int number); /* enum timetable_kind */

/* Appends NAME@SLOT, the key of a slot's task: "backup@2026-11-23T07:00:00Z", with milliseconds if
 * there are any. */
void slot_put_key(struct buf *b, const char *name, int64_t slot_at);
/* The SLOT of such a key: *ret_name is the length of the NAME before it. NULL: it is none. */
const char *slot_in_key(const char *key, size_t *ret_name);

/* How long after their slots the tasks of a schedule are due, 0 to spread_ms - 1: always the same
 * of a name. */
int64_t slot_offset_ms(const char *name, int64_t spread_ms);

/* A slot is taken up to so long before its time if its last run cannot matter, so that its task
 * starts on time; and one that nobody has taken so long after it is missed. */
#define SLOT_AHEAD_MS INT64_C(1000)
#define SLOT_MISSED_MS INT64_C(60000)
#define SLOT_CATCH_UP_MOST 1000 /* missed slots that `all` runs at once */

/* What is known of the last run. */
enum slot_life { SLOT_NO_RUN, SLOT_WAITS, SLOT_RUNS, SLOT_ENDED };
struct slot_run {
    enum slot_life life;
    int64_t
        until_at; /* of one that waits: it is not started from then on; TASK_TIME_NONE: no end */
    int64_t ended_at;
};
struct slot_ask {
    const struct timetable *timetable;
    enum timetable_kind kind;
    int64_t from_at, to_at; /* of the schedule; a GAP heeds them here */
    int catch_up, overlap;  /* a number that is none of the enum's counts as the first one */
    int64_t within_ms;      /* 0: latest has a period, a day at most */
    int64_t offset_ms;
    bool paused;
    int64_t next_at; /* the first slot that is not decided */
    int64_t now_at;
    uint32_t missed; /* slots that did not run since the last one that did */
    struct slot_run last;
};

/* A decision about one slot, or several in a row that are skipped for the same reason. */
struct slot_act {
    int64_t at; /* the first of them */
    uint32_t slots;
    enum slot_decision decision;
    /* of one that runs: how many missed slots it stands for, too; when it is due; from when on it
     * is not started, TASK_TIME_NONE: always */
    uint32_t missed;
    int64_t due_at, expires_at;
};
struct slot_plan { /* initialize with {0}, free with slot_plan_done */
    struct slot_act *acts;
    size_t count, cap;
    int64_t next_at; /* the first slot that is not decided then; TASK_TIME_NONE: there is none */
    int64_t last_at; /* the last one that runs, if one does; else TASK_TIME_NONE */
    uint32_t missed; /* as in slot_ask, then */
    bool cancels;    /* the last run is to be cancelled */
};
/* Decides the slots of a schedule up to now, or somewhat ahead. Without acts and with the same
 * next_at, nothing is to be done before that. Many slots may be left for another call. */
void slot_decide(const struct slot_ask *a, struct slot_plan *ret);
void slot_plan_done(struct slot_plan *p);

#endif
