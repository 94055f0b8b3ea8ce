/*
 * task_filter.h - which tasks are meant: by dq list, and by the verbs that change tasks.
 */
#ifndef DQ_STORE_ASK_TASK_FILTER_H
#define DQ_STORE_ASK_TASK_FILTER_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task_sort {
    SORT_EXPECTED,
    SORT_EXPECTED_DESC,
    SORT_ID,
    SORT_ID_DESC,
    /* without an index, for task_list only: the most overdue first, and those that were created or
     * finished last. A search looks at that many only, which come first in an order that is near to
     * it. */
    SORT_LATE,
    SORT_CREATED,
    SORT_FINISHED
};

/* Which tags: all, those that are not paused, those that are. */
enum task_filter_pause { TASK_FILTER_ALL_TAGS, TASK_FILTER_NOT_PAUSED, TASK_FILTER_PAUSED };

/* The times of a task that can be bounded. */
enum task_filter_time {
    TASK_FILTER_DUE,
    TASK_FILTER_CREATED,
    TASK_FILTER_STARTED, /* its last attempt */
    TASK_FILTER_FINISHED,
    TASK_FILTER_TIMES
};
struct task_filter_bound { /* all zero: open */
    bool set;
    int64_t at;
};

/* A search that gives up: it passes over about `most` tasks that do not match, or looks only at
 * that many of the newest if they have to be sorted, and sets partial if there are more. */
struct task_filter_search {
    size_t most;
    bool partial;
};

struct task_filter {     /* all zero: every task, by expected time */
    const uint64_t *ids; /* NULL: any */
    size_t id_count;
    /* several are lines of the text, of which one has to match; NULL: any, here and below */
    const char *tag_glob;
    enum task_filter_pause pause; /* for a filter without ids, key, created and a single tag */
    const char *key;
    const char *error_glob, *host_glob; /* of the last attempt */
    const char *body;                   /* these bytes occur in it */
    unsigned statuses;                  /* mask of TASK_BIT; 0: TASK_ANY */
    struct task_filter_bound since[TASK_FILTER_TIMES], before[TASK_FILTER_TIMES]; /* >=, < */
    size_t limit;                                                                 /* 0: all */
    /* ties by id: the order is total, so the same on every call */
    enum task_sort sort;
    /* a task that matches all the while is found, even if it changes its state meanwhile; all ids
     * are read at once, or of each range more than limit, if rows must be read */
    bool whole;
    struct task_filter_search *search; /* NULL: looks at all */
    /* NULL, or set if all tasks were read for since[TASK_FILTER_CREATED], because ids are not in
     * the order of creation */
    bool *unordered;
};

/* The rest is private to src/store. */

/* Or is several globs. */
bool task_filter_has_wildcard(const char *glob);
/* Whether tasks within the ranges of the index `due` have to be read to know if they match. */
bool task_filter_needs_row(const struct task_filter *f);
/* Append ` AND ...`: the bounds of one time; the conditions for which the row has to be read; all
 * conditions but those of ids and of a tag with wildcards. statuses: of f, or those of them that
 * are allowed. */
void task_filter_put_time(struct buf *sql, const struct task_filter *f, enum task_filter_time t);
void task_filter_put_row(struct buf *sql, const struct task_filter *f);
void task_filter_put(struct buf *sql, const struct task_filter *f, unsigned statuses);
/* Appends ` AND tag ...` for the tags that match. prefix: of the column, like `t.`. */
void task_filter_put_tag(struct buf *sql, const char *prefix, const char *glob);

#endif
