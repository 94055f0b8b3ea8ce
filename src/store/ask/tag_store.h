/*
 * tag_store.h - tags as operators see them: how many tasks, how late, whether they are paused.
 */
#ifndef DQ_STORE_ASK_TAG_STORE_H
#define DQ_STORE_ASK_TAG_STORE_H

#include "store/ask/tag_count.h"
#include "store/db/db.h"
#include "store/row/tag_info.h"

/* Lists every tag that has tasks or is paused and that matches the glob (NULL: any), by name. how:
 * they are counted. Free *ret with tag_store_free. Blocks on the database, as do the functions
 * below. */
int tag_store_list(struct db *db, const char *tag_glob, const struct tag_count_how *how,
                   struct tag_info **ret, size_t *ret_count, int64_t *ret_now_at, struct err *err)
    __attribute__((warn_unused_result));
void tag_store_free(struct tag_info *t, size_t count);

/* Whether reading the whole index in one statement costs less than `parts` queries that read a
 * range of it each: dq_task is small for that number, and the number is not. 1 or 0. Private to
 * src/store. */
int tag_store_is_small(struct db *db, size_t parts, struct err *err)
    __attribute__((warn_unused_result));

#endif
