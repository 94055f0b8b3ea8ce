/*
 * tag_store.h - tags as operators see them: counts, switches, statistics.
 */
#ifndef DQ_STORE_TAG_STORE_H
#define DQ_STORE_TAG_STORE_H

#include "base/task.h"
#include "store/db.h"

#define TAG_COUNT_CAP 10000 /* counting stops here unless asked for exact numbers */

struct tag_info {
    char *tag;
    uint64_t count[TASK_STATUS_COUNT];
    bool capped[TASK_STATUS_COUNT]; /* there are more than count says */
    uint64_t due;                   /* pending with expected time in the past; same cap */
    bool due_capped;
    /* expected time of the longest waiting due task; TASK_TIME_NONE: nothing due */
    int64_t oldest_due_at;
    /* earliest expected time of a pending task; TASK_TIME_NONE: none */
    int64_t next_at;
    int64_t paused_until_at;        /* as in claim_peek_tag */
    char *paused_by, *pause_reason; /* NULL: none */
};
/* Every tag that has tasks or a switch, by name. tag_store_free(*ret, count). */
int tag_store_list(struct db *db, const char *tag_glob, bool exact, struct tag_info **ret,
                   size_t *ret_count, int64_t *ret_now_at, struct err *err)
    __attribute__((warn_unused_result));
void tag_store_free(struct tag_info *t, size_t count);

/* Whether there are many parts, and dq_task is so small that one statement which reads all of the
 * index costs less than `parts` that read a tag each. */
int tag_store_is_small(struct db *db, size_t parts, bool *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Pauses a tag until an instant (INT64_MAX: until resumed); running handlers are not touched. 1:
 * changed. */
int tag_store_pause(struct db *db, const char *tag, int64_t until_at, int64_t for_ms,
                    const char *by, const char *reason, struct err *err)
    __attribute__((warn_unused_result));
/* 1: it was paused, 0: it was not. */
int tag_store_resume(struct db *db, const char *tag, struct err *err)
    __attribute__((warn_unused_result));

#endif
