/*
 * tag_info.h - what an operator sees of a tag.
 */
#ifndef DQ_STORE_ROW_TAG_INFO_H
#define DQ_STORE_ROW_TAG_INFO_H

#include "base/column.h"
#include "base/task.h"

struct tag_info {
    char *tag;
    uint64_t count[TASK_STATUS_COUNT]; /* of states that were skipped: 1 if there are some */
    bool sampled[TASK_STATUS_COUNT];   /* the count is an estimate */
    uint64_t due;                      /* pending and due */
    unsigned levels, due_levels;       /* TASK_LEVEL_BIT of its pending tasks, of those due */
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

/* clang-format off */
/* Its columns, as TASK_COLUMNS in base/task.h: the counts, and all. X(in dq_limit, name, type, field,
 * cut at, flags, get, help). get is in src/cli/show/task_columns.c and src/cli/verb/cmd_tags.c. */
#define TAG_INFO_COUNTS(X) \
    X(NULL, "pending", U64, count, 0, 0, tag_get_pending, "tasks that wait for their time, a retry or a dqd") \
    X(NULL, "running", U64, count, 0, 0, tag_get_running, "tasks that run") \
    X(NULL, "done", U64, count, 0, 0, tag_get_done, "tasks that have succeeded") \
    X(NULL, "failed", U64, count, 0, 0, tag_get_failed, "tasks that have failed for good") \
    X(NULL, "cancelled", U64, count, 0, 0, tag_get_cancelled, "tasks that a person cancelled, or that expired") \
    X(NULL, "due", U64, due, 0, 0, tag_get_due, "pending tasks whose time has come") \
    X(NULL, "late", MS, late_from_at, 0, 0, tag_get_late, "for how long the most overdue of them could have started") \
    X(NULL, "sampled", BOOL, sampled, 0, 0, tag_get_sampled, "whether counts are estimates")
#define TAG_INFO_COLUMNS(X) \
    X("g.name", "tag", TAGS, tag, COLUMN_NARROW, 0, NULL, "the tag") \
    TAG_INFO_COUNTS(X) \
    X(NULL, "next", TIME, next_at, 0, 0, get_next, "when the next one is due, if none is due now") \
    X(NULL, "paused", BOOL, paused_until_at, 0, 0, get_paused, "whether the tag is paused") \
    X("g.paused_until", "paused_until", UNTIL, paused_until_at, 0, 0, NULL, "the end of the pause") \
    X(NULL, "handler", TEXT, tag, COLUMN_NARROW, 0, get_handler, "the handler, by its name in the handlers file; none: no dqd serves the tag") \
    X(NULL, "handled", BOOL, tag, 0, 0, get_handled, "whether a live dqd serves the tag") \
    X("g.paused_by", "paused_by", TEXT, paused_by, 0, 0, NULL, "who paused it") \
    X("g.pause_reason", "pause_reason", TEXT, pause_reason, 60, 0, NULL, "why")
/* clang-format on */

/* One of which nothing is known yet. */
#define TAG_INFO_NONE                                                                              \
    .late_from_at = TASK_TIME_NONE, .next_at = TASK_TIME_NONE, .paused_until_at = TASK_TIME_NONE

/* No dqd starts its tasks. */
static inline bool tag_info_paused(const struct tag_info *t)
{
    return t->paused_until_at != TASK_TIME_NONE;
}

/* How late its latest task is; -1: none is due. */
static inline int64_t tag_info_late_ms(const struct tag_info *t, int64_t now_at)
{
    return t->late_from_at == TASK_TIME_NONE ? -1
           : now_at < t->late_from_at        ? 0
                                             : now_at - t->late_from_at;
}

#endif
