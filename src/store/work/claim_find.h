/*
 * claim_find.h - what a claim looks for, and what it finds: candidates of one tag, with small
 * bodies.
 *
 * All functions but claim_find_put block on the database. None locks a row, unless locked ones are
 * skipped.
 */
#ifndef DQ_STORE_WORK_CLAIM_FIND_H
#define DQ_STORE_WORK_CLAIM_FIND_H

#include "base/limit.h"
#include "base/task.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"
#include "store/row/rows.h"
#include "store/row/task_array.h"
#include "store/work/peek_store.h"

/* Expired tasks that are to be cancelled, as many as one statement may change. */
struct claim_expired {
    struct claim_ref refs[ROWS_STEP];
    size_t count, bytes;
};
struct claim_ask {
    const char *tag;
    size_t limit; /* the most tasks to claim */
    /* of the handler; 0 is as 1. If it is greater: claim no more than fit into so many processes */
    uint32_t batch, processes;
    /* also claim tasks due within this time; the caller starts none before its time */
    int64_t early_ms;
    struct peek_floor floor[TASK_LEVELS]; /* for our share */
    unsigned levels;            /* TASK_LEVEL_BIT of those that the tag has; 0: TASK_NORMAL only */
    size_t passed[TASK_LEVELS]; /* as task_levels_owed has it */
    unsigned share, shares; /* claim ids of this share first, 0 to shares - 1; shares 1: all ids */
    /* if our share has too few: ids of this one that are overdue by steal_after_ms */
    unsigned steal_share;
    int64_t steal_after_ms;
    /* of these, those due last first, which avoids races with their owner. Not to be set every
     * time, or the oldest would starve */
    bool steal_far_end;
    uint32_t max_attempts; /* for rows that have none */
    int64_t expires_ms;    /* after late_from_at, for rows that have no time; 0: never */
    int64_t expired_ms;    /* for expire_store_cancel: only what expired so long ago */
    const char *on_failed; /* of the handler, for those that have expired; NULL: none */
    int64_t lease_ms;
    struct limit
        tag_limit; /* of the handler: `running` holds where the row of the limit has none */
    const char *limit_name; /* of the handler; NULL: the tag's */
    /* as the last claim has seen it: that row is to be locked, as it is for tag_limit.running */
    bool guarded;
    bool unsure;   /* nothing else tells of it: look if nothing is found */
    bool doubtful; /* it seems that nothing may start: read it, or the pause, before */
    /* reserve the starts of a rate so far ahead; none before the claim is likely to be over */
    int64_t horizon_ms, lead_ms;
    /* limit_name: whether another tag is under it, too */
    bool (*under)(void *arg, const char *tag);
    void *under_arg;
    bool without_bodies; /* load no bodies */
    bool without_long;   /* leave tasks with long bodies for a later claim */
    int64_t row_us;      /* how long changing one of its rows takes, if that is long */
    bool next;           /* also find out when the next task is due; ignored with skip_locked */
    /* leave out all locked rows, however many, if the server can */
    bool skip_locked;
    const uint64_t *aside; /* ids to leave out */
    size_t aside_count;
    struct claim_expired *expired; /* NULL, or gets those that the claim meets */
    /* NULL, or called with the candidates before they are claimed */
    void (*before)(void *arg, struct task_array *found);
    void *before_arg;
};
/* What a claim found. */
struct claim_seen {
    size_t found;              /* candidates */
    bool drained[TASK_LEVELS]; /* fewer of it were due than were looked for */
    size_t expired;            /* tasks that would have been */
    size_t lost;               /* of these: claimed by others first */
    /* the limit of the tag allowed none; LIMIT_LOCKED: it could not be read. Also after failures */
    enum limit_why held;
    bool alone;       /* then: the tag itself is paused */
    bool full;        /* as many run under it as may, with those that are claimed */
    int64_t limit_at; /* then, or when the rest of a rate is used up: when to claim again */
    bool guarded;     /* as in struct claim_ask, for the next claim */
    bool paced;       /* by a rate, hours or a breaker: claim no more than can start at once */
    bool probing;     /* its breaker is not closed */
    bool set_back;    /* the clock was, since starts of its rate were reserved: see rate.h */
    int64_t left_ms;  /* how long the first start of its rate could have been taken before */
    size_t left;      /* of these: would have needed a process, or bytes of bodies, too many */
    /* If `next` was set and our share had fewer candidates than the limit: when the first task of
     * our share that is not due yet becomes due. TASK_TIME_NONE: there is none, or the tag is
     * paused. Its row is neither changed nor locked. */
    bool next_known;
    int64_t next_at;
    /* the database's clock, microseconds, as the statement began and when it was nearly done, and
     * the steady times around it; 0: not known */
    int64_t now_us, late_us, sent_us, answered_us;
};

/* Appends the statement with which a claim of a sole poller finds up to `limit` candidates. */
void claim_find_put(struct buf *sql, const char *tag, size_t limit);

/* The others are private to src/store. */

/* Adds one whose body has this size; false: it is for another statement. */
bool claim_find_expire(struct claim_expired *e, const struct claim_ask *ask,
                       const struct claim_ref *ref, size_t body_size);
/* Appends up to `limit` candidates to found: of our share, then, if it has too few, of the one to
 * steal from, each with its company_most. Sets *ret, which is {0} before, except for `lost` and
 * `left`. Bodies are as claim_store_claim has them. */
int claim_find_due(struct db *db, const struct claim_ask *ask, size_t limit,
                   struct task_array *found, struct claim_seen *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Appends the running tasks that have this token. */
int claim_find_running(struct db *db, const unsigned char token[TASK_TOKEN_SIZE],
                       struct task_array *found, struct err *err)
    __attribute__((warn_unused_result));

#endif
