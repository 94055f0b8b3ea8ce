/*
 * poller_store.h - the pollers that are alive, and their shares of the work: dq_poller. All
 * functions block on the database.
 */
#ifndef DQ_STORE_POLLER_STORE_H
#define DQ_STORE_POLLER_STORE_H

#include "base/task.h"
#include "store/claim_ref.h"
#include "store/db.h"

struct poller_info {
    unsigned char token[TASK_TOKEN_SIZE];
    char *host;
    uint32_t pid;
    char mode[16]; /* "once", "for", "resident" */
    int slots, running;
    int64_t started_at, last_seen_at;
    int64_t stale_after_ms; /* silent for longer: dead */
    char *version;          /* of dqd; NULL: it is of schema 2 or older, which did not say */
    bool alive;
};

struct poller_share {
    unsigned share, shares; /* its rank among the live pollers (by token), and their number */
    bool unheard;           /* our row is locked by another session: others may take us for dead */
    int64_t now_us;         /* the database's clock at that statement, microseconds */
};
/* Records that this poller is alive, and returns its share. Two statements. careful: does not wait
 * for a lock on our row (one statement more). */
int poller_store_beat(struct db *db, const struct claim_owner *owner, const char *mode, int slots,
                      int running, int64_t stale_after_ms, bool careful, struct poller_share *ret,
                      struct err *err) __attribute__((warn_unused_result));
/* Removes this poller, and pollers that have been silent for a day. */
int poller_store_leave(struct db *db, const struct claim_owner *owner, struct err *err)
    __attribute__((warn_unused_result));
/* Lists all pollers, by host and pid. Free *ret with poller_store_free. */
int poller_store_list(struct db *db, struct poller_info **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void poller_store_free(struct poller_info *p, size_t count);

#endif
