/*
 * poller_store.h - who polls: dq_poller.
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
    bool alive;
};

struct poller_share {
    unsigned share, shares; /* its rank among the live pollers (by token), and how many these are */
    bool unheard;           /* our row is locked by somebody: the others may take us for dead */
    int64_t now_us;         /* the database's clock when it was asked, microseconds */
};
/* Says that this poller lives, and learns its share. Two statements. careful: a lock on our row is
 * not waited for. */
int poller_store_beat(struct db *db, const struct claim_owner *owner, const char *mode, int slots,
                      int running, int64_t stale_after_ms, bool careful, struct poller_share *ret,
                      struct err *err) __attribute__((warn_unused_result));
/* The poller leaves. Rows of pollers silent for a day are swept out too. */
int poller_store_leave(struct db *db, const struct claim_owner *owner, struct err *err)
    __attribute__((warn_unused_result));
/* All known pollers, by host and pid. poller_store_free(*ret, count). */
int poller_store_list(struct db *db, struct poller_info **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void poller_store_free(struct poller_info *p, size_t count);

#endif
