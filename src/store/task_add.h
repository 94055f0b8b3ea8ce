/*
 * task_add.h - storing new tasks. All functions block on the database.
 */
#ifndef DQ_STORE_TASK_ADD_H
#define DQ_STORE_TASK_ADD_H

#include "base/task.h"
#include "store/db.h"
#include "store/task_new.h"

/* What happens when a live (pending or running) task has the same tag and key. */
enum key_conflict {
    KEY_KEEP,  /* the old one stays, its id is returned */
    KEY_ERROR, /* ERR_DUPLICATE, text names the id */
    /* a pending one gets the new body, time and limits (same id, version + 1); a running one:
       ERR_DUPLICATE */
    KEY_REPLACE,
};

struct task_added {
    uint64_t id;
    /* TASK_TIME_NONE: this account may not read it, and it was to be the database's now +
     * delay_ms */
    int64_t expected_at;
    /* the database's clock; TASK_TIME_NONE: kept, or this account may not read */
    int64_t now_at;
    bool replaced;
};

/* Adds one task: one statement (two on a server without INSERT ... RETURNING, to learn the time;
 * three for an account that may INSERT but not SELECT). 1: added, 0: kept or replaced. ERR_CONFIG,
 * and nothing stored, where the schema is not of our version, but for an account that may not read
 * dq_meta. A statement that would exceed the server's packet limit is refused before it is sent
 * (ERR_DATA). After ERR_LOST inside, the outcome is looked up by the row's add_token on a new
 * connection and, if it was not stored, it is tried again, three times in all. ERR_LOST: it could
 * not be looked up, the task may be stored or not. *ret is untouched on failure. */
int task_add(struct db *db, const struct task_new *t, enum key_conflict on_conflict,
             struct task_added *ret, struct err *err) __attribute__((warn_unused_result));

#define TASK_CHUNK_ROWS 4000 /* how many tasks a bulk add puts into one transaction */
/* Adds n tasks in one transaction: all or none. *ret_kept counts those that a live key kept out
 * (KEY_KEEP). On a fault that one row causes, *ret_bad is its index (else SIZE_MAX). ERR_LOST: as
 * above, of all of them. KEY_REPLACE is done row by row inside the transaction. Statements are cut
 * at about 1 MB. */
int task_add_many(struct db *db, const struct task_new *t, size_t n, enum key_conflict on_conflict,
                  size_t *ret_kept, size_t *ret_bad, struct err *err)
    __attribute__((warn_unused_result));

#endif
