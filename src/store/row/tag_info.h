/*
 * tag_info.h - what an operator sees of a tag.
 */
#ifndef DQ_STORE_ROW_TAG_INFO_H
#define DQ_STORE_ROW_TAG_INFO_H

#include "base/task.h"

struct tag_info {
    char *tag;
    uint64_t count[TASK_STATUS_COUNT]; /* of states that were skipped: 1 if there are some */
    bool sampled[TASK_STATUS_COUNT];   /* the count is an estimate */
    uint64_t due;                      /* pending and due */
    bool due_sampled;
    /* of the task that is latest: from when on (task_late_from); TASK_TIME_NONE: none is due */
    int64_t late_from_at;
    bool refused;      /* no dqd claims one of the first due tasks (task_countable) */
    bool late_sampled; /* of the first due tasks only, which were given a time in the past */
    /* earliest expected time of a pending task; TASK_TIME_NONE: none */
    int64_t next_at;
    int64_t paused_until_at;        /* INT64_MAX: until resumed; TASK_TIME_NONE: not paused */
    char *paused_by, *pause_reason; /* NULL: none */
};

#endif
