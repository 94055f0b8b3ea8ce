/*
 * event_store.h - what operators did, and when a dqd began and ended: dq_event. All functions block
 * on the database.
 */
#ifndef DQ_STORE_FLEET_EVENT_STORE_H
#define DQ_STORE_FLEET_EVENT_STORE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"

#include <stdbool.h>

#define EVENT_STORE_ARGUMENTS_MAX 1000 /* characters */

/* One act. Each of its transactions that changes something writes a row. */
struct event_act {
    unsigned char token[TASK_TOKEN_SIZE]; /* random: of all its rows */
    const char *actor;                    /* "alice@db1" */
    const char *verb;                     /* "cancel" */
    const char *arguments;                /* as on the command line; NULL: none */
    const char *tag;                      /* NULL: none, or several */
    uint64_t task_id;                     /* 0: none, or several */
};

/* Adds a row of an act, in whose transaction `tasks` were changed: refs, unless that is NULL or the
 * act is about one. Call it in that transaction. NULL does nothing. */
int event_store_add(struct db *db, const struct event_act *act, const struct claim_ref *refs,
                    uint64_t tasks, struct err *err) __attribute__((warn_unused_result));

#define EVENT_STORE_DIGEST_SIZE 17
/* Stores the first 16 hex digits of the SHA-256 of a text, which the server computes. */
int event_store_digest(struct db *db, const char *text, char ret[EVENT_STORE_DIGEST_SIZE],
                       struct err *err) __attribute__((warn_unused_result));

/* Adds a row of a dqd about itself, "dqd-start", "dqd-end" or "dqd-back", once for each value of
 * which. */
int event_store_add_own(struct db *db, const struct claim_owner *owner, const char *verb,
                        int64_t which, const char *arguments, struct err *err)
    __attribute__((warn_unused_result));
/* Adds a row "dqd-lost" for each dqd that has fallen silent, unless there is one of that silence.
 * Another dqd, the owner, calls it: they cannot. Its own row may be old if it is locked, or if the
 * process was stopped for a while: that is no loss. *ret_count: how many were added. */
int event_store_add_lost(struct db *db, const struct claim_owner *owner, uint64_t *ret_count,
                         struct err *err) __attribute__((warn_unused_result));

/* What happened, as it is shown: an act as it is read, or failures, starts and ends of tasks. Texts
 * are heap memory, freed by event_store_done. */
struct event_row {
    int64_t at;     /* of an act: of its first change */
    char *who;      /* NULL: no operator and no dqd; the account that called a procedure */
    char *event;    /* a verb; "dqd-start", "dqd-end", "dqd-lost", "dqd-back"; "started", "failed",
                       "done" */
    char *tag;      /* NULL: none, or several */
    uint64_t count; /* tasks, so far; started, failed: attempts; 0: it is about none */
    uint64_t id;    /* 0: none, or several */
    char *detail;   /* the arguments of an act, the error of failures; NULL: none */
    unsigned char token[TASK_TOKEN_SIZE];
    bool has_token; /* of an act, which always has one */
    bool by_procedure;
};
/* clang-format off */
/* Its columns, as TASK_COLUMNS in base/task.h: those that are shown, and the others. X(in dq_event,
 * name, type, field, cut at, flags, get, help). get is in src/cli/verb/cmd_events.c. */
#define EVENT_STORE_COLUMNS(X) \
    X("e.event_time", "time", TIME, at, 0, 0, NULL, "when it happened") \
    X("e.actor", "who", NAME, who, COLUMN_NARROW, 0, NULL, "the person, dqd or account") \
    X("e.verb", "event", NAME, event, 0, 0, get_event, "what happened: a command, or started, done, failed") \
    X("e.tag", "tag", TAGS, tag, COLUMN_NARROW, 0, NULL, "the tag; none: several") \
    X("(SELECT SUM(s.tasks) FROM dq_event s FORCE INDEX (PRIMARY) WHERE s.token = e.token)", "count", ID, count, 0, 0, NULL, "tasks") \
    X("e.task_id", "id", ID, id, 0, 0, NULL, "the task, if it is one") \
    X("(SELECT z.arguments FROM dq_event z FORCE INDEX (PRIMARY) WHERE z.token = e.token AND z.step = 0)", \
      "detail", TEXT, detail, 100, 0, get_detail, "options of a command, or the error")
#define EVENT_STORE_MORE(X)                                                                               \
    X("e.token", NULL, TOKEN, token, 0, 0, NULL, "")                                                      \
    X("e.by_procedure", NULL, BOOL, by_procedure, 0, 0, NULL, "")
/* clang-format on */

/* Lists the acts of people and dqds, or those of procedures, of a time, since_at <= time <
 * before_at, newest first, `most` at most. *ret_left_at: when the newest of those that are left out
 * was; TASK_TIME_NONE: none is. Free *ret with event_store_free. */
int event_store_list(struct db *db, bool by_procedure, int64_t since_at, int64_t before_at,
                     size_t most, struct event_row **ret, size_t *ret_count, int64_t *ret_left_at,
                     struct err *err) __attribute__((warn_unused_result));
/* The same for the acts on a task at since_at or later, oldest first; `at` is when this task was
 * changed. */
int event_store_list_of(struct db *db, uint64_t task_id, int64_t since_at, struct event_row **ret,
                        size_t *ret_count, struct err *err) __attribute__((warn_unused_result));
/* event_store_done: leaves the rows themselves to the caller. */
void event_store_done(struct event_row *rows, size_t count);
void event_store_free(struct event_row *rows, size_t count);

/* Whether an act with this verb began at since_at or later: 1 or 0. */
int event_store_has(struct db *db, const char *verb, int64_t since_at, struct err *err)
    __attribute__((warn_unused_result));

/* The dqd whose end was recorded last, in the last within_ms: 1, or 0 if there is none. *ret_host
 * is heap memory. */
int event_store_last_end(struct db *db, int64_t within_ms, char **ret_host, int64_t *ret_ago_ms,
                         struct err *err) __attribute__((warn_unused_result));

/* Deletes up to `limit` rows that are older than age_ms. */
int event_store_expire(struct db *db, bool by_procedure, int64_t age_ms, size_t limit,
                       size_t *ret_deleted, struct err *err) __attribute__((warn_unused_result));

#endif
