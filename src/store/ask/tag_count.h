/*
 * tag_count.h - how many tasks ranges of the index `due` have: counted while that is quick, else
 * estimated. Blocks on the database.
 */
#ifndef DQ_STORE_ASK_TAG_COUNT_H
#define DQ_STORE_ASK_TAG_COUNT_H

#include "base/task.h"
#include "store/db/db.h"

/* Counting everything stops after this time, unless `exact`. */
#define TAG_COUNT_MS 700

struct tag_count {
    const char *tag; /* as sql_dup_tag copies it; the caller's */
    unsigned status;
    /* expected times, from_at <= t < until_at; TASK_TIME_NONE: no bound */
    int64_t from_at, until_at;
    /* out: */
    uint64_t tasks;
    bool sampled; /* tasks is an estimate */
};

struct tag_count_how {
    bool exact; /* count everything, however long it takes */
    /* how long to count; 0: TAG_COUNT_MS; less than 0: only what estimates are based on */
    int64_t most_ms;
    /* TASK_BIT of states whose tasks are not counted, except for those that are due */
    unsigned skip;
    /* how much of the counting is done, 0 to 1; NULL: not reported */
    void (*progress)(double fraction, void *arg);
    void *arg;
};

/* Counts each part, the smallest first, while there is time. The others are estimated from what the
 * server estimates for them, and for those that were counted. */
int tag_count_all(struct db *db, const struct tag_count_how *how, struct tag_count *parts,
                  size_t count, struct err *err) __attribute__((warn_unused_result));
/* Only what the server estimates, with a few reads for each part: exact if it has few tasks, else
 * perhaps twice the number. */
int tag_count_estimate(struct db *db, struct tag_count *parts, size_t count, struct err *err)
    __attribute__((warn_unused_result));
/* Sorts pointers to parts: the one with the fewest tasks first. */
void tag_count_sort(struct tag_count **parts, size_t count);

#endif
