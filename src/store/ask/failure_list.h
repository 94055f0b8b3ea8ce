/*
 * failure_list.h - the attempts that failed lately. Blocks on the database, changes nothing.
 */
#ifndef DQ_STORE_ASK_FAILURE_LIST_H
#define DQ_STORE_ASK_FAILURE_LIST_H

#include "store/db/db.h"

#include <stddef.h>
#include <stdint.h>

struct failure {
    uint64_t id;       /* of the task */
    int status;        /* of the task, now */
    const char *tag;   /* valid during the call, as is error */
    const char *error; /* why the attempt failed, or the name of its outcome */
    int64_t finish_at; /* when the attempt ended */
};

struct failure_filter {
    int64_t since_at, before_at; /* since_at <= end of the attempt < before_at */
    /* looks at so many of the newest attempts of all tags, and of the oldest; 0: all */
    size_t newest, oldest;
    const char *tag_glob; /* NULL: any. Attempts of other tags cost a third of one that is read */
    int64_t most_ms; /* looks at the newest for so long, and ends some steps later; 0: no limit */
};

/* Calls each(failure, arg) for the attempts that ended in that time and failed, newest first. If
 * there are more than the filter allows, or the time is up, then for the oldest of the others,
 * oldest first, and *ret_left_at is the end of the last of the newest: some that ended then or
 * before may be left out; else it is TASK_TIME_NONE. Cancelled attempts did not fail. Reads a range
 * of the index `finished`, the task of each entry, and the attempt if the tag matches. `each` must
 * not use the connection. */
int failure_list(struct db *db, const struct failure_filter *f,
                 void (*each)(const struct failure *x, void *arg), void *arg, int64_t *ret_left_at,
                 struct err *err) __attribute__((warn_unused_result));

#endif
