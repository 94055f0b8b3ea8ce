/*
 * queue.c - which waiting job starts next.
 *
 * Invariant: a lane is in the ring exactly while it has waiting jobs, and exists exactly while a job is of it.
 */
#include "runner/queue.h"

#include "base/mem.h"
#include "runner/job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
    l->next = q->turn; /* behind all that wait already */
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

void queue_add(struct queue *q, struct job *j, const char *tag)
{
    struct lane *l = lane_of(q, tag);

    j->lane = l;
    l->jobs++;
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

void queue_take(struct queue *q, struct job *j)
{
    struct lane *l = j->lane;

    if (j->prev)
        j->prev->next = j->next;
    else
        l->first = j->next;
    if (j->next)
        j->next->prev = j->prev;
    else
        l->last = j->prev;
    j->prev = j->next = NULL;
    if (!l->first)
        ring_leave(q, l);
}

void queue_leave(struct queue *q, struct job *j)
{
    struct lane *l = j->lane, **at = &q->lanes;

    j->lane = NULL;
    if (--l->jobs)
        return;
    while (*at != l)
        at = &(*at)->all_next;
    *at = l->all_next;
    free(l->tag);
    free(l);
}

struct job *queue_pick(struct queue *q, int free_slots, int slots)
{
    int kept = slots > 1 ? (slots >= 4 ? slots / 4 : 1) : 0;
    struct lane *l = q->turn;

    if (!l || free_slots <= 0)
        return NULL;
    do {
        if (l->running < l->first->plan->handler->max_running && (free_slots > kept || !l->running)) {
            q->turn = l->next;
            return l->first;
        }
        l = l->next;
    } while (l != q->turn);
    return NULL;
}
