/*
 * seen.h - a set of numbers that forgets: what has been seen in the last minutes.
 */
#ifndef DQ_CLI_JUDGE_SEEN_H
#define DQ_CLI_JUDGE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_part {
    uint64_t *slots; /* a hash table; 0: free */
    size_t count, slot_count;
};
struct seen { /* initialize with {0}, free with seen_done */
    struct seen_part now, before;
    int64_t begun_at; /* of `now` */
};
bool seen_has(const struct seen *s, uint64_t key);
/* True if it was not there. */
bool seen_put(struct seen *s, uint64_t key);
/* Forgets what was put between keep_ms and twice as long ago, or earlier; the caller's clock. */
void seen_age(struct seen *s, int64_t now_at, int64_t keep_ms);
void seen_done(struct seen *s);

#endif
