/*
 * tag_lateness.h - how late tasks were started, by tag. Blocks on the database.
 */
#ifndef DQ_STORE_ASK_TAG_LATENESS_H
#define DQ_STORE_ASK_TAG_LATENESS_H

#include "store/db/db.h"

/* The tasks of a tag that were due within the last window_ms: how late their last attempt started,
 * and how many finished. */
struct tag_lateness {
    char *tag;        /* NULL: all tags together */
    uint64_t started; /* tasks measured */
    bool sampled;     /* only the latest ones were measured, TAG_SAMPLE_CAP of all tags or so */
    int64_t p50_ms, p95_ms, p99_ms, max_ms;
    uint64_t done, failed; /* finished within the window, of those measured */
    double done_per_second;
};
#define TAG_SAMPLE_CAP 100000
/* One entry for all tags together, then one per tag that has started tasks and matches the glob
 * (NULL: any), by name (strcmp); none at all if nothing was started. Free *ret with
 * tag_lateness_free. */
int tag_lateness_list(struct db *db, const char *tag_glob, int64_t window_ms,
                      struct tag_lateness **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void tag_lateness_free(struct tag_lateness *t, size_t count);

#endif
