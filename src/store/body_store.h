/*
 * body_store.h - bodies that did not come with the claim. All functions block on the database.
 */
#ifndef DQ_STORE_BODY_STORE_H
#define DQ_STORE_BODY_STORE_H

#include "base/task.h"
#include "store/db.h"

/* Sets body_size to what the bodies really have; SIZE_MAX: the row is gone. */
int body_store_measure(struct db *db, struct task *const *tasks, size_t count, struct err *err)
    __attribute__((warn_unused_result));
/* Loads the bodies of tasks that have none, from the front, in one statement: as many as have at
 * most max_bytes by their body_size together, always at least one. *ret_loaded: how many from the
 * front have one now; 0: the first one's row is gone. */
int body_store_load(struct db *db, struct task *const *tasks, size_t count, size_t max_bytes,
                    size_t *ret_loaded, struct err *err) __attribute__((warn_unused_result));

#endif
