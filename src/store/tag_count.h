/*
 * tag_count.h - how many tasks ranges of the index `due` have: counted while that is cheap, else
 * estimated by the server. Blocks on the database.
 */
#ifndef DQ_STORE_TAG_COUNT_H
#define DQ_STORE_TAG_COUNT_H

#include "base/task.h"
#include "store/db.h"

/* Entries of the index that are read for all counts together, unless `exact`: about 15 ms. */
#define TAG_COUNT_ENTRIES 100000

struct tag_count {
    const char *tag; /* as sql_dup_tag copies it; the caller's */
    unsigned status;
    /* expected times, from_at <= t < until_at; TASK_TIME_NONE: no bound */
    int64_t from_at, until_at;
    /* out: */
    uint64_t tasks;
    bool sampled; /* tasks is the server's estimate, from a few pages of the index */
};

struct tag_count_how {
    bool exact; /* count everything, however long it takes */
    /* TASK_BIT of states of which only parts with bounds are counted: without, they are estimated
     */
    unsigned rough;
    /* the parts without bounds have all tasks there are: estimates are scaled to the size of the
     * table, which the server knows better than that of a range */
    bool whole;
    /* how much of the counting is done, 0 to 1; NULL: not reported */
    void (*progress)(double fraction, void *arg);
    void *arg;
};

/* Counts each part: the smallest first, until TAG_COUNT_ENTRIES are used up. */
int tag_count_all(struct db *db, const struct tag_count_how *how, struct tag_count *parts,
                  size_t count, struct err *err) __attribute__((warn_unused_result));
/* Only estimates: a few reads for each part. */
int tag_count_estimate(struct db *db, struct tag_count *parts, size_t count, struct err *err)
    __attribute__((warn_unused_result));
/* Sorts pointers to parts: the one with the fewest tasks first. */
void tag_count_sort(struct tag_count **parts, size_t count);

#endif
