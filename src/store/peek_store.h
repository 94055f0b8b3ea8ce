/*
 * peek_store.h - what is waiting: when the next task of each tag is due. All functions block on the
 * database, and lock nothing.
 */
#ifndef DQ_STORE_PEEK_STORE_H
#define DQ_STORE_PEEK_STORE_H

#include "base/task.h"
#include "store/db.h"

/* What is waiting, by tag. */
struct claim_peek_tag {
    char *tag;
    int64_t next_at; /* the earliest expected time of a pending task of this tag */
};
struct claim_peek {
    /* the database's clock, microseconds, read by the same statement; 0: nothing waits, no row told
     * it */
    int64_t now_us;
    struct claim_peek_tag *tags;
    /* init with {0}, peek_store_done at the end; a look that fails leaves all as it was */
    size_t count, cap;
};
/* One statement: a loose index scan of `due` for the pending tasks. For seconds after a bulk
 * insert, until the server renews its statistics, it reads every pending entry instead. limit_ms:
 * the server gives it up after that, which is ERR_TRANSIENT; 0: never. */
int peek_store_all(struct db *db, int64_t limit_ms, struct claim_peek *p, struct err *err)
    __attribute__((warn_unused_result));
/* The same of what was inserted last, at most CLAIM_NEWS_MOST rows with an id above *id, whatever
 * else there is: tags, and when the earliest of these tasks is due. *id becomes the greatest id of
 * them. */
#define CLAIM_NEWS_MOST 5000
int peek_store_news(struct db *db, uint64_t *id, struct claim_peek *p, struct err *err)
    __attribute__((warn_unused_result));
void peek_store_done(struct claim_peek *p);
/* Where to begin: nothing is pending, as far as is known, that is due before `at`, or just then
 * with an id of `id` or less. {0}: not known. While some session holds an old snapshot, what was
 * drained stays in the index; a floor spares passing over it. */
struct claim_floor {
    int64_t at;
    uint64_t id;
};
/* The same of one tag: when its earliest pending task above the floor is due; TASK_TIME_NONE and
 * clock 0: there is none. */
int peek_store_next(struct db *db, const char *tag, const struct claim_floor *floor,
                    int64_t *ret_now_us, int64_t *ret_next_at, struct err *err)
    __attribute__((warn_unused_result));

/* What of dq_task c is above a floor: " AND ...", or nothing. Private to src/store. */
void peek_store_put_floor(struct buf *sql, const struct claim_floor *floor);

#endif
