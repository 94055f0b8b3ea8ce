/*
 * schedule_store.h - schedules as people set, read and pause them. All functions block on the
 * database. What becomes of their slots is decided by dqd (store/work/slot_store.h).
 */
#ifndef DQ_STORE_ASK_SCHEDULE_STORE_H
#define DQ_STORE_ASK_SCHEDULE_STORE_H

#include "store/fleet/event_store.h"
#include "store/fleet/schedule_row.h"

/* Which schedules: NULL and 0 stand for all. */
struct schedule_filter {
    const char *glob;  /* of names */
    const char *owner; /* exactly */
    size_t most;       /* the first ones by name */
    bool bodies;       /* read these, too */
};
/* Lists schedules by name with their last runs, and the server's time. Free *ret with
 * schedule_row_free. */
int schedule_store_list(struct db *db, const struct schedule_filter *f, struct schedule **ret,
                        size_t *ret_count, int64_t *ret_now_at, struct err *err)
    __attribute__((warn_unused_result));
/* The one of that name, with its last run, and its body if that is wanted. ERR_NOT_FOUND. Free what
 * *ret points to with schedule_row_done. */
int schedule_store_find(struct db *db, const char *name, bool body, struct schedule *ret,
                        struct err *err) __attribute__((warn_unused_result));

/* One of several changes that are made together. */
struct schedule_change {
    const struct schedule *set; /* only SCHEDULE_ROW_SET counts; NULL: the schedule is deleted */
    const char *name;           /* which one, then */
    bool only_new;              /* it must not exist yet: ERR_DUPLICATE */
    /* what came of it */
    bool existed; /* then old is what it was, to be freed with schedule_row_done */
    unsigned
        changed;     /* as schedule_row_differs; new or deleted: UINT_MAX; 0: nothing was written */
    int64_t next_at; /* of one that is set: its next slot now */
    struct schedule old; /* initialize with {0} */
};
/* Makes all of them, or none, in one transaction, and records the act, unless nothing changes.
 * ERR_DATA: the timetable of one is wrong, *ret_bad is its index (else SIZE_MAX). The slots of a
 * new one, and of one whose timing changes, begin behind now and behind what has been decided; a
 * gap begins now. Others keep theirs, and a pause stays. Tasks that a deleted one has added stay,
 * and so do its slots. all_of: an owner that is to have no schedules but those that are set here,
 * ERR_STATE: it has got others meanwhile; or NULL. ERR_LOST: it is not known whether that was
 * stored; repeating it is safe. */
int schedule_store_change(struct db *db, struct schedule_change *changes, size_t count,
                          const char *all_of, const struct event_act *act, size_t *ret_bad,
                          struct err *err) __attribute__((warn_unused_result));
void schedule_store_change_done(struct schedule_change *changes, size_t count); /* frees the old */

/* Pauses it: its slots are skipped from now on, until it is resumed, which pause false does: the
 * slots of the pause stay skipped. reason: NULL: none. 1, or 0: it is so already; ERR_NOT_FOUND. */
int schedule_store_pause(struct db *db, const char *name, bool pause, const char *reason,
                         const struct event_act *act, struct err *err)
    __attribute__((warn_unused_result));

/* What became of slots of a schedule. Texts are heap memory. Instants: TASK_TIME_NONE if there is
 * none. */
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
 * src/cli/verb/cmd_schedule.c. */
#define SCHEDULE_SLOTS_COLUMNS(X)                                                                          \
    X("s.slot", "slot", TIME, at, 0, 0, NULL, "")                                                         \
    X("s.decision", "decision", INT, decision, 0, 0, get_decision, "")                                    \
    X("s.slots", "slots", U32, slots, 0, 0, NULL, "")                                                     \
    X("s.missed", "missed", U32, missed, 0, 0, NULL, "")                                                  \
    X("s.decide_time", "decided", TIME, decided_at, 0, 0, NULL, "")                                       \
    SCHEDULE_ROW_RUN(X)
/* clang-format on */

/* The latest decided slots of a schedule, `most` at most, newest first. Blocks on the database.
 * Free *ret with schedule_store_slots_free. */
int schedule_store_slots(struct db *db, const char *name, size_t most, struct schedule_slot **ret,
                         size_t *ret_count, struct err *err) __attribute__((warn_unused_result));
void schedule_store_slots_free(struct schedule_slot *slots, size_t count);

#endif
