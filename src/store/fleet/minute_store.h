/*
 * minute_store.h - what each dqd did, by minute and tag: dq_minute. All functions block on the
 * database.
 */
#ifndef DQ_STORE_FLEET_MINUTE_STORE_H
#define DQ_STORE_FLEET_MINUTE_STORE_H

#include "base/counts.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"

/* The name under which a dqd counts the tags that are too many for it. No task has such a tag. */
#define MINUTE_OTHER_TAGS ""

/* What was counted for a tag in the minute, or the step, that begins at `at`. */
struct minute_row {
    char *tag; /* NULL: all tags together */
    int64_t at;
    int64_t first_at; /* of those that are read: the first minute in which something was counted */
    struct counts counts;
};
void minute_store_free(struct minute_row *rows, size_t count);

/* Writes the counts of a dqd, in one statement. They replace those that it wrote before for the
 * same minute and tag, so that it can be repeated if the outcome is unknown. count > 0. */
int minute_store_put(struct db *db, const struct claim_owner *owner, const struct minute_row *rows,
                     size_t count, struct err *err) __attribute__((warn_unused_result));

struct minute_ask {
    const char *tag_glob; /* NULL: all tags */
    int64_t since_ms;     /* the minutes of this time up to now, and the one in which it began */
    int64_t step_ms;      /* a row for each; whole minutes. 0: one row for all of it */
    int64_t align_ms;     /* the first step begins at a multiple of this; 0: a minute */
};
struct minute_answer {
    struct minute_row *rows; /* by time, then tag (strcmp); no row where nothing was counted */
    size_t count;
    int64_t from_at, now_at; /* the first step begins at from_at */
};
/* Sums by tag and step over all dqds. What a live dqd counted since its last heartbeat is missing.
 * Free ret->rows with minute_store_free. */
int minute_store_read(struct db *db, const struct minute_ask *ask, struct minute_answer *ret,
                      struct err *err) __attribute__((warn_unused_result));

/* Deletes up to about `limit` rows of minutes that are older. *ret_more: there are more. */
int minute_store_expire(struct db *db, int64_t age_ms, size_t limit, bool *ret_more,
                        struct err *err) __attribute__((warn_unused_result));

#endif
