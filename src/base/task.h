/*
 * task.h - what a task is, the states it can be in, and the only ways from one to another.
 */
#ifndef DQ_BASE_TASK_H
#define DQ_BASE_TASK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define TASK_TAG_MAX 128 /* characters (code points), as in the column */
/* for a NUL in a tag or key of an application's; no byte of UTF-8. A task with such a tag is shown,
 * not run */
#define TASK_TAG_NUL '\xff'
#define TASK_KEY_MAX 255         /* characters */
#define TASK_TOKEN_SIZE 16       /* bytes of a claim token */
#define TASK_TIME_NONE INT64_MIN /* "no such instant": SQL NULL */
/* 0000-01-01: for a DATETIME that is no date, as 0000-00-00; long past */
#define TASK_TIME_ZERO (INT64_C(-719528) * 86400000)

/* The numbers are those of the column `status`. */
enum task_status {
    TASK_PENDING = 0,
    TASK_DONE = 1,
    TASK_FAILED = 2,
    TASK_RUNNING = 3,
    TASK_CANCELLED = 4,
    TASK_STATUS_COUNT
};
/* the column holds a number that is none of these; no event leads from it */
#define TASK_STATUS_UNKNOWN ((int)TASK_STATUS_COUNT)

/* Of the due tasks of a tag, those of a higher level start first. */
enum task_level { TASK_NORMAL, TASK_HIGH, TASK_LOW, TASK_LEVELS };
extern const enum task_level task_levels[TASK_LEVELS];      /* the highest one first */
extern const char *const task_level_names[TASK_LEVELS + 1]; /* the last one is NULL */
int task_level_parse(const char *name);                     /* -1: none of them */
#define TASK_LEVEL_RULE "is none of high, normal and low"
#define TASK_LEVEL_BIT(level) (1u << (level))
/* Of the starts of a tag each level that has tasks due gets one in seven, hence one of any eight
 * even if the turns of two levels come at once. */
#define TASK_LEVEL_PART 7
/* How many of `count` starts each of these levels is owed before those above it. passed: starts of
 * all levels since it had its part. */
void task_levels_owed(unsigned levels, const size_t passed[TASK_LEVELS], size_t count,
                      size_t ret[TASK_LEVELS]);

#define TASK_BIT(status) (1u << (status))
#define TASK_LIVE (TASK_BIT(TASK_PENDING) | TASK_BIT(TASK_RUNNING))
#define TASK_FINISHED (TASK_BIT(TASK_DONE) | TASK_BIT(TASK_FAILED) | TASK_BIT(TASK_CANCELLED))
#define TASK_ANY (TASK_LIVE | TASK_FINISHED | TASK_BIT(TASK_STATUS_UNKNOWN))

/* "pending", "done", "failed", "running", "cancelled"; "unknown" for a number that is none of
 * them. */
const char *task_status_name(int status);
/* The status of that name (also "canceled"; "unknown"), or -1. */
int task_status_parse(const char *name);

/* Every transition adds to the version, every claim to the attempt. No real row comes near these
 * numbers; a row of an application beyond them is not claimed: the columns would soon overflow. */
#define TASK_VERSION_MOST (UINT64_MAX - 1000000)
#define TASK_ATTEMPT_MOST (UINT32_MAX - 1000000)
bool task_countable(uint64_t version, uint32_t attempt);

/* Everything that moves a task. One row of the transition table each. */
enum task_event {
    TASK_CLAIM,   /* pending -> running: attempt + 1 */
    TASK_SUCCEED, /* running -> done */
    /* running -> pending at a later time: the attempt failed and others are left */
    TASK_TRY_LATER,
    /* running -> pending at a later time, the attempt given back: the handler asked for that */
    TASK_SNOOZE,
    TASK_GIVE_UP, /* running -> failed: exhausted, or a permanent failure */
    /* running -> pending, in place of the two ways to end: it was added again while it ran */
    TASK_AGAIN,
    TASK_GIVE_BACK, /* running -> pending, the attempt given back: it was never started */
    /* running -> pending, due at once or soon: the owner is gone (lease expired, runner died); the
     * attempt counts */
    TASK_TAKE_BACK,
    TASK_CANCEL,     /* pending or running -> cancelled */
    TASK_EXPIRE,     /* pending -> cancelled: not started in time */
    TASK_RETRY,      /* failed, cancelled or done -> pending: a new ladder, attempt = 0 */
    TASK_RESCHEDULE, /* pending -> pending with another expected time */
    TASK_EVENT_COUNT
};
/* How the error of a task begins that has expired. */
#define TASK_EXPIRED "expired:"
bool task_has_expired(int status, const char *error);

/* What a transition does to the time at which the task is due. */
enum task_due {
    DUE_KEPT,
    DUE_GIVEN,   /* given with the transition: an instant, or a delay from the statement on */
    DUE_RETRIED, /* after the delay of the retry ladder */
    /* kept the first time, then at random within seconds, apart from tasks claimed with it */
    DUE_APART,
};

/* Whether the attempt that ends with a transition gets a row of dq_attempt. */
enum task_history {
    HISTORY_NONE,     /* none ends */
    HISTORY_OPTIONAL, /* if history in [dqd] asks for it */
    HISTORY_IF_ERROR, /* only if it has an error */
    HISTORY_ALWAYS,
};

struct task_transition {
    enum task_event event;
    unsigned from; /* mask of TASK_BIT() */
    enum task_status to;
    int attempt_change; /* +1, 0, -1 */
    bool new_ladder;    /* attempt = 0 */
    bool unstarted;     /* the attempt was never started: execution_time is emptied */
    /* delay_time becomes that until the first due time, if none was asked for: snoozes count from
     * there, and expected_time moves. It is 0 after another time was given. */
    bool keeps_first;
    enum task_due due;
    enum task_history history;
};
/* The row of an event; never NULL. */
const struct task_transition *task_transition(enum task_event event);

/* A row of dq_task in memory. Strings are NUL-terminated, body and output may contain NULs. Heap
 * memory, freed by task_done. */
struct task {
    uint64_t id;
    char *tag;
    char *key;             /* NULL: none */
    void *body;            /* NULL: not loaded */
    size_t body_size;      /* bytes; SIZE_MAX: unknown until the body is loaded */
    int status;            /* enum task_status */
    int level;             /* enum task_level */
    uint64_t version;      /* +1 on every transition */
    uint32_t run;          /* how often it was begun again: another body, or it was done */
    uint32_t attempt;      /* attempts started so far */
    uint32_t max_attempts; /* 0: the handler's ladder decides (set for good at the first claim) */
    unsigned char claim_token[TASK_TOKEN_SIZE];
    bool claimed; /* claim_token is set: of the last owner */
    char *host;   /* of the last owner; NULL: never claimed */
    uint32_t pid; /* dqd's pid on that host */
    /* all instants: ms since the epoch, UTC, by the database's clock; TASK_TIME_NONE for NULL */
    int64_t lease_until_at;
    int64_t delay_ms;     /* as asked by the producer */
    int64_t expected_at;  /* when it is due */
    int64_t execution_at; /* start of the last attempt */
    int64_t finish_at;    /* when it became done, failed or cancelled */
    int exit_code;        /* of the last attempt; -1: none */
    int signal;           /* that ended the last attempt; 0: none */
    char *error;          /* column error_stack: why the last attempt failed; NULL: it did not */
    void *output;         /* tail of the last attempt's output; NULL: none or not loaded */
    size_t output_size;
    int64_t create_at, update_at;
    int64_t expires_at; /* not started from then on */
    /* it was added again while it runs: when it is due afterwards, TASK_TIME_NONE: it was not; and
     * its body then, NULL: not loaded */
    int64_t again_at;
    void *again_body;
    size_t again_size;
    /* a schedule added it: how many missed slots it stands for, too; -1: none did */
    int missed_slots;
    int64_t late_from_at; /* as task_late_from, if a claim won it; else TASK_TIME_NONE */
    int64_t start_at;     /* of one that a claim won: not before, because of a rate; 0: when due */
    int64_t late_us;      /* then: the distance of two starts */
    int64_t close_at;     /* of one that a claim won: the hours of its limit end then; 0: never */
    uint32_t company;     /* tasks per process, if a claim won it: share it with equals only */
};
/* clang-format off */
/* Its columns (column.h): what the store reads of dq_task, and what is shown and moved. In the order
 * in which they are shown; those behind the body are not in lists. To add a column, add a field and
 * a row: X(number in sets, in dq_task, name, type, field, cut at, flags, get, help). get is in
 * src/cli/show/task_columns.c. */
#define TASK_COLUMNS(X)                                                                                                              \
    X(ID, "id", "id", ID, id, 0, COLUMN_NEEDED, NULL, "number of the task")                                                          \
    X(TAG, "tag", "tag", TAG, tag, COLUMN_NARROW, COLUMN_NEEDED, NULL, "tag, which selects the handler")                             \
    X(KEY, "task_key", "key", KEY, key, 40, COLUMN_MOVES, NULL, "key, unique per tag among pending and running tasks")               \
    X(STATUS, "status", "status", STATUS, status, 0, COLUMN_NEEDED, get_status, "pending, running, done, failed or cancelled")       \
    X(ATTEMPT, "attempt", "attempt", U32, attempt, 0, COLUMN_MOVES, NULL, "attempts started so far")                                 \
    X(MAX_ATTEMPTS, "max_attempts", "max_attempts", SOME, max_attempts, 0, COLUMN_MOVES, NULL,                                       \
      "attempts allowed; empty: not set yet, the handler's retry list decides")                                                      \
    X(LEVEL, "priority", "priority", LEVEL, level, 0, COLUMN_MOVES, NULL, "high or low, if its priority is not normal")              \
    X(DUE_IN, NULL, "due_in", MS, expected_at, 0, 0, get_due_in, "pending tasks: time until it is due; empty: it is due")            \
    X(LATE, NULL, "late", MS, late_from_at, 0, 0, get_late, "how late it is, or how late its last attempt started")                  \
    X(EXPECTED, "expected_time", "expected", DUE, expected_at, 0, COLUMN_NEEDED, NULL, "when it is due")                             \
    X(EXPIRES, "expires_time", "expires_at", TIME, expires_at, 0, COLUMN_MOVES, NULL,                                                \
      "it is cancelled if it has not started by then")                                                                               \
    X(MISSED, "missed_slots", "missed", EXIT, missed_slots, 0, COLUMN_MOVES, NULL,                                                     \
      "tasks of schedules: the missed slots that it stands for besides its own")                                                    \
    X(EXECUTION, "execution_time", "started", TIME, execution_at, 0, COLUMN_MOVES, NULL, "start of the last attempt")                \
    X(FINISH, "finish_time", "finished", TIME, finish_at, 0, COLUMN_MOVES, NULL, "when it became done, failed or cancelled")         \
    X(TOOK, NULL, "took", MS, execution_at, 0, 0, get_took,                                                                          \
      "run time of the last attempt of a finished task; of a running one, so far")                                                   \
    X(DELAY, "delay_time", "delay", MS, delay_ms, 0, COLUMN_MOVES, NULL, "delay as requested")                                       \
    X(CREATE, "create_time", "created", TIME, create_at, 0, COLUMN_NEEDED, NULL, "when it was added")                                \
    X(UPDATE, "update_time", "updated", TIME, update_at, 0, COLUMN_MOVES, NULL, "last change of state")                              \
    X(HOST, "host", "host", TEXT, host, COLUMN_NARROW, COLUMN_MOVES, NULL, "host of the last owner")                                 \
    X(PID, "pid", "pid", SOME, pid, 0, COLUMN_MOVES, NULL, "process id of dqd on that host")                                         \
    X(LEASE_UNTIL, "lease_until", "lease_until", TIME, lease_until_at, 0, 0, NULL, "running tasks: when another dqd may take it over") \
    X(AGAIN, "again_time", "again", TIME, again_at, 0, 0, NULL, "tasks added again while they run: when they are due afterwards")      \
    X(EXIT_CODE, "exit_code", "exit", EXIT, exit_code, 0, COLUMN_MOVES, NULL, "exit status of the last attempt")                     \
    X(SIGNAL, "`signal`", "signal", SIGNAL, signal, 0, COLUMN_MOVES, NULL, "signal that ended the last attempt")                     \
    X(ERROR, "error_stack", "error", TEXT, error, 60, COLUMN_MOVES, NULL, "why the last attempt failed")                             \
    X(VERSION, "version", "version", U64, version, 0, COLUMN_MOVES, NULL, "number of state changes")                                 \
    X(RUN, "run", "run", U32, run, 0, COLUMN_MOVES, NULL, "times it was begun again: with another body, or after it was done")        \
    X(BODY_SIZE, "body_size", "size", SIZE, body_size, 0, 0, NULL, "bytes of the body")                                              \
    X(BODY, "message_body", "body", BYTES, body, 60, COLUMN_MOVES, NULL, "the body")                                                 \
    X(AGAIN_BODY, "again_body", "again_body", BYTES, again_body, 0, 0, NULL, "its body then")                                        \
    X(OUTPUT, "output", "output", BYTES, output, 0, COLUMN_MOVES, NULL, "the end of the output of the last attempt")                 \
    X(TOKEN, "claim_token", "claim", TOKEN, claim_token, 0, COLUMN_MOVES, NULL, "the last owner")
/* clang-format on */

/* all empty: times TASK_TIME_NONE, exit_code -1, body_size SIZE_MAX */
void task_init(struct task *t);
void task_done(struct task *t); /* frees what it points to; t itself stays the caller's */

/* Appends what names a run: the id, and from the second run on -N. Its attempts have it, and
 * nothing else in this database. */
void task_put_run_id(struct buf *b, uint64_t id, uint32_t run);

/* From when on the start of a task is late: when it was due, created, or became pending again,
 * whichever was last. A task that is given a time in the past is not late by that. Being claimed
 * and given back, without a start, changes nothing. SQL_LATE_FROM in store/row/sql.h is the same.
 */
int64_t task_late_from(const struct task *t);

/* How an attempt ended, as stored in dq_attempt.outcome (these very names). */
enum task_outcome {
    OUTCOME_DONE,          /* "done" */
    OUTCOME_EXIT,          /* "exit": a non-zero exit status */
    OUTCOME_SIGNAL,        /* "signal" */
    OUTCOME_TIMEOUT,       /* "timeout" */
    OUTCOME_LEASE_EXPIRED, /* "lease-expired": taken back from an owner that stopped renewing */
    /* "runner-died": the runner process went away, its handlers were killed */
    OUTCOME_RUNNER_DIED,
    OUTCOME_CANCELLED, /* "cancelled": while it ran */
    OUTCOME_RELEASED,  /* "released": given back, it was never started */
    OUTCOME_VERDICT,   /* "verdict": the handler said retry or fail */
    /* "killed": by dqd itself (second SIGTERM, drain timeout, lease about to end) */
    OUTCOME_KILLED,
    OUTCOME_SNOOZED, /* "snoozed": the handler asked for another time */
    OUTCOME_COUNT
};
const char *task_outcome_name(int outcome);
#define TASK_SNOOZED_TEXT "snoozed"       /* how the error of such an attempt begins */
int task_outcome_parse(const char *name); /* -1: none of them */

/* Which names dq accepts, so that a name means the same to people, shells, globs and the server. A
 * tag: 1 to TASK_TAG_MAX characters of valid UTF-8, not beginning with '-', without white space
 * (Unicode's), control characters (C0, DEL, C1), characters that show nothing (text_char_hidden),
 * quotes (' " `), backslash and * ? , - and the name of a handler, where * and ? are wildcards, the
 * same. A key: 1 to TASK_KEY_MAX characters of valid UTF-8 without control characters, and without
 * white space at either end. ERR_DATA with a text that names the rule and the byte. Rows that
 * applications insert may break these rules: see task_tag_length. */
int task_check_tag(const char *tag, size_t len, struct err *err)
    __attribute__((warn_unused_result));
int task_check_tag_glob(const char *glob, size_t len, struct err *err)
    __attribute__((warn_unused_result));
int task_check_key(const char *key, size_t len, struct err *err)
    __attribute__((warn_unused_result));

/* A tag, a glob or a key by which tasks are selected. Rows of applications may break the rules, so
 * only a blank at the end is refused: to the server it does not count. ERR_DATA. */
int task_check_wanted(const char *name, struct err *err) __attribute__((warn_unused_result));
/* The same of a glob, in which a comma is refused, too: it would seem to separate globs. */
int task_check_tag_wanted(const char *glob, struct err *err) __attribute__((warn_unused_result));

/* A glob for tags of rows that dq would not have added: ? for what separates globs. Heap memory. */
char *task_tag_as_glob(const char *tag);

/* The length of a tag without its trailing blanks, which do not count: to the server 'mail' and
 * 'mail ' are equal. Tags that were read from the database have lost theirs, so that strcmp finds
 * the same ones equal as the server. */
size_t task_tag_length(const char *tag, size_t len);

/* Whether two tags or two keys of rows are equal to the server: trailing blanks do not count. */
bool task_same_name(const char *a, const char *b);

/* Whether a tag matches one of several globs, a line each: '*' any run, '?' one character, the rest
 * literally. No brackets, no escapes. Trailing blanks of a glob do not count. globs NULL: it does.
 */
bool task_tag_glob(const char *globs, const char *tag);

#endif
