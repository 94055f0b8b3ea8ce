/*
 * claim_store.h - dqd's side: what is due, taking it, keeping it, giving it back. Every statement of the claiming protocol.
 *
 * All functions block on the database. None opens a transaction longer than its own two or three statements.
 */
#ifndef DQ_STORE_CLAIM_STORE_H
#define DQ_STORE_CLAIM_STORE_H

#include "base/task.h"
#include "store/db.h"
#include "store/rows.h"

/* Who claims: one process of dqd. */
struct claim_owner {
    unsigned char token[TASK_TOKEN_SIZE]; /* random, new for every process */
    const char *host;
    uint32_t pid;
};

/* The server's max_allowed_packet. ERR_CONFIG, which names it: statements as long as those below would not fit. */
int claim_store_max_packet(struct db *db, size_t *ret_bytes, struct err *err) __attribute__((warn_unused_result));

/* What is waiting, by tag. */
struct claim_peek_tag {
    char *tag;
    int64_t next_at; /* the earliest expected time of a pending task of this tag */
};
struct claim_peek {
    int64_t now_us; /* the database's clock, microseconds, read by the same statement; 0: nothing waits, no row told it */
    struct claim_peek_tag *tags;
    size_t count, cap; /* kept between calls: init with {0}, claim_peek_done at the end */
};
/* One statement: a loose index scan of `due` for the pending tasks. For seconds after a bulk insert, until the server renews its
 * statistics, it reads every pending entry instead. limit_ms: the server gives it up after that, which is ERR_TRANSIENT; 0:
 * never. */
int claim_store_peek(struct db *db, int64_t limit_ms, struct claim_peek *p, struct err *err) __attribute__((warn_unused_result));
/* The same of what was inserted last, at most CLAIM_NEWS_MOST rows with an id above *id, whatever else there is: tags, and when the
 * earliest of these tasks is due. *id becomes the greatest id of them. */
#define CLAIM_NEWS_MOST 5000
int claim_store_news(struct db *db, uint64_t *id, struct claim_peek *p, struct err *err) __attribute__((warn_unused_result));
void claim_peek_done(struct claim_peek *p);
/* Where to begin: nothing is pending, as far as is known, that is due before `at`, or just then with an id of `id` or less. {0}:
 * not known. While some session holds an old snapshot, what was drained stays in the index; a floor spares passing over it. */
struct claim_floor {
    int64_t at;
    uint64_t id;
};
/* The same of one tag: when its earliest pending task above the floor is due; TASK_TIME_NONE and clock 0: there is none. */
int claim_store_next(struct db *db, const char *tag, const struct claim_floor *floor, int64_t *ret_now_us, int64_t *ret_next_at,
                     struct err *err) __attribute__((warn_unused_result));

/* A list of tasks that owns them. */
struct task_list {
    struct task *items;
    size_t count, cap;
    bool lies; /* after a claim: the body_size of some row is not true */
};
void task_list_done(struct task_list *l);

struct claim_ask {
    const char *tag;
    size_t limit;             /* at most so many */
    int64_t early_ms;         /* also what is due so soon: the caller starts nothing before its time */
    struct claim_floor floor; /* of our share */
    unsigned share, shares;   /* prefer the ids of this share, 0 to shares - 1; shares 1: all */
    unsigned steal_share;     /* another share: when ours has too few, ids of this one that are overdue by steal_after_ms */
    int64_t steal_after_ms;
    bool steal_far_end;    /* of these the latest first: out of their owner's way, but never always, for the oldest would starve */
    uint32_t max_attempts; /* written to rows that have none */
    int64_t lease_ms;
    uint32_t global_limit; /* running tasks of the tag on all hosts; 0: none */
    bool without_bodies;   /* bring no bodies */
    /* After rows that could not be taken: */
    bool careful;          /* as rows_run */
    bool skip_locked;      /* if the server can: leave out all that is locked, however much that is */
    const uint64_t *aside; /* leave these out */
    size_t aside_count;
};
/* The claim of one tag, unless an operator has paused it (nothing is found then): candidates by the index, then one UPDATE by (id,
 * version). Appends to `won` the tasks that are now ours: status running, version and attempt as after the claim. Bodies up to 16
 * KiB come along, longer ones have body NULL (claim_store_load_bodies), with a body_size that is not to be trusted; SIZE_MAX: not
 * known, or a lie. *ret_seen: candidates found; *ret_lost: those somebody else took; *faults gets those that could not be taken:
 * locked (ERR_LOCKED), or refused (NULL: the first failure is returned). ERR_LOCKED itself: the tag's row of dq_tag is locked. With
 * a global limit the two statements run in one short transaction that locks the tag's row of dq_tag, so that the limit holds across
 * hosts. After ERR_LOST the caller reconnects and calls claim_store_recover: what the broken UPDATE took is ours and would
 * otherwise wait for its lease to end. */
int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask, struct task_list *won,
                      size_t *ret_seen, size_t *ret_lost, struct row_faults *faults, struct err *err)
    __attribute__((warn_unused_result));

/* Running tasks that carry our token but are not among known[] (sorted ascending): claimed by an UPDATE whose answer was lost.
 * Appends them to ret, like claim_store_claim. */
int claim_store_recover(struct db *db, const struct claim_owner *owner, const uint64_t *known, size_t count, struct task_list *ret,
                        struct err *err) __attribute__((warn_unused_result));

/* Sets body_size to what the bodies really have; SIZE_MAX: the row is gone. */
int claim_store_measure(struct db *db, struct task *const *tasks, size_t count, struct err *err)
    __attribute__((warn_unused_result));
/* Loads the bodies of tasks that have none, from the front, in one statement: as many as have at most max_bytes by their body_size
 * together, always at least one. *ret_loaded: how many from the front have one now; 0: the first one's row is gone. */
int claim_store_load_bodies(struct db *db, struct task *const *tasks, size_t count, size_t max_bytes, size_t *ret_loaded,
                            struct err *err) __attribute__((warn_unused_result));

/* What is still ours: sets lost[i] for tasks[i] (id, version) whose row no longer carries our token at that version as running. */
struct claim_ref {
    uint64_t id, version;
};
int claim_store_check(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs, size_t count, bool *lost,
                      struct err *err) __attribute__((warn_unused_result));
/* The same, and the leases of those still ours now end lease_ms after the statement: one UPDATE, if no row is bad. faults, careful:
 * as rows_run; the leases of those in *faults are as before. */
int claim_store_renew(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs, size_t count, int64_t lease_ms,
                      bool careful, bool *lost, struct row_faults *faults, struct err *err) __attribute__((warn_unused_result));

/* The end of an attempt. */
struct settlement {
    uint64_t id, version;  /* as claimed */
    enum task_event event; /* TASK_SUCCEED, TASK_TRY_LATER, TASK_GIVE_UP, TASK_RELEASE, TASK_TAKE_BACK */
    enum task_outcome outcome;
    int64_t retry_delay_ms;      /* TASK_TRY_LATER: due so long after the statement; otherwise the expected time stays */
    int64_t start_at, finish_at; /* by the database's clock as the poller knows it; TASK_TIME_NONE: never started */
    int exit_code, signal;       /* -1, 0: none */
    const char *error;           /* NULL: none */
    const void *output;          /* tail; NULL: none */
    size_t output_size;
};
/* Settles all of them: successes in one UPDATE, the others with their rows of dq_attempt in one short transaction. applied[i] tells
 * whether the row was still ours, also after an earlier call with the same settlement broke off with ERR_LOST: calling again
 * with the same array is safe and never applies one twice. history_all: successes get a row of dq_attempt too. A release that says
 * no error (never started, as dqd is stopping) leaves none. The beginning of an output that does not fit into max_allowed_packet is
 * cut off, and a line says so. A row of dq_attempt that is there already for that task and version is from before a TRUNCATE or a
 * partial restore, and gives way. faults, careful: as rows_run; those in *faults are not applied. */
int claim_store_settle(struct db *db, const struct claim_owner *owner, const struct settlement *s, size_t count, bool history_all,
                       bool careful, bool *applied, struct row_faults *faults, struct err *err) __attribute__((warn_unused_result));

/* Running tasks whose lease has ended, whoever owned them, but for those of but[]: id, tag, version, attempt, max_attempts, host,
 * pid, execution_at. At most limit. */
int claim_store_expired(struct db *db, const uint64_t *but, size_t but_count, size_t limit, struct task_list *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Takes them back: TASK_TAKE_BACK (due at once, or soon when it is not the first time) or TASK_GIVE_UP (give_up[i]), each with its
 * row of dq_attempt (lease-expired), only where status, version and the ended lease still hold: taken[i]. In transactions of at
 * most 100 tasks. faults, careful: as rows_run. */
int claim_store_take_back(struct db *db, const struct task_list *expired, const bool *give_up, bool careful, bool *taken,
                          struct row_faults *faults, struct err *err) __attribute__((warn_unused_result));

/* Retention: deletes up to limit finished tasks of a status that finished (and were due) more than age_ms ago, with their attempts.
 * faults: as rows_run. */
int claim_store_expire_finished(struct db *db, enum task_status status, int64_t age_ms, size_t limit, size_t *ret_deleted,
                                struct row_faults *faults, struct err *err) __attribute__((warn_unused_result));

#endif
