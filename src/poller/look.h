/*
 * look.h - decides what to ask the database about waiting tasks next, and when. All decisions of
 * that kind are here, and nothing else: no statement, no clock and no random numbers. The caller
 * passes the time, and reports what happened.
 *
 * Work goes in rounds: look_when returns when the next one is due, look_next returns its steps one
 * after the other, the last of which is LOOK_END. The caller reports the outcome of each step
 * before it asks for the next; look_end_round ends the round early, if a statement fails or another
 * duty must not wait. Rounds are short, so that other duties have their turn between them.
 *
 * Times named _us are microseconds on the steady clock of this host, times named _at milliseconds
 * on the database's clock.
 */
#ifndef DQ_POLLER_LOOK_H
#define DQ_POLLER_LOOK_H

#include "poller/dbclock.h"
#include "poller/look_pace.h"
#include "poller/look_tag.h"
#include "poller/look_turn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct look_settings {
    bool once;          /* a pass: it ends when nothing is due */
    int64_t poll_us[2]; /* the least time between two looks, and the longest */
    int64_t hold_us;    /* until a tag that may start nothing is asked again */
    int64_t lease_us;
    uint32_t slots;
    uint32_t claim_batch; /* tasks per claim, at most */
};

/* A wake-up leads to two rounds: the first asks for the tasks that it is most likely about, the
 * second looks at all tags. */
enum look_wake { LOOK_NOT_WOKEN, LOOK_WOKEN, LOOK_WOKEN_LAST };

enum look_what {
    LOOK_END, /* of the round */
    /* when the next task of each tag is due; reported by look_saw_all or look_gave_up */
    LOOK_AT_ALL,
    LOOK_AT_NEWS, /* the same, but of new tasks only; look_saw_news */
    LOOK_AT_TAG,  /* the same of one tag; look_saw_tag */
    LOOK_CLAIM    /* look_claimed or look_claim_failed */
};
struct look_step {
    enum look_what what;
    struct look_tag *tag; /* LOOK_AT_TAG, LOOK_CLAIM */
    int64_t limit_ms;     /* LOOK_AT_ALL: let the server give up after that; 0: never */
    uint64_t above_id;    /* LOOK_AT_NEWS */
    size_t count;         /* LOOK_CLAIM: at most this many */
    uint32_t processes;   /* LOOK_CLAIM: to run in so many at most, if they are batches */
    bool all_shares;      /* LOOK_CLAIM: those of other pollers too */
    bool next;            /* LOOK_CLAIM: also find out when the next one is due */
};

enum look_stage { LOOK_IDLE, LOOK_CLAIM_KNOWN, LOOK_FIND, LOOK_CLAIM_FOUND, LOOK_ASK };

/* Read only by look.c, but for the first two. */
struct look {
    int64_t polled_us; /* when all tags were last asked, together or one by one */
    struct look_turn turn;
    struct look_settings set;
    const struct dbclock *clock;
    struct look_tag **tags; /* those with a handler, in no order: there may be very many without */
    size_t tag_count, tag_cap;
    unsigned shares;
    uint32_t running; /* jobs of all tags */
    int64_t write_us; /* see look_set_shares */

    struct look_pace pace;
    bool stale;        /* look at all tags in the next round, however recent the last look is */
    bool claim_failed; /* the last claim ended its round */
    bool seen_all;     /* that was done once */
    int64_t all_us;    /* when it was done last */
    int64_t news_us, news_turn_us;
    uint64_t news_ids[2]; /* the greatest id seen lately, and a while before */
    bool any_full;        /* of the tags */
    bool empty;           /* see look_is_empty */
    enum look_wake wake;

    enum look_stage stage;    /* of the round */
    int64_t stage_us;         /* when the stage began; -1: it is about to */
    size_t next;              /* tag of the stage */
    bool all_due, saw, found; /* a look at all tags is due; it was made; something was found */
    struct look_tag *tag;     /* of the last claim */
    size_t wanted;            /* by it */
    uint32_t processes;       /* for so many */
    bool all;                 /* it was for all shares */
    bool again;               /* it is made again, for all shares */
    bool ask_all;             /* LOOK_ASK: every tag */
};

void look_init(struct look *l, const struct look_settings *s, const struct dbclock *clock);
void look_set(struct look *l, const struct look_settings *s); /* they have changed */
void look_free(struct look *l);
void look_forget_tags(struct look *l);
/* It must stay where it is until look_forget_tags. */
void look_add_tag(struct look *l, struct look_tag *t);
/* A heartbeat: the pollers that share the work, and how long a statement takes that changes a row
 * of another table. */
void look_set_shares(struct look *l, unsigned shares, int64_t write_us);

/* --- rounds --- */

int64_t look_when(const struct look *l); /* when the next one is due; never NEVER_US */
struct look_step look_next(struct look *l, int64_t now_us);
/* Before LOOK_END: tags that were not claimed yet are first in the next round. */
void look_end_round(struct look *l);

/* look_tag_saw_none for each tag, look_tag_saw for each level that has tasks, then the look itself.
 * sent_us, now_us: around the statement. */
void look_saw_all(struct look *l, int64_t sent_us, int64_t now_us);
/* The instant on the database's clock; 0: not known. */
int64_t look_at(const struct look *l, int64_t now_us);
/* The server gave up a look at all tags. False: it did not take that long. */
bool look_gave_up(struct look *l, int64_t limit_ms, int64_t sent_us, int64_t now_us);
/* greatest_id: of the new tasks. Each tag's earliest one is reported by look_tag_new. */
void look_saw_news(struct look *l, uint64_t greatest_id, int64_t sent_us, int64_t now_us);
/* The connection is a new one: the database may have come back without its last rows, whose ids are
 * given again. */
void look_came_back(struct look *l);
void look_saw_tag(struct look *l, struct look_tag *t, const int64_t next_at[TASK_LEVELS],
                  int64_t sent_us, int64_t now_us);

struct look_claim {
    size_t seen;                /* candidates */
    size_t bad;                 /* of these: could not be changed */
    size_t left;                /* of these: were left for the next claim */
    size_t won;                 /* of these: are ours now */
    size_t won_of[TASK_LEVELS]; /* of each level */
    bool drained[TASK_LEVELS];  /* fewer of it were due than were looked for */
    bool started_before;        /* one of them was */
    bool some_aside;            /* due tasks of the tag were left out */
    enum limit_why held; /* its limit allows no more; LIMIT_OPEN: it does, or there is none */
    bool alone;          /* then: it is the tag itself that is paused */
    int64_t limit_at;    /* then: when it may allow more, on the database's clock; 0: not known */
    int64_t turn_ms; /* then, of a rate: another dqd comes first, by so much at most; 0: we do */
    bool left_over;  /* that one has left some of those won */
    bool paced;      /* by a rate, hours or a breaker */
    bool again;      /* it has a limit that was not known: claim again, as it says */
    struct peek_floor last[TASK_LEVELS]; /* of those won; {0}: none */
    /* the first one that is not due yet, of the shares that were asked for; TASK_TIME_NONE: there
     * is none, or the tag is paused */
    bool next_known;
    int64_t next_at;
    int64_t cost_us;     /* of finding that out, and the candidates */
    int64_t answered_us; /* when they were known */
    int64_t took_us;     /* all of the claim */
    int more_writes;     /* how many statements came then, besides the one that changed the tasks */
    uint64_t random;
};
void look_claimed(struct look *l, struct look_tag *t, const struct look_claim *c, int64_t now_us);
enum look_failure { LOOK_DEADLOCK, LOOK_LIMIT_LOCKED, LOOK_LOCKED, LOOK_REFUSED };
/* Returns whether the round goes on; else look_end_round has been done. */
bool look_claim_failed(struct look *l, struct look_tag *t, enum look_failure why, int64_t sent_us,
                       int64_t now_us, uint64_t random);

/* --- what happens between rounds --- */

/* So many rows were changed in this time, some of them of the tag. The rows are not to blame for
 * the round trips: of a claim as long as a heartbeat takes, of a result three times, as for a
 * failure. */
void look_changed(struct look *l, struct look_tag *t, struct look_cost *c, size_t rows,
                  int64_t took_us, int64_t now_us);
/* Results were recorded. back: tasks became pending; idle: no job is left. */
void look_settled(struct look *l, bool back, bool idle);
void look_reaped(struct look *l); /* tasks of others became pending */
/* Limits have changed, or the clock: tags that wait for an instant are asked before it comes. */
void look_limits_changed(struct look *l);
/* A wake-up came: some task has become due. Returns when the next wake-up may be reported: until
 * then they are left alone, however many there are. */
int64_t look_woken(struct look *l, int64_t now_us);

uint32_t look_running(const struct look *l); /* jobs of all tags that have started */
void look_job_queued(struct look *l, struct look_tag *t);
void look_job_started(struct look *l, struct look_tag *t);
void look_job_gone(struct look *l, struct look_tag *t, bool started);

/* A pass: the last round looked at all tags, found nothing, and nothing that was due was put
 * off. */
bool look_is_empty(const struct look *l);

#endif
