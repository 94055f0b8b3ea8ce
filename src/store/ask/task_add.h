/*
 * task_add.h - storing new tasks. All functions block on the database.
 */
#ifndef DQ_STORE_ASK_TASK_ADD_H
#define DQ_STORE_ASK_TASK_ADD_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/row/task_new.h"

struct task_added {
    uint64_t id;
    /* TASK_TIME_NONE: it is the database's now + delay_ms, which could not be read */
    int64_t expected_at;
    /* the database's clock; TASK_TIME_NONE: the task was kept, or that could not be read */
    int64_t now_at;
    int status; /* of a task that was kept */
    bool replaced;
    bool again; /* it is running, and runs again afterwards */
};

/* Adds one task. 1: added, 0: kept, replaced or added again. Takes two statements; three on a
 * server without INSERT ... RETURNING, to learn the time; five for an account that may INSERT but
 * not SELECT.
 *
 * ERR_CONFIG, and nothing stored, if this dq does not work with the schema (not checked for an
 * account that may not read dq_meta and dq_task). ERR_DATA, before anything is sent, if the
 * statement would exceed the server's packet limit. If the connection breaks, the row is looked up
 * by its add_token on a new connection and, if it was not stored, added again, three times in all.
 * ERR_LOST: it could not be looked up; the task may be stored or not. *ret is untouched on failure.
 *
 * KEY_AGAIN, KEY_DEBOUNCE: a run begins after the call. If an answer was lost, there may be one
 * more than needed. ERR_CONFIG, if the task runs and a live dqd is too old to know what was added.
 */
int task_add(struct db *db, const struct task_new *t, enum key_conflict on_conflict,
             struct task_added *ret, struct err *err) __attribute__((warn_unused_result));

#define TASK_CHUNK_ROWS 4000 /* how many tasks a bulk add puts into one transaction */
/* Adds n tasks in one transaction: all or none. *ret_kept is the number of those not added because
 * a live task has their key (KEY_KEEP). If a single row causes an error, or is locked, *ret_bad is
 * its index, else SIZE_MAX. ERR_LOST: as above, for all of them. From KEY_REPLACE on it works row
 * by row inside the transaction. Statements have at most about 1 MB. */
int task_add_many(struct db *db, const struct task_new *t, size_t n, enum key_conflict on_conflict,
                  size_t *ret_kept, size_t *ret_bad, struct err *err)
    __attribute__((warn_unused_result));

#endif
