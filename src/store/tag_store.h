/*
 * tag_store.h - tags as operators see them: counts, switches, statistics.
 */
#ifndef DQ_STORE_TAG_STORE_H
#define DQ_STORE_TAG_STORE_H

#include "base/task.h"
#include "store/db.h"
#include "store/event_store.h"
#include "store/tag_count.h"

struct tag_info {
    char *tag;
    uint64_t count[TASK_STATUS_COUNT];
    bool sampled[TASK_STATUS_COUNT]; /* the count is the server's estimate */
    uint64_t due;                    /* pending and due */
    bool due_sampled;
    /* of the task that is latest: from when on (task_late_from); TASK_TIME_NONE: none is due */
    int64_t late_from_at;
    bool late_sampled; /* of the first due tasks only, which were given a time in the past */
    /* earliest expected time of a pending task; TASK_TIME_NONE: none */
    int64_t next_at;
    int64_t paused_until_at;        /* INT64_MAX: until resumed; TASK_TIME_NONE: not paused */
    char *paused_by, *pause_reason; /* NULL: none */
};
/* Lists every tag that has tasks or is paused and that matches the glob (NULL: any), by name. how:
 * they are counted. Free *ret with tag_store_free. Blocks on the database, as do the functions
 * below. */
int tag_store_list(struct db *db, const char *tag_glob, const struct tag_count_how *how,
                   struct tag_info **ret, size_t *ret_count, int64_t *ret_now_at, struct err *err)
    __attribute__((warn_unused_result));
void tag_store_free(struct tag_info *t, size_t count);

/* Whether reading the whole index in one statement costs less than `parts` queries that read a
 * range of it each: dq_task is small for that number, and the number is not. Private to src/store.
 */
int tag_store_is_small(struct db *db, size_t parts, bool *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Pauses the tag of an act, which is recorded, until an instant (INT64_MAX: until resumed;
 * TASK_TIME_NONE: for for_ms from now). Running handlers are not affected. Always 1 on success. */
int tag_store_pause(struct db *db, struct event_act *act, int64_t until_at, int64_t for_ms,
                    const char *reason, struct err *err) __attribute__((warn_unused_result));
/* Ends a pause. 1: the tag was paused, 0: it was not, and nothing is recorded. */
int tag_store_resume(struct db *db, struct event_act *act, struct err *err)
    __attribute__((warn_unused_result));

#endif
