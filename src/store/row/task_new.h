/*
 * task_new.h - a new task, and its row as SQL.
 */
#ifndef DQ_STORE_ROW_TASK_NEW_H
#define DQ_STORE_ROW_TASK_NEW_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/db/db_statement.h"

struct event_act; /* store/fleet/event_store.h */

struct task_new {
    /* Checked by the caller (task_check_tag, task_check_key). key NULL: none */
    const char *tag, *key;
    const void *body;
    size_t body_size;
    int64_t expected_at; /* an instant, or TASK_TIME_NONE: the database's now + delay_ms */
    int64_t delay_ms;    /* >= 0; stored as requested */
    enum task_level level;
    uint32_t max_attempts;       /* 0: by the handler's ladder */
    uint32_t attempt;            /* how often its producer has tried already */
    int64_t expires_at;          /* an instant; 0: none */
    int64_t expires_ms;          /* after it is due; 0: not so. Neither: as the handler has it */
    bool scheduled;              /* its key is NAME@SLOT */
    uint32_t missed_slots;       /* of one that is: how many missed slots it stands for, too */
    const struct event_act *act; /* recorded if it replaces another task; NULL: not */
};

/* What to do if a live (pending or running) task has the same tag and key. */
enum key_conflict {
    KEY_KEEP,  /* the old task stays; its id is returned */
    KEY_ERROR, /* ERR_DUPLICATE; the text names the id */
    /* a pending task gets the new body, time and limits (same id, version + 1); if it is running,
       ERR_DUPLICATE */
    KEY_REPLACE,
    /* a pending task gets the new body and limits, and keeps the earlier of the two times; a
       running one is marked: it becomes pending once its run has ended, whatever comes of that */
    KEY_AGAIN,
    KEY_DEBOUNCE, /* the same, but the later of the two times */
};

/* The rest is private to src/store. */

void task_new_put_expected(struct buf *sql, const struct task_new *t);
void task_new_put_max_attempts(struct buf *sql, const struct task_new *t);
/* due: the column that has its time, if that is not the one it was given; else NULL. */
void task_new_put_expires(struct buf *sql, const struct task_new *t, const char *due);

/* Columns that not every task needs. Leaving out those that no row of a statement needs saves a
 * sixth of the server's work. */
enum {
    TASK_NEW_KEY = 1,
    TASK_NEW_MAX_ATTEMPTS = 2,
    TASK_NEW_DELAY = 4,
    TASK_NEW_ATTEMPT = 8,
    TASK_NEW_EXPIRES = 16,
    TASK_NEW_SCHEDULED = 32,
    TASK_NEW_LEVEL = 64
};
unsigned task_new_columns(const struct task_new *t, size_t n);

/* Appends `INSERT INTO dq_task (...) VALUES `. */
void task_new_put_insert(struct buf *sql, unsigned has);

/* Appends `(...),(...)`: as many of t[0..n-1] as fit into packets of `most` bytes, at least one.
 * Returns how many. Rows without a key are stored together or not at all, so only the first of
 * them carries the token; rows with a key can be kept out one by one, so each carries it. token
 * NULL: none. */
size_t task_new_put_many(struct db_statement *st, const struct task_new *t, size_t n, unsigned has,
                         const unsigned char *token, size_t most);

/* What follows the values if a row whose key a live task has is to be left out. Not id = id: MySQL
 * 9.7 has error 1869 for that. If it was another unique index that refused the row, -1 is an error.
 */
#define TASK_NEW_KEEP                                                                              \
    " ON DUPLICATE KEY UPDATE"                                                                     \
    " live = IF(task_key = VALUES(task_key) AND tag = VALUES(tag), live, -1)"
/* The same, but rows that another unique index refuses are left out, too: for tasks whose absence
 * must not keep a result from being recorded, or its handler would run again. */
#define TASK_NEW_KEEP_ANY " ON DUPLICATE KEY UPDATE live = live"

/* How the message of error 1062 ends the name of the index of live tasks with a key. */
#define TASK_NEW_KEY_INDEX "live_key'"

/* ERR_DATA if st, which stores t, is larger than the server takes. Asks for its limit only if st is
 * larger than every server takes. */
int task_new_check_packet(struct db *db, const struct db_statement *st, const struct task_new *t,
                          struct err *err) __attribute__((warn_unused_result));

#endif
