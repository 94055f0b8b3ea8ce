/*
 * index.h - finds the elements of an array by a text of theirs: a hash table that numbers the texts
 * it is given. Pure.
 */
#ifndef DQ_BASE_INDEX_H
#define DQ_BASE_INDEX_H

#include <stddef.h>

#define INDEX_NONE ((size_t)-1)

struct index_slot {
    const char *key; /* NULL: free */
    size_t len, number;
};
struct index { /* initialize with {0}, free with index_done */
    struct index_slot *slots;
    size_t slot_count, count;
};
/* The number of a key of len bytes; INDEX_NONE: it was not added. */
size_t index_find(const struct index *x, const char *key, size_t len);
/* Adds a key that is not there yet; the first one gets the number 0, the next 1, and so on. The key
 * stays the caller's and must not change before index_done. */
void index_add(struct index *x, const char *key, size_t len);
void index_done(struct index *x); /* empty afterwards */

#endif
