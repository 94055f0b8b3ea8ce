/*
 * history.h - what happened: acts of operators, starts and ends of dqds, failures, and starts and
 * ends of tasks, by time. Those of a minute that are alike are one line.
 */
#ifndef DQ_CLI_JUDGE_HISTORY_H
#define DQ_CLI_JUDGE_HISTORY_H

#include "base/when.h"
#include "store/db/db.h"
#include "store/fleet/event_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With is_new, counts of these last minutes are read: they may have become complete only now. */
#define HISTORY_RECENT_MS (5 * WHEN_MINUTE)

struct history_ask {
    int64_t since_at, before_at, now_at;
    const char *tag_glob, *who_glob; /* NULL: all */
    const char *events;              /* names, separated by commas; NULL: all */
    bool acts;                       /* only those of people and of procedures */
    int64_t step_ms;                 /* starts and done tasks are counted by it: whole minutes */
    int64_t steps_since_at;          /* and only in steps that begin then or later */
    size_t most;                     /* events, and failed attempts, that are read: the newest */
    /* Whether an event, with as many tasks as are known of it so far, is to be returned; NULL:
     * every one is. key: the same each time */
    bool (*is_new)(uint64_t key, uint64_t count, int64_t at, void *arg);
    void *arg;
};

struct history {
    struct event_row *lines; /* oldest first */
    size_t count, cap;
    int64_t left_at; /* some of what happened then or before is left out; TASK_TIME_NONE: nothing */
};
/* Blocks on the database. Free *ret with history_done, also after an error. */
int history_read(struct db *db, const struct history_ask *ask, struct history *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Whether there is such an event. */
bool history_knows(const char *event, size_t len);
/* Drops the lines that were not asked for. history_read has done so. */
void history_keep(struct history *h, const struct history_ask *ask);
/* The name that may have been meant; NULL: none is near. */
const char *history_nearest(const char *event);

/* The life of one task: when it was added, its attempts, the acts that touched it. ERR_NOT_FOUND:
 * there is no such task, and no act on one. */
int history_of(struct db *db, uint64_t id, struct history *ret, struct err *err)
    __attribute__((warn_unused_result));
void history_done(struct history *h);

#endif
