/*
 * queue.h - jobs that wait for their time, and then for a slot: by tag, and whose turn it is.
 */
#ifndef DQ_RUNNER_QUEUE_H
#define DQ_RUNNER_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct job;

/* One tag that has jobs, waiting or running. */
struct lane {
    char *tag;
    struct lane *all_next;
    struct lane *prev, *next; /* ring of the lanes that have waiting jobs */
    struct job *first, *last; /* waiting, in the order they came */
    size_t jobs;              /* of this lane, waiting or running */
    int running;              /* kept by the runner */
};

struct queue {
    struct lane *lanes;
    /* who is asked first next time; NULL: nobody waits for a slot */
    struct lane *turn;
    struct job *early_first, *early_last; /* those with a start_us, by it */
    /* all may start until then; each until its own order.vouched_us anyway */
    int64_t vouched_us;
};

void queue_add(struct queue *q, struct job *j, const char *tag); /* sets j->lane */
/* Puts those whose time has come into their lanes, start_us becomes 0. Returns when the next one's
 * time comes, JOB_NEVER if there is none. */
int64_t queue_ripen(struct queue *q, int64_t now_us);
/* Takes a waiting job out of the line; it stays of its lane. */
void queue_take(struct queue *q, struct job *j);
/* A job that was taken is gone: a lane goes with its last job. */
void queue_leave(struct queue *q, struct job *j);
/* Any job that waits, or NULL. */
struct job *queue_any(const struct queue *q);
/* The job that may start while free_slots of the slots are free, or NULL: tags take turns, a tag
 * stays under its handler's max_running, and the last quarter of the slots is for tags that have
 * nothing running. None that nobody vouches for now, nor of a handler one of whose starts hangs. It
 * stays in the line. */
struct job *queue_pick(struct queue *q, int free_slots, int slots, int64_t now_us);

#endif
