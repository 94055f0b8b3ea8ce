/*
 * tag_lateness.h - how late tasks were started, by tag. Blocks on the database.
 */
#ifndef DQ_STORE_TAG_LATENESS_H
#define DQ_STORE_TAG_LATENESS_H

#include "store/db.h"

/* Lateness and throughput of the tasks of a tag glob that were due within the last window_ms: how
 * late their last attempt started. */
struct tag_lateness {
    char *tag;        /* NULL: all tags together */
    uint64_t started; /* tasks measured */
    bool sampled;     /* only the latest TAG_SAMPLE_CAP were measured */
    int64_t p50_ms, p95_ms, p99_ms, max_ms;
    uint64_t done, failed; /* finished within the window, of those measured */
    double done_per_second;
};
#define TAG_SAMPLE_CAP 100000
/* One entry per tag with started tasks, by name (strcmp), and first the one for all.
 * tag_lateness_free(*ret, count). */
int tag_lateness_list(struct db *db, const char *tag_glob, int64_t window_ms,
                      struct tag_lateness **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void tag_lateness_free(struct tag_lateness *t, size_t count);

#endif
