/*
 * limit_store.h - limits: how many tasks may start, how fast and in which hours; and pauses of
 * tags, of which no dqd starts a task. All functions block on the database.
 */
#ifndef DQ_STORE_FLEET_LIMIT_STORE_H
#define DQ_STORE_FLEET_LIMIT_STORE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/fleet/event_store.h"
#include "store/row/limit_row.h"
#include "store/row/tag_info.h"

/* A dqd that is to be quiet has a row of dq_limit, too: a name that no tag of dq add can have,
 * because of the blank. "dqd HOST" or "dqd HOST:PID". */
#define LIMIT_STORE_DQD "dqd "

struct limit_paused {
    int64_t now_at;       /* the clock at that statement */
    bool glob;            /* its tag is a glob, and pauses all that match */
    struct tag_info info; /* its tag and pause alone; tag NULL: none is paused */
};
/* Lists the tags and globs that are paused (tag NULL), or those that pause a tag: or one entry
 * without a tag. Free *ret with limit_store_paused_free. */
int limit_store_paused(struct db *db, const char *tag, struct limit_paused **ret, size_t *ret_count,
                       struct err *err) __attribute__((warn_unused_result));
void limit_store_paused_free(struct limit_paused *p, size_t count);
/* The pause of a tag that ends last; its tag is that of the pause, which may be a glob. Free what
 * *ret points to with limit_store_tag_done. */
int limit_store_tag(struct db *db, const char *tag, struct tag_info *ret, struct err *err)
    __attribute__((warn_unused_result));
void limit_store_tag_done(struct tag_info *t);

/* Lists the rows that say something (name NULL) or, with past, ever did; or one entry or none. Free
 * *ret with limit_store_free. */
int limit_store_list(struct db *db, const char *name, bool past, struct limit_row **ret,
                     size_t *ret_count, struct err *err) __attribute__((warn_unused_result));
/* Lists those with one of the names (at least one), and globs, that may keep tasks from being
 * started, whatever runs: limit_ask says whether they do. */
int limit_store_stops(struct db *db, const char *const *names, size_t count, struct limit_row **ret,
                      size_t *ret_count, struct err *err) __attribute__((warn_unused_result));
void limit_store_free(struct limit_row *rows, size_t count);

/* What to change of a limit. */
struct limit_set {
    bool clear;         /* first, all of it, but for pauses */
    int64_t running;    /* -1: not to be changed; 0: as the handlers say */
    struct rate rate;   /* count 0: not to be changed */
    const char *hours;  /* canonical; NULL: not to be changed */
    const char *reason; /* NULL: none */
};
/* Changes the limit that the act names by its tag, and records it. 1: done; 0: there was nothing to
 * clear. */
int limit_store_set(struct db *db, struct event_act *act, const struct limit_set *set,
                    struct err *err) __attribute__((warn_unused_result));
/* Holds the limit for so long from now on, if it is not held longer. */
int limit_store_hold(struct db *db, const char *name, int64_t for_ms, const char *reason,
                     struct err *err) __attribute__((warn_unused_result));

/* What became of attempts under the limit that the act names by its tag. */
struct limit_break {
    int64_t rest_ms;    /* it rests for so long, or longer the more often in a row; 0: it is open */
    const char *reason; /* of the rest */
    uint64_t version;   /* nobody may have changed it since; or ... */
    int64_t start_at; /* an attempt that began then has tried whether it is to open; 0: none has */
};
/* Records it with the act, once for all dqds. 1: done; 0: another dqd or a person came first. */
int limit_store_break(struct db *db, struct event_act *act, const struct limit_break *b,
                      struct err *err) __attribute__((warn_unused_result));

/* Pauses the tag of an act, or all that match it as a glob, until an instant (INT64_MAX: until
 * resumed; TASK_TIME_NONE: for for_ms from now). The act is recorded. Running handlers are not
 * affected. Always 1 on success. */
int limit_store_pause(struct db *db, struct event_act *act, bool glob, int64_t until_at,
                      int64_t for_ms, const char *reason, struct err *err)
    __attribute__((warn_unused_result));
/* Ends a pause, a hold, and the rest of a breaker. 1: there was one, 0: not, and nothing is
 * recorded. */
int limit_store_resume(struct db *db, struct event_act *act, struct err *err)
    __attribute__((warn_unused_result));

#endif
