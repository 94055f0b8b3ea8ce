/*
 * peek_store.h - what is pending: when the next task of each tag is due. All functions block on the
 * database, and lock nothing.
 */
#ifndef DQ_STORE_WORK_PEEK_STORE_H
#define DQ_STORE_WORK_PEEK_STORE_H

#include "base/task.h"
#include "store/db/db.h"

struct peek_tag {
    char *tag;
    int64_t next_at; /* the earliest expected time of its pending tasks of this level */
    enum task_level level;
};
/* The tags that have pending tasks, with each level of these. Initialize with {0}, free with
 * peek_store_done. */
struct peek {
    /* the database's clock at that statement, microseconds; 0: no task is pending */
    int64_t now_us;
    struct peek_tag *tags;
    size_t count, cap;
};

/* Looks at all tags, and replaces the contents of *p; on failure *p is unchanged. One statement: a
 * loose index scan of `due`. For some seconds after a bulk insert, until the server renews its
 * statistics, it reads every pending entry instead. limit_ms: the server aborts it after this time,
 * with ERR_TRANSIENT; 0: never. */
int peek_store_all(struct db *db, int64_t limit_ms, struct peek *p, struct err *err)
    __attribute__((warn_unused_result));

/* The same for the rows inserted last, at most PEEK_NEWS_MOST with an id above *id, however many
 * others there are: their tags, and when the earliest of these tasks is due. *id becomes their
 * greatest id. */
#define PEEK_NEWS_MOST 5000
int peek_store_news(struct db *db, uint64_t *id, struct peek *p, struct err *err)
    __attribute__((warn_unused_result));
void peek_store_done(struct peek *p);

/* Where a search for pending tasks of a tag can begin: as far as known, no pending task is due
 * before `at`, nor at `at` with an id of `id` or less. {0}: unknown. While a session holds an old
 * snapshot, the entries of finished tasks stay in the index; a floor saves reading them again. */
struct peek_floor {
    int64_t at;
    uint64_t id;
};
/* Finds out when the earliest pending task of each level of one tag above the level's floor is due;
 * TASK_TIME_NONE: there is none. If there is none at all, *ret_now_us, the database's clock, is 0.
 */
int peek_store_next(struct db *db, const char *tag, const struct peek_floor floor[TASK_LEVELS],
                    int64_t *ret_now_us, int64_t ret_next_at[TASK_LEVELS], struct err *err)
    __attribute__((warn_unused_result));

/* Appends the condition that a row of dq_task c is above the floor: " AND ...", or nothing. Private
 * to src/store. */
void peek_store_put_floor(struct buf *sql, const struct peek_floor *floor);

/* The statements of peek_store_all and peek_store_next. */
void peek_store_put_all(struct buf *sql, int64_t limit_ms);
void peek_store_put_next(struct buf *sql, const char *tag,
                         const struct peek_floor floor[TASK_LEVELS]);

#endif
