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
/* Forgets keys that were put twice keep_ms ago or earlier, and perhaps later ones, but none younger
 * than keep_ms; by the caller's clock. */
void seen_age(struct seen *s, int64_t now_at, int64_t keep_ms);
void seen_done(struct seen *s);

#endif
