/*
 * import_store.h - stores tasks as they were in another table, with their attempts. All functions
 * block on the database.
 */
#ifndef DQ_STORE_ASK_IMPORT_STORE_H
#define DQ_STORE_ASK_IMPORT_STORE_H

#include "store/fleet/attempt_store.h"
#include "store/fleet/event_store.h"

struct import_item {
    struct task task; /* id: as it was */
    struct task_attempt *attempts;
    size_t attempt_count, attempt_cap;
    uint64_t line; /* of the file, for the caller */
};
void import_store_free(struct import_item *items, size_t n); /* what they point to */

/* Whether these tasks can be stored: no two of them, and none in the table, have the same id (if
 * ids are kept), or the same tag and key while both are pending or running. 0, ERR_DUPLICATE with
 * the item in *ret_bad, or another error. */
int import_store_check(struct db *db, const struct import_item *items, size_t n, bool keep_ids,
                       size_t *ret_bad, struct err *err) __attribute__((warn_unused_result));

/* Tasks that are added from now on get ids from *ret on: greater than any that was ever given. */
int import_store_next_id(struct db *db, uint64_t *ret, struct err *err)
    __attribute__((warn_unused_result));
/* From now on, ids below next_id are not given any more. May be repeated. */
int import_store_raise_ids(struct db *db, uint64_t next_id, struct err *err)
    __attribute__((warn_unused_result));

/* Stores them and their attempts in one transaction, with what act counts (NULL: nothing). Without
 * keep_ids they get new ids. If the connection breaks, finds out what became of them. ERR_LOST: it
 * could not; they are all stored, or none is. ERR_DUPLICATE: another session was faster. */
int import_store_add(struct db *db, struct import_item *items, size_t n, bool keep_ids,
                     struct event_act *act, struct err *err) __attribute__((warn_unused_result));

#endif
