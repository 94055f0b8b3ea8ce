/*
 * body_store.h - bodies that a claim did not load. All functions block on the database.
 */
#ifndef DQ_STORE_WORK_BODY_STORE_H
#define DQ_STORE_WORK_BODY_STORE_H

#include "base/task.h"
#include "store/db/db.h"

/* Sets body_size to the real size of each body; SIZE_MAX if the row is gone. */
int body_store_measure(struct db *db, struct task *const *tasks, size_t count, struct err *err)
    __attribute__((warn_unused_result));
/* Loads bodies with one statement: the first, and those that follow it as long as their body_size
 * adds up to max_bytes at most. *ret_loaded is the number of tasks from the front that now have a
 * body; 0 if the row of the first is gone. */
int body_store_load(struct db *db, struct task *const *tasks, size_t count, size_t max_bytes,
                    size_t *ret_loaded, struct err *err) __attribute__((warn_unused_result));

#endif
