/*
 * look_tag.c - see look_tag.h. Invariant: a tag is never claimed for more than its handler and the
 * slots can take soon, so that another tag, or another host, finds room.
 */
#include "poller/look_tag.h"
#include "base/retry.h"

#include <string.h>
#include <sys/param.h>

/* Tasks are claimed for the slots that become free within this time: far more than a claim takes,
 * far less than anyone would notice. No more than this many, because a lost dqd keeps them until
 * their leases end. */
#define AHEAD_US INT64_C(100000)
#define AHEAD_MOST 1500
/* With so many results of a tag to be recorded, two statements' worth, no more of its tasks are
 * claimed: the results of others wait behind them, and a lost dqd would have done all of that in
 * vain. */
#define UNRECORDED_MOST 1000
/* A handler that cannot be started is tried again as soon as an operator may have fixed it, and not
 * too late after that. */
#define REST_MIN_US INT64_C(5000000)
#define REST_MAX_US INT64_C(300000000)
/* Handlers that end make room, and the others' tasks should not wait longer than that. */
#define SHORT_MIN_US INT64_C(500000)
#define SHORT_MOST_US (10 * SHORT_MIN_US)
/* A change that takes longer shows what a row costs; rows that cost a tenth are fast. */
#define SLOW_US INT64_C(250000)
/* A pause of the server, such as a backup makes, seldom meets one tag so many times in a row. */
#define SLOW_TIMES 3
/* Producers whose transactions take no longer than this never commit a task that is due before a
 * floor. */
#define FLOOR_SLACK_MS 1000
/* For a tag whose row in dq_limit is locked: another dqd's claim takes two milliseconds; a
 * forgotten transaction lasts, and is tried once a second. */
#define LIMIT_HOLD_MIN_US 2000
/* A limit by which nothing may start is asked again after this at the latest: heartbeats notice all
 * changes but those of people's own SQL. */
#define LIMIT_AGAIN_US INT64_C(60000000)
#define LIMIT_TURN_US 5000
/* For so long after a tag has got starts that another dqd had left, more of them are expected. Then
 * it gives way, at first for so long that little of a rate is lost if that one is gone. */
#define STOLE_US INT64_C(10000000)
#define WAY_MIN_MS 200
/* Places are left for so many polls of others, so that they see them in time, and then taken again
 * for so many times as long, but for tasks that take longer: little is lost by it. If nobody takes
 * them, all others may be gone. */
#define LEFT_POLLS 2
#define LEFT_PART 8
#define LEFT_MOST_US INT64_C(60000000)
/* So many claims in vain may be those of tasks of other shares; then it is asked for a pause. */
#define VAIN_MANY 3
/* Each so many paused tags are asked less often by as much; all of them at least this often. */
#define PAUSED_MANY 20
#define PAUSED_AGAIN_US INT64_C(5000000)
#define LIMIT_HOLD_MOST_US INT64_C(1000000)

/* Jobs that will start within AHEAD_US at the rate seen so far. */
static uint32_t ahead(const struct look_tag *t, uint32_t at_once)
{
    int64_t n;

    if (t->wary || t->paced || t->mean_us == 0)
        return 0;
    n = (int64_t)at_once * AHEAD_US / t->mean_us;
    return n > AHEAD_MOST ? AHEAD_MOST : (uint32_t)n;
}

/* Its jobs, with those whose results would pile up. */
static uint32_t jobs_of(const struct look_tag *t)
{
    return t->queued + t->running + (look_tag_is_dear(t) ? t->unrecorded : 0);
}

bool look_tag_is_idle(const struct look_tag *t)
{
    return jobs_of(t) == 0;
}

uint32_t look_tag_want(const struct look_tag *t, uint32_t room, bool others_wait)
{
    uint32_t mine = jobs_of(t), at_once = MIN(t->max_running, room), more, target;
    uint32_t quick = at_once - MIN(at_once, t->elsewhere); /* what ends elsewhere takes long */

    if (!at_once || t->unrecorded - t->kept_back >= UNRECORDED_MOST)
        return 0;
    if (t->batch > 1) /* one batch waiting behind each that runs is enough */
        more = MIN(ahead(t, quick), quick);
    else
        more = ahead(t, others_wait ? at_once - MIN(at_once, mine) : quick);
    target = at_once + more;
    if (mine >= target || target - mine < more / 2) /* no small pieces */
        return 0;
    return target - mine;
}

bool look_tag_is_crowded(struct look_tag *t, uint32_t slots, int64_t idle_us)
{
    const uint32_t at_once = MIN(t->max_running, slots);
    const uint32_t running = t->running - MIN(t->running, t->elsewhere);
    const int64_t each_us = MAX(t->mean_us, idle_us);

    if (t->queued + running <= at_once || t->queued * each_us <= MAX(running, 1) * LOOK_WAIT_US)
        return false;
    t->mean_us = each_us;
    return true;
}

size_t look_tag_tasks(const struct look_tag *t, uint32_t processes, uint32_t claim_batch)
{
    uint32_t each = t->fit ? MIN(t->fit, t->batch) : t->batch, limit = MAX(claim_batch, t->batch);

    return MIN(processes * each, limit);
}

void look_tag_begin_levels(struct look_tag *t, uint64_t random)
{
    for (int level = 0; level < TASK_LEVELS; level++, random /= TASK_LEVEL_PART)
        t->passed[level] = random % TASK_LEVEL_PART;
}

unsigned look_tag_levels(const struct look_tag *t)
{
    return t->levels ? t->levels : TASK_LEVEL_BIT(TASK_NORMAL);
}

void look_tag_passed(struct look_tag *t, const size_t won[TASK_LEVELS],
                     const bool drained[TASK_LEVELS])
{
    size_t sum = won[TASK_NORMAL] + won[TASK_HIGH] + won[TASK_LOW];

    for (int level = 0; level < TASK_LEVELS; level++) {
        size_t passed = t->passed[level] + sum;

        t->passed[level] = drained[level] || !(t->levels & TASK_LEVEL_BIT(level))
                               ? 0
                               : passed - MIN(passed, TASK_LEVEL_PART * won[level]);
    }
}

/* A batch would wait for its last task; a task that was started before may cost its neighbours an
 * attempt. */
int64_t look_tag_early_ms(const struct look_tag *t, const struct look_pace *pace, bool once)
{
    return !once && t->batch <= 1 && !t->wary ? look_pace_early_ms(pace) : 0;
}

void look_tag_new(struct look_tag *t, enum task_level level, int64_t next_at)
{
    t->levels |= TASK_LEVEL_BIT(level);
    if (t->next_at == TASK_TIME_NONE || next_at < t->next_at)
        t->next_at = next_at;
    if (next_at < t->floor[level].at)
        t->floor[level] = (struct peek_floor){.at = next_at};
}

void look_tag_returned(struct look_tag *t)
{
    t->more = true;
    memset(t->floor, 0, sizeof t->floor);
}

/* No task of our share and that level is pending below the floor. */
static void set_floor(struct look_tag *t, enum task_level level, struct peek_floor floor,
                      int64_t now_at)
{
    int64_t recent_at = now_at ? now_at - FLOOR_SLACK_MS : 0;

    t->floor[level] = floor.at != TASK_TIME_NONE && floor.at < recent_at
                          ? floor
                          : (struct peek_floor){.at = recent_at};
}

void look_tag_saw_none(struct look_tag *t, int64_t now_at)
{
    t->next_at = TASK_TIME_NONE;
    t->levels = 0;
    for (int level = 0; level < TASK_LEVELS; level++)
        set_floor(t, (enum task_level)level, (struct peek_floor){.at = TASK_TIME_NONE}, now_at);
    t->ask = false;
}

void look_tag_saw(struct look_tag *t, enum task_level level, int64_t next_at, int64_t now_at)
{
    look_tag_new(t, level, next_at);
    set_floor(t, level, (struct peek_floor){.at = next_at}, now_at);
}

void look_tag_took_all(struct look_tag *t, const struct peek_floor last[TASK_LEVELS],
                       int64_t next_at, bool next_known, int64_t now_at)
{
    for (int level = 0; level < TASK_LEVELS; level++)
        if (look_tag_levels(t) & TASK_LEVEL_BIT(level) && (next_known || last[level].id))
            set_floor(t, (enum task_level)level,
                      next_known ? (struct peek_floor){.at = next_at} : last[level], now_at);
}

void look_tag_took(struct look_tag *t, int64_t duration_us)
{
    if (duration_us < 1)
        duration_us = 1;
    t->mean_us = t->mean_us ? (7 * t->mean_us + duration_us) / 8 : duration_us;
    t->rest_us = t->short_us = 0;
}

void look_cost_saw(struct look_cost *c, size_t rows, int64_t took_us)
{
    if (c->row_us || took_us > SLOW_US)
        c->row_us = MAX(took_us / (int64_t)rows, c->row_us / 2);
}

bool look_tag_changed(struct look_tag *t, struct look_cost *c, size_t rows, int64_t took_us,
                      int64_t now_us)
{
    if (!rows)
        return false;
    int64_t row_us = took_us / (int64_t)rows;
    look_cost_saw(c, rows, took_us);
    if (t->claims.times + t->results.times == 0)
        t->slow_us = now_us;
    c->times = row_us > SLOW_US ? c->times + 1 : 0;
    c->at_us = now_us;
    bool again = row_us > SLOW_US && t->claims.times + t->results.times >= SLOW_TIMES;
    t->slow = again || (t->slow && look_tag_is_dear(t));
    return again;
}

int64_t look_tag_row_us(const struct look_tag *t)
{
    return MAX(t->claims.row_us, t->results.row_us);
}

bool look_tag_is_dear(const struct look_tag *t)
{
    return look_tag_row_us(t) > SLOW_US / 10;
}

int64_t look_tag_rest(struct look_tag *t, int64_t now_us)
{
    if (now_us < t->rest_until_us)
        return 0;
    t->rest_us = retry_pause(t->rest_us, REST_MIN_US, REST_MAX_US);
    t->rest_until_us = now_us + t->rest_us;
    return t->rest_us;
}

void look_tag_short(struct look_tag *t, int64_t now_us)
{
    if (now_us < t->rest_until_us)
        return;
    t->short_us = retry_pause(t->short_us, SHORT_MIN_US, SHORT_MOST_US);
    t->rest_until_us = now_us + t->short_us;
}

void look_tag_handler_changed(struct look_tag *t)
{
    t->rest_until_us = t->rest_us = t->short_us = t->pause_until_us = 0;
    t->hold = (struct look_hold){.because = LIMIT_OPEN}; /* it may have another limit */
    t->others_wait = false;
}

int64_t look_tag_held_us(const struct look_tag *t)
{
    return MAX(MAX(t->hold.until_us, t->left_until_us), MAX(t->rest_until_us, t->pause_until_us));
}

bool look_tag_is_doubtful(const struct look_tag *t)
{
    const bool likely =
        t->hold.because == LIMIT_OPEN || (t->hold.because == LIMIT_RATE && t->hold.won);
    return !likely || t->hold.vain >= VAIN_MANY;
}

static bool is_timed(const struct look_tag *t)
{
    return t->hold.because == LIMIT_HELD || t->hold.because == LIMIT_CLOSED ||
           t->hold.because == LIMIT_RATE || t->hold.because == LIMIT_PAUSED;
}

/* Until what keeps it waiting is asked for again, usually after hold_us. */
static int64_t again_us(struct look_tag *const *tags, size_t count, const struct look_tag *t,
                        int64_t hold_us, int64_t now_us)
{
    int64_t paused = 0;

    if (t->hold.because != LIMIT_PAUSED)
        return is_timed(t) ? LIMIT_AGAIN_US : hold_us;
    for (size_t i = 0; i < count; i++)
        paused += tags[i]->hold.because == LIMIT_PAUSED && tags[i]->hold.until_us > now_us;
    return MIN(hold_us * (1 + paused / PAUSED_MANY), MAX(hold_us, PAUSED_AGAIN_US));
}

void look_tag_lift(struct look_tag *const *tags, size_t count, bool timed)
{
    for (size_t i = 0; i < count; i++)
        if (timed || !is_timed(tags[i]))
            tags[i]->hold.until_us = 0;
}

bool look_tag_starts_soon(const struct look_tag *t, int64_t now_us)
{
    return t->batch > 1 && t->hold.because == LIMIT_RATE && t->levels &&
           t->hold.until_us <= now_us + LIMIT_PASS_MS * INT64_C(1000);
}

void look_tag_hold(struct look_tag *const *tags, size_t count, struct look_tag *t,
                   int64_t reached_us, bool won, int64_t hold_us, int64_t now_us)
{
    int64_t latest_us = now_us + again_us(tags, count, t, hold_us, now_us);
    int64_t until_us = MAX(MIN(reached_us, latest_us), now_us);

    for (size_t i = 0; t->limit && !t->hold.alone && i < count; i++) {
        if (tags[i]->limit != t->limit)
            continue;
        tags[i]->hold.because = t->hold.because;
        tags[i]->hold.until_us = MAX(tags[i]->hold.until_us, until_us);
    }
    /* whoever got some comes after the other tags of its limit */
    t->hold.until_us = until_us + (won ? LIMIT_TURN_US : 0);
}

int64_t look_tag_give_way_ms(struct look_tag *t, int64_t turn_ms, bool left, int64_t now_us)
{
    if (left)
        t->stole_us = now_us;
    if (!turn_ms || (t->stole_us && now_us - t->stole_us < STOLE_US))
        t->way_ms = 0;
    else
        t->way_ms = retry_pause(t->way_ms, WAY_MIN_MS, turn_ms);
    return t->way_ms;
}

void look_tag_met(struct look_tag *t, bool full, bool others_run, bool won, int64_t now_us)
{
    t->full = full;
    if (won && t->hold.because == LIMIT_RUNNING) /* not by the end of a task of ours */
        t->left_until_us = now_us;
    if (others_run)
        t->left_vain_us = 0;
}

void look_tag_leave(struct look_tag *const *tags, size_t count, struct look_tag *t, int64_t hold_us,
                    int64_t now_us)
{
    const int64_t left_us = LEFT_POLLS * hold_us, part_us = LEFT_PART * left_us;

    if (!t->full || !t->others_wait ||
        now_us < t->left_until_us + MAX(t->left_vain_us, part_us - t->mean_us))
        return;
    t->left_vain_us = retry_pause(t->left_vain_us, part_us, LEFT_MOST_US);
    for (size_t i = 0; i < count; i++)
        if (tags[i]->limit == t->limit)
            tags[i]->left_until_us = now_us + left_us;
}

void look_tag_limit_locked(struct look_tag *t, int64_t now_us, uint64_t random)
{
    int64_t last_us = t->hold.because == LIMIT_LOCKED ? t->hold.locked_us : 0;
    int64_t us = retry_pause(last_us, LIMIT_HOLD_MIN_US, LIMIT_HOLD_MOST_US);

    t->hold = (struct look_hold){.until_us = now_us + us / 2 + (int64_t)(random % (uint64_t)us),
                                 .because = LIMIT_LOCKED,
                                 .locked_us = us};
}
