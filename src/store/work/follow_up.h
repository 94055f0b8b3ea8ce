/*
 * follow_up.h - on_failed: the task that is added when another one has failed for good. Private to
 * src/store.
 */
#ifndef DQ_STORE_WORK_FOLLOW_UP_H
#define DQ_STORE_WORK_FOLLOW_UP_H

#include "store/db/db.h"
#include "store/row/claim_ref.h"

/* The tag of the task that is to be added if this one fails; NULL: none. */
struct follow_up {
    uint64_t id;
    const char *tag;
};

/* Adds a task for each of wanted[] that is one of ended[], which were at these versions when the
 * transaction of the caller locked them, and is failed or cancelled now: due at once, with a key
 * failed-ID-VERSION (with -N behind it if somebody else's live task has that) and a body of JSON.
 * None for a task that has such a key itself. As the same transaction has ended them, each is added
 * once, even if the answer of COMMIT is lost. A SELECT and an INSERT (more if bodies are long) if
 * there are such tasks, else nothing. Returns how many. */
int follow_up_add(struct db *db, const struct follow_up *wanted, size_t count,
                  const struct claim_ref *ended, size_t ended_count, struct err *err)
    __attribute__((warn_unused_result));

#endif
