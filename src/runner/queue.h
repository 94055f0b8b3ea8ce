/*
 * queue.h - jobs that wait for their start time, and then for a slot, by tag: tags take turns.
 */
#ifndef DQ_RUNNER_QUEUE_H
#define DQ_RUNNER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job;

/* A tag that has jobs, waiting or running, here or elsewhere. */
struct lane {
    char *tag;
    struct lane *all_next;
    struct lane *prev, *next; /* ring of the lanes that have waiting jobs */
    struct job *first, *last; /* waiting, in the order of arrival */
    size_t jobs;              /* waiting or running */
    int running;              /* counted by crew.c, and those elsewhere */
    int elsewhere;            /* see queue_elsewhere */
    bool kept;                /* its only job has one of the kept slots */
    int64_t start_us;         /* see queue_last_start */
    int credit;               /* grows by its handler's weight with each turn; a start needs 10 */
};

struct queue {
    struct lane *lanes;
    /* whose turn it is next; NULL: no job waits for a slot */
    struct lane *turn;
    struct job *early_first, *early_last; /* those with a start_us, in its order */
    /* all may start until then, and each at least until its own order.vouched_us */
    int64_t vouched_us;
    int elsewhere; /* slots that are taken there */
    bool weighted; /* handlers differ in weight */
    int kept;      /* then: of the slots that are kept, those that are in use */
};

void queue_add(struct queue *q, struct job *j, const char *tag); /* sets j->lane */
/* Moves jobs whose time has come into their lanes and sets their start_us to 0. Returns the
 * start_us of the next one, JOB_NEVER if there is none. */
int64_t queue_ripen(struct queue *q, int64_t now_us);
/* Takes a waiting job out of the queue; it still counts as one of its lane. */
void queue_take(struct queue *q, struct job *j);
/* A job that was taken has got one of the slots, of which so many were free; or has left it. */
void queue_started(struct queue *q, struct lane *l, int free_slots, int slots);
void queue_ended(struct queue *q, struct lane *l);
/* A job that was taken leaves its lane, which is freed with its last job. */
void queue_leave(struct queue *q, struct job *j);
/* So many jobs of the tag, and `all` of all tags, count as running: ending dqds run them. */
void queue_elsewhere(struct queue *q, const char *tag, uint32_t running, uint32_t all);
/* Any job that waits, or NULL. */
struct job *queue_any(const struct queue *q);
/* When a job was last started that is under the same limit, as far as the runner can tell: of its
 * handler, if that names one, else of its tag. */
int64_t *queue_last_start(const struct job *j);
/* The next job that may start if free_slots of the slots are free, or NULL; it stays in the queue.
 * Tags take turns, longer ones by their weight, a tag stays within its handler's max_running, and
 * the last quarter of the slots is kept for tags that have nothing running. Jobs that the poller
 * does not vouch for now are passed over, as are those of a handler one of whose starts hangs. */
struct job *queue_pick(struct queue *q, int free_slots, int slots, int64_t now_us);

#endif
