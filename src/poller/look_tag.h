/*
 * look_tag.h - what is known of one tag that has a handler, and how many of its tasks to claim.
 * Pure, as is look.h, which is about all tags.
 */
#ifndef DQ_POLLER_LOOK_TAG_H
#define DQ_POLLER_LOOK_TAG_H

#include "base/limit.h"
#include "poller/look_pace.h"
#include "store/work/peek_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pass takes what may start until the next one of a timer of seconds. Of a batch with a limit of
 * its own nothing is claimed ahead, so it waits as long. */
#define LIMIT_PASS_MS 5000

/* What was claimed for slots that would be free at once, and has waited for so long, is better
 * pending: for other hosts, for the order of its priorities, for limits that have changed. */
#define LOOK_WAIT_US INT64_C(2000000)

/* Why a tag is not claimed: the last claim brought nothing. */
struct look_hold {
    int64_t until_us;       /* no claim before */
    enum limit_why because; /* LIMIT_OPEN: for none of these reasons */
    int64_t locked_us;      /* LIMIT_LOCKED: twice as long each time */
    bool alone;             /* the tag itself is paused, not its limit with other tags */
    uint32_t vain;          /* claims in a row that brought nothing */
    bool won;               /* the last one brought some: now the rate allows more, most likely */
};

/* What a kind of change costs a tag. */
struct look_cost {
    int64_t row_us; /* how long a row takes; 0: not long */
    int64_t at_us;  /* when that was measured last; 0: never */
    uint32_t times; /* how many times in a row it was long */
};

/* What is known of a tag that has a handler. Init with the first three and next_at =
 * TASK_TIME_NONE. */
struct look_tag {
    uint32_t batch;       /* tasks per process, at most */
    uint32_t max_running; /* processes at a time */
    uint32_t weight;      /* among others */
    uint64_t limit;       /* tags with the same one are under one limit; 0: it has its own */

    /* when the earliest pending task is due, as far as is known; TASK_TIME_NONE: there is none */
    int64_t next_at;
    struct peek_floor floor[TASK_LEVELS];
    unsigned levels; /* TASK_LEVEL_BIT of those of its pending tasks, as far as is known */
    /* tasks of all levels that were claimed since each had its part (task_levels_owed) */
    size_t passed[TASK_LEVELS];
    bool ask;      /* ask this tag when its next task is due */
    bool expected; /* in this round: its next task was known to be due, or something is announced */
    bool more;     /* the last claim took all it asked for: there is likely more */
    /* the last claim brought tasks that had been started before: claim no more than can start at
     * once */
    bool wary;
    bool paced; /* its limit has a rate, hours or a breaker: the same */
    /* tasks per process that the last claim took, twice over, if it left some because they need
     * more processes; 0: it did not. More candidates would be read in vain */
    uint32_t fit;

    uint64_t had;        /* time in slots, by its weight (look_turn.h) */
    uint32_t turn_stage; /* of its last claim */
    uint64_t turn;       /* number of its last turn, if it is under a limit with others */
    bool kept;           /* its only job has one of the kept slots, if weights decide */
    bool waits;          /* as the last stage began, it could start more and had claimed none */

    uint32_t queued;                  /* jobs claimed, not started */
    uint32_t running;                 /* jobs started, and those elsewhere */
    uint32_t elsewhere;               /* what ending dqds of this host run, as of look_turn.h */
    int64_t mean_us;                  /* moving average of a job's duration; 0: not known */
    int64_t started_us;               /* when one was started last; 0: never */
    uint32_t unrecorded;              /* results that settle.c has */
    uint32_t kept_back;               /* of these: could not be recorded, and are tried again */
    struct look_cost claims, results; /* of changing its rows, to claim them or to record results */

    struct look_hold hold;
    int64_t stole_us; /* when it last got starts of a rate that another dqd had left; 0: never */
    int64_t way_ms;   /* by which it gave way to that one last */
    bool full;        /* as its last claim ended, as many ran under its limit as may */
    bool others_wait; /* tasks of tags under it that only other dqds serve are due */
    /* no claim before: places under it that its tasks have left are for those. Or since when it has
     * places that another dqd has left */
    int64_t left_until_us;
    int64_t left_vain_us; /* the pause after that, as nobody has taken them; 0: somebody has */
    /* since when claims failed because of a lock or a deadlock; 0: the last one did not */
    int64_t put_off_us;
    int64_t rest_until_us;  /* no claim before: its handler could not be started */
    int64_t rest_us;        /* length of the last rest */
    int64_t short_us;       /* length of the last wait for the host */
    int64_t slow_us;        /* since when they have been long, if they are */
    bool slow;              /* they were, time and again, and have not been short for long */
    int64_t pause_until_us; /* no claim before: the last change has kept other tags waiting */
};

bool look_tag_is_idle(const struct look_tag *t); /* It has no job. */
/* For how many processes to claim tasks now: what can start at once in `room` slots, those that it
 * has among them, and what will have started before the next claim could; if others wait for slots,
 * in those only that it gets now. 0: none. */
uint32_t look_tag_want(const struct look_tag *t, uint32_t room, bool others_wait);
/* Whether more jobs of it wait than would start within LOOK_WAIT_US, as slow as they are by now.
 * Its claims heed that from then on. idle_us: for at least so long none of its jobs has been
 * started. */
bool look_tag_is_crowded(struct look_tag *t, uint32_t slots, int64_t idle_us);
/* How many tasks to claim for them. */
size_t look_tag_tasks(const struct look_tag *t, uint32_t processes, uint32_t claim_batch);

/* A run that ends by itself may start too few tasks for each level to have its part: it begins at
 * any place of these turns. */
void look_tag_begin_levels(struct look_tag *t, uint64_t random);
unsigned look_tag_levels(const struct look_tag *t); /* those to be claimed */
/* So many were claimed. drained: fewer of that level were due than were looked for. */
void look_tag_passed(struct look_tag *t, const size_t won[TASK_LEVELS],
                     const bool drained[TASK_LEVELS]);

/* Tasks of it that were claimed are pending again, and due. */
void look_tag_returned(struct look_tag *t);

/* How long before their time its tasks are claimed, to be started in time. once: by a pass. */
int64_t look_tag_early_ms(const struct look_tag *t, const struct look_pace *pace, bool once);

/* The tag has new tasks of a level, the earliest of which is due then. */
void look_tag_new(struct look_tag *t, enum task_level level, int64_t next_at);
/* A look begins with the first, and reports the earliest task of each level that has some. now_at:
 * on the database's clock; 0: not known. */
void look_tag_saw_none(struct look_tag *t, int64_t now_at);
void look_tag_saw(struct look_tag *t, enum task_level level, int64_t next_at, int64_t now_at);
/* A claim took all tasks that were due, up to the last one of each level ({0}: none). next_known:
 * nothing is due before next_at. */
void look_tag_took_all(struct look_tag *t, const struct peek_floor last[TASK_LEVELS],
                       int64_t next_at, bool next_known, int64_t now_at);
void look_tag_took(struct look_tag *t, int64_t duration_us); /* A job ended. */
/* So many rows were changed in this time, beyond what any statement takes. Each change that is
 * faster halves the cost. */
void look_cost_saw(struct look_cost *c, size_t rows, int64_t took_us);
/* The same, of one tag. Returns whether a row takes long, time and again. */
bool look_tag_changed(struct look_tag *t, struct look_cost *c, size_t rows, int64_t took_us,
                      int64_t now_us);
/* How long changing one of its rows takes at most; 0: not long. */
int64_t look_tag_row_us(const struct look_tag *t);
bool look_tag_is_dear(const struct look_tag *t); /* too long for a statement with others */
/* Its handler could not be started. Returns how long the tag rests, microseconds; 0: it rests
 * already. */
int64_t look_tag_rest(struct look_tag *t, int64_t now_us);
/* The host was too short of something for a start: the tag waits, longer each time until a job
 * ends. */
void look_tag_short(struct look_tag *t, int64_t now_us);
void look_tag_handler_changed(struct look_tag *t); /* ends the rest, and any pause */
/* No claim before. */
int64_t look_tag_held_us(const struct look_tag *t);
/* Ends what keeps tags waiting. timed: also of those whose limit has said when it allows more. */
void look_tag_lift(struct look_tag *const *tags, size_t count, bool timed);
/* The last claims brought nothing, although tasks were due: it may be paused. */
bool look_tag_is_doubtful(const struct look_tag *t);
/* Whether a rate that keeps a batch waiting lets it start so soon that a pass waits. */
bool look_tag_starts_soon(const struct look_tag *t, int64_t now_us);
/* Its limit allows no more, which t->hold.because says, until reached_us; nor does it allow any of
 * these tags that is under it. won: some were taken. They are claimed again then, or sooner: a
 * limit may be changed. */
void look_tag_hold(struct look_tag *const *tags, size_t count, struct look_tag *t,
                   int64_t reached_us, bool won, int64_t hold_us, int64_t now_us);
/* The rate of its limit is used up, and another dqd is to claim the next starts: how much later it
 * is claimed here, at most turn_ms. left: the claim got some that had been left. */
int64_t look_tag_give_way_ms(struct look_tag *t, int64_t turn_ms, bool left, int64_t now_us);
/* Its claim has seen whether its limit is full, and whether tasks run that only other dqds serve.
 * Before look_claimed. won: it brought some. */
void look_tag_met(struct look_tag *t, bool full, bool others_run, bool won, int64_t now_us);
/* Tasks of it have ended. If its limit was full and others wait for it, who poll every hold_us, the
 * places are left to them, by all of these tags that are under it. */
void look_tag_leave(struct look_tag *const *tags, size_t count, struct look_tag *t, int64_t hold_us,
                    int64_t now_us);
/* A claim found its row of dq_limit locked, which guards global_max_running: another dqd that is
 * claiming, or an open transaction. */
void look_tag_limit_locked(struct look_tag *t, int64_t now_us, uint64_t random);

#endif
