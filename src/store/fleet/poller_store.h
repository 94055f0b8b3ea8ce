/*
 * poller_store.h - the pollers that are alive, and their shares of the work: dq_poller. All
 * functions block on the database.
 */
#ifndef DQ_STORE_FLEET_POLLER_STORE_H
#define DQ_STORE_FLEET_POLLER_STORE_H

#include "base/column.h"
#include "base/task.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"

#define POLLER_CLOCK_NONE INT64_MIN
#define POLLER_PLACE "CONCAT_WS('\n', host, handlers_file, COALESCE(tags, ''))"
/* What is above that in the number of its handlers depends on the tags that they serve only. */
#define POLLER_SERVES_SHIFT 32

/* What this dqd knows of rows of dq_task and dq_limit that an older one would not heed. */
enum {
    POLLER_KNOWS_AGAIN = 1,
    POLLER_KNOWS_LIMITS,
    POLLER_KNOWS_PRIORITY,
    POLLER_KNOWS = POLLER_KNOWS_PRIORITY
};

struct poller_info {
    unsigned char token[TASK_TOKEN_SIZE];
    bool has_token; /* it always has */
    char *host;
    uint32_t pid;
    char *mode; /* "once", "for", "resident" */
    int slots, running;
    int64_t started_at, last_seen_at;
    int64_t stale_after_ms; /* silent for longer: dead */
    int64_t lease_ms;       /* of the tasks that it claims */
    char *version;          /* of dqd */
    bool quiet;             /* it claims nothing, as dq quiet has asked */
    bool alive;             /* or a pass has ended, and the next one is expected */
    int64_t next_pass_at;   /* by then; TASK_TIME_NONE: it has not ended, or is no pass */
    int64_t silent_ms;      /* since last_seen_at; 0 if that is ahead */
    bool ahead;             /* last seen while the server's clock was ahead: not alive */
    /* of its host, before that of the server; POLLER_CLOCK_NONE: not known yet */
    int64_t clock_ahead_ms;
    uint64_t handlers; /* what it serves, see handler_store.h; 0: nothing */
    char *handlers_file;
    char *tags;   /* globs of --tag, one a line; NULL: all tags */
    char *tzdata; /* version of the time zones of its host; "": not known */
    char *place;  /* the same of those that start one after the other in the same place */
};

/* clang-format off */
/* Its columns, as TASK_COLUMNS in base/task.h: those that are shown, and the others. X(in dq_poller
 * or defined in poller_store.c, name, type, field, cut at, flags, get, help). get is in
 * src/cli/verb/cmd_pollers.c. */
#define POLLER_STORE_COLUMNS(X) \
    X("host", "host", NAME, host, COLUMN_NARROW, 0, NULL, "where it runs") \
    X("pid", "pid", U32, pid, 0, 0, NULL, "its process id") \
    X("mode", "mode", NAME, mode, 0, 0, NULL, "once, for or resident") \
    X("slots", "slots", INT, slots, 0, 0, NULL, "how many handlers may run at a time; 0: it starts none any more") \
    X("running", "running", INT, running, 0, 0, get_running, "handlers that run") \
    X("start_time", "started", TIME, started_at, 0, 0, NULL, "when it started") \
    X("last_seen", "last_seen", TIME, last_seen_at, 0, 0, NULL, "its last heartbeat") \
    X("version", "version", NAME, version, 0, 0, NULL, "the version of dqd") \
    X(LIVES, "alive", BOOL, alive, 0, 0, get_alive, "whether its heartbeat is recent, or its next pass is expected") \
    X("next_pass", "next_pass", TIME, next_pass_at, 0, 0, NULL, "of a pass that has ended: until when it counts as alive") \
    X(QUIET, "quiet", BOOL, quiet, 0, 0, NULL, "whether dq quiet has asked it to claim nothing")
#define POLLER_STORE_MORE(X)                                                                              \
    X("token", NULL, TOKEN, token, 0, 0, NULL, "")                                                        \
    X("stale_after", NULL, MS, stale_after_ms, 0, 0, NULL, "")                                            \
    X("lease", NULL, MS, lease_ms, 0, 0, NULL, "")                                                        \
    X(SQL_SEEN_AHEAD, NULL, BOOL, ahead, 0, 0, NULL, "")                                                  \
    X(SILENT_MS, NULL, MS, silent_ms, 0, 0, NULL, "")                                                     \
    X("clock_ahead", NULL, AHEAD, clock_ahead_ms, 0, 0, NULL, "")                                         \
    X("handlers", NULL, U64, handlers, 0, 0, NULL, "")                                                    \
    X("handlers_file", NULL, TEXT, handlers_file, 0, 0, NULL, "")                                         \
    X("tags", NULL, TEXT, tags, 0, 0, NULL, "")                                                           \
    X("tzdata", NULL, NAME, tzdata, 0, 0, NULL, "")                                                       \
    X(POLLER_PLACE, NULL, TEXT, place, 0, 0, NULL, "")
/* clang-format on */

/* Whether it is a pass that has ended, and the next one is expected. */
bool poller_store_is_between(const struct poller_info *p);
/* Whether it was resident, has not ended, and is not heard any more. */
bool poller_store_is_silent(const struct poller_info *p);

/* What a poller says of itself. */
struct poller_say {
    const char *mode;   /* as above */
    int slots, running; /* slots 0: it starts none any more */
    int64_t stale_after_ms, lease_ms;
    uint64_t handlers;                /* as above */
    uint64_t serves;                  /* the same, before it is recorded */
    const char *handlers_file, *tags; /* as above */
    int64_t clock_ahead_ms;           /* as above */
    bool passes;                      /* it ends by itself, and another one is to follow */
    bool careful;                     /* do not wait for a lock on our row (one statement more) */
};

struct poller_share {
    /* its rank (by token) among the live pollers that serve the same tags, and their number; those
     * whose tags differ in one do not share any, so each task has two owners meanwhile */
    unsigned share, shares;
    unsigned alive; /* all live pollers */
    bool unheard;   /* our row is locked by another session: others may take us for dead */
    int64_t longest_lease_ms; /* of all pollers, dead ones too */
    int schema_compat;        /* as in schema.h, at that statement; 0: not known */
    int64_t now_us;           /* the database's clock at that statement, microseconds */
    bool quiet;               /* to claim nothing: it has no share then */
    int64_t slot_at;          /* the next slot of a schedule; TASK_TIME_NONE: there is none */
    bool slots, open_slots;   /* dq_slot has rows, and some whose runs have not ended */
    uint64_t limits;          /* differs if a limit has been changed */
    bool decided_ahead;       /* slots, or holds of limits: see ahead_store.h */
    /* of one that passes: since the last pass on this host began; -1: none is known */
    int64_t since_pass_ms;
    uint64_t ending; /* processes of those that poller_store_ending reports */
};
/* Records that this poller is alive, and returns its share. Two statements, and one more if the
 * server's clock was ahead when a poller was last seen, which then counts as seen now. */
int poller_store_beat(struct db *db, const struct claim_owner *owner, const struct poller_say *say,
                      struct poller_share *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Tasks of a tag that run, or are claimed. */
struct poller_tasks {
    char *tag;
    unsigned char token[TASK_TOKEN_SIZE]; /* of the dqd, if they were counted by dqd */
    bool has_token;
    uint64_t tasks, part; /* part: of these */
};
/* Counts them by tag, and by dqd if asked to: those for which `of`, SQL that follows a condition,
 * holds. part: an expression that is summed up. Without `by_dqd`, `of` and `part` it reads an index
 * only. One statement; free *ret with poller_store_tasks_free. */
int poller_store_tasks(struct db *db, bool by_dqd, const char *part, const char *of,
                       struct poller_tasks **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void poller_store_tasks_free(struct poller_tasks *t, size_t count);
/* The same of the dqds of this host that start none any more; of those only with the same handlers
 * file and --tag as ours. */
int poller_store_ending(struct db *db, const struct claim_owner *owner, struct poller_tasks **ret,
                        size_t *ret_count, struct err *err) __attribute__((warn_unused_result));
/* ERR_CONFIG, which names it, if a live dqd does not know this. */
int poller_store_check_knows(struct db *db, int what, struct err *err)
    __attribute__((warn_unused_result));
/* Removes this poller, and pollers that have been silent for a day. Two statements. */
int poller_store_leave(struct db *db, const struct claim_owner *owner, struct err *err)
    __attribute__((warn_unused_result));
/* The same for a pass that has ended. It stays in the list, in place of earlier ones of this host,
 * and counts as alive until the next one, which is expected within next_ms. But if a resident dqd
 * of this host serves the same, somebody has run the pass beside it: no next one is expected. */
int poller_store_pass_ended(struct db *db, const struct claim_owner *owner,
                            const struct poller_say *say, int64_t next_ms, struct err *err)
    __attribute__((warn_unused_result));
/* Lists all pollers, by host and pid. Free *ret with poller_store_free. */
int poller_store_list(struct db *db, struct poller_info **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void poller_store_free(struct poller_info *p, size_t count);

#endif
