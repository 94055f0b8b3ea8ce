/*
 * forecast_store.h - how many tasks become due when. Blocks on the database, and locks nothing.
 */
#ifndef DQ_STORE_ASK_FORECAST_STORE_H
#define DQ_STORE_ASK_FORECAST_STORE_H

#include "store/db/db.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORECAST_HERD 100 /* as many tasks of a tag in one second are a herd */

struct forecast_step {
    uint64_t tasks;
    bool sampled; /* tasks is an estimate */
    /* the largest herd; 0: none was found. If sampled, others may be larger */
    uint64_t herd;
    int64_t herd_at; /* the beginning of its second */
    char *herd_tag;
};

struct forecast_ask {
    const char *tag_glob; /* NULL: all tags */
    int64_t step_ms;
    size_t steps;
};
struct forecast {
    int64_t now_at, from_at; /* the first step begins at from_at, at or before now */
    uint64_t due;            /* pending tasks that are due already */
    bool due_sampled;
    /* ask->steps; tasks that are due already are not in them, but those that schedules will add */
    struct forecast_step *steps;
    size_t count;
};
/* Counts the tasks of tags with few of them, and estimates those of the others: it reads a
 * bounded number of entries of the index, however many tasks there are. Free *ret with
 * forecast_store_free. */
int forecast_store_read(struct db *db, const struct forecast_ask *ask, struct forecast *ret,
                        struct err *err) __attribute__((warn_unused_result));
void forecast_store_free(struct forecast *f);

#endif
