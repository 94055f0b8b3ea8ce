/*
 * queue.c - decides which waiting job starts next.
 *
 * Invariants: a lane is in the ring exactly while it has jobs that wait for a slot, and exists
 * exactly while it has jobs; a job is among the early ones exactly while it waits and has a
 * start_us.
 */
#include "runner/queue.h"

#include "base/mem.h"
#include "conf/handlers.h"
#include "runner/job.h"
#include "runner/keep.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

static struct lane *lane_of(struct queue *q, const char *tag)
{
    struct lane *l = q->lanes;

    while (l && strcmp(l->tag, tag) != 0)
        l = l->all_next;
    if (!l) {
        l = mem_zero(1, sizeof *l);
        l->tag = mem_strdup(tag);
        l->all_next = q->lanes;
        q->lanes = l;
    }
    return l;
}

static void ring_join(struct queue *q, struct lane *l)
{
    if (!q->turn) {
        q->turn = l->prev = l->next = l;
        return;
    }
    l->next = q->turn; /* behind all that are waiting */
    l->prev = q->turn->prev;
    l->prev->next = l->next->prev = l;
}

static void ring_leave(struct queue *q, struct lane *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    if (q->turn == l)
        q->turn = l->next == l ? NULL : l->next;
}

static void lane_join(struct queue *q, struct job *j)
{
    struct lane *l = j->lane;

    j->next = NULL;
    j->prev = l->last;
    if (l->last) {
        l->last->next = j;
    } else {
        l->first = j;
        ring_join(q, l);
    }
    l->last = j;
}

static void early_join(struct queue *q, struct job *j)
{
    struct job *before = q->early_last; /* they nearly always come in order */

    while (before && before->order.start_us > j->order.start_us)
        before = before->prev;
    j->prev = before;
    j->next = before ? before->next : q->early_first;
    *(before ? &before->next : &q->early_first) = j;
    *(j->next ? &j->next->prev : &q->early_last) = j;
}

void queue_add(struct queue *q, struct job *j, const char *tag)
{
    q->weighted = j->table->weighted;
    j->lane = lane_of(q, tag);
    j->lane->jobs++;
    if (j->order.start_us)
        early_join(q, j);
    else
        lane_join(q, j);
}

void queue_take(struct queue *q, struct job *j)
{
    struct lane *l = j->lane;
    bool early = j->order.start_us != 0;

    *(j->prev ? &j->prev->next : early ? &q->early_first : &l->first) = j->next;
    *(j->next ? &j->next->prev : early ? &q->early_last : &l->last) = j->prev;
    j->prev = j->next = NULL;
    if (!early && !l->first)
        ring_leave(q, l);
}

int64_t queue_ripen(struct queue *q, int64_t now_us)
{
    struct job *j;

    while ((j = q->early_first) && j->order.start_us <= now_us) {
        queue_take(q, j);
        j->order.start_us = 0;
        lane_join(q, j);
    }
    return j ? j->order.start_us : JOB_NEVER;
}

struct job *queue_any(const struct queue *q)
{
    return q->turn ? q->turn->first : q->early_first;
}

static void lane_leave(struct queue *q, struct lane *l)
{
    struct lane **at = &q->lanes;

    if (--l->jobs)
        return;
    while (*at != l)
        at = &(*at)->all_next;
    *at = l->all_next;
    free(l->tag);
    free(l);
}

void queue_leave(struct queue *q, struct job *j)
{
    struct lane *l = j->lane;

    j->lane = NULL;
    lane_leave(q, l);
}

/* Those elsewhere, if there are any, count as one of the lane's jobs. */
void queue_elsewhere(struct queue *q, const char *tag, uint32_t running, uint32_t all)
{
    struct lane *l = lane_of(q, tag);
    const int n = (int)MIN(running, INT_MAX / 2);

    l->jobs += 1U + (n > 0) - (l->elsewhere > 0);
    l->running += n - l->elsewhere;
    l->elsewhere = n;
    q->elsewhere = (int)MIN(all, INT_MAX / 2);
    lane_leave(q, l);
}

static int kept(const struct queue *q, int slots)
{
    const int all = handlers_slots_kept(slots);

    return all - MIN(all, q->kept);
}

static void count(struct queue *q, struct lane *l, int running, bool uses)
{
    q->kept += uses - l->kept;
    l->kept = uses;
    l->running += running;
}

void queue_started(struct queue *q, struct lane *l, int free_slots, int slots)
{
    count(q, l, 1, q->weighted && !l->running && free_slots - q->elsewhere <= kept(q, slots));
}

void queue_ended(struct queue *q, struct lane *l)
{
    count(q, l, -1, false);
}

static bool may_start(const struct queue *q, const struct lane *l, int64_t now_us)
{
    const struct job *j = l->first;

    return l->running < j->plan->handler->max_running &&
           (j->plan->contract->stays ? keep_wants(j->plan) : !j->plan->hanging) &&
           (now_us <= q->vouched_us || now_us <= j->order.vouched_us);
}

int64_t *queue_last_start(const struct job *j)
{
    struct plan *plan = &j->table->plans[j->order.handler];

    return plan->handler->limit ? &plan->start_us : &j->lane->start_us;
}

/* It has had all or a part of its turn. By weights, one that was passed over has its own when it
 * may start, and comes before this one. */
static void turn_over(struct queue *q, struct lane *l, bool passed)
{
    const bool over = l->credit < HANDLERS_WEIGHT;

    if (!passed) {
        q->turn = over ? l->next : l;
    } else if (over) {
        ring_leave(q, l);
        ring_join(q, l);
    }
}

struct job *queue_pick(struct queue *q, int free_slots, int slots, int64_t now_us)
{
    struct lane *l = q->turn, *next;
    bool some = false, passed = false;

    free_slots -= q->elsewhere;
    if (!l || free_slots <= 0)
        return NULL;
    do {
        next = l->next;
        if ((free_slots > kept(q, slots) || !l->running) && may_start(q, l, now_us)) {
            some = true;
            l->credit += l->credit < HANDLERS_WEIGHT ? l->first->plan->handler->weight : 0;
            if (l->credit >= HANDLERS_WEIGHT) {
                l->credit -= HANDLERS_WEIGHT;
                turn_over(q, l, passed);
                return l->first;
            }
            if (passed)
                turn_over(q, l, passed);
        } else if (l == q->turn) {
            passed = q->weighted;
        }
        l = next;
    } while (l != q->turn || some);
    return NULL;
}
