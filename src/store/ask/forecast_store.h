/*
 * forecast_store.h - how many tasks become due when. Blocks on the database, and locks nothing.
 */
#ifndef DQ_STORE_ASK_FORECAST_STORE_H
#define DQ_STORE_ASK_FORECAST_STORE_H

#include "store/db/db.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct forecast_step {
    uint64_t tasks;
    bool sampled; /* tasks is an estimate */
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
