/*
 * tag_pause.h - pausing tags: no dqd starts a task of a paused tag. All functions block on the
 * database.
 */
#ifndef DQ_STORE_FLEET_TAG_PAUSE_H
#define DQ_STORE_FLEET_TAG_PAUSE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/fleet/event_store.h"

struct tag_pause {
    int64_t until_at;  /* INT64_MAX: until resumed; TASK_TIME_NONE: not paused */
    char *by, *reason; /* NULL: none */
};
/* Reads the pause of a tag. Free *ret with tag_pause_done. */
int tag_pause_read(struct db *db, const char *tag, struct tag_pause *ret, struct err *err)
    __attribute__((warn_unused_result));
void tag_pause_done(struct tag_pause *p);

/* Pauses the tag of an act, which is recorded, until an instant (INT64_MAX: until resumed;
 * TASK_TIME_NONE: for for_ms from now). Running handlers are not affected. Always 1 on success. */
int tag_pause_begin(struct db *db, struct event_act *act, int64_t until_at, int64_t for_ms,
                    const char *reason, struct err *err) __attribute__((warn_unused_result));
/* Ends a pause. 1: the tag was paused, 0: it was not, and nothing is recorded. */
int tag_pause_end(struct db *db, struct event_act *act, struct err *err)
    __attribute__((warn_unused_result));

/* Private to src/store: columns of dq_tag for a SELECT that reads pauses, and what they become. */
/* clang-format off */
#define TAG_PAUSE_COLUMNS(X, prefix)            \
    X(TAG_PAUSE_UNTIL, prefix "paused_until")   \
    X(TAG_PAUSE_BY, prefix "paused_by")         \
    X(TAG_PAUSE_REASON, prefix "pause_reason")
/* clang-format on */
void tag_pause_take(const struct db_rows *r, unsigned first, struct tag_pause *ret);

#endif
