/*
 * task_store.h - producers and operators: every statement that dq makes on dq_task and dq_attempt.
 *
 * Each change is one UPDATE that checks status and version (task_transition), so that it never overwrites what somebody else
 * did in between. All functions block on the database.
 */
#ifndef DQ_STORE_TASK_STORE_H
#define DQ_STORE_TASK_STORE_H

#include "base/task.h"
#include "store/db.h"
#include "store/rows.h"

struct task_new {
    const char *tag, *key; /* key NULL: none. Checked by the caller (task_check_tag, task_check_key) */
    const void *body;
    size_t body_size;
    int64_t expected_at;   /* an instant, or TASK_TIME_NONE: the database's now + delay_ms */
    int64_t delay_ms;      /* >= 0; stored as asked */
    uint32_t max_attempts; /* 0: by the handler's ladder */
};

/* What happens when a live (pending or running) task has the same tag and key. */
enum key_conflict {
    KEY_KEEP,    /* the old one stays, its id is returned */
    KEY_ERROR,   /* ERR_DUPLICATE, text names the id */
    KEY_REPLACE, /* a pending one gets the new body, time and limits (same id, version + 1); a running one: ERR_DUPLICATE */
};

struct task_added {
    uint64_t id;
    int64_t expected_at; /* TASK_TIME_NONE: this account may not read it, and it was to be the database's now + delay_ms */
    int64_t now_at;      /* the database's clock; TASK_TIME_NONE: kept, or this account may not read */
    bool replaced;
};

/* Adds one task: one statement (two on a server without INSERT ... RETURNING, to learn the time; three for an account that may
 * INSERT but not SELECT). 1: added, 0: kept or replaced. ERR_CONFIG, and nothing stored, where the schema is not of our version,
 * but for an account that may not read dq_meta. A statement that would exceed the server's packet limit is refused before it is
 * sent (ERR_DATA). After ERR_LOST inside, the outcome is looked up by the row's add_token on a new connection and, if it was not
 * stored, it is tried again, three times in all. ERR_LOST: it could not be looked up, the task may be stored or not. *ret is
 * untouched on failure. */
int task_store_add(struct db *db, const struct task_new *t, enum key_conflict on_conflict, struct task_added *ret, struct err *err)
    __attribute__((warn_unused_result));

#define TASK_CHUNK_ROWS 4000 /* how many tasks a bulk add puts into one transaction */
/* Adds n tasks in one transaction: all or none. *ret_kept counts those that a live key kept out (KEY_KEEP). On a fault that one row
 * causes, *ret_bad is its index (else SIZE_MAX). ERR_LOST: as above, of all of them. KEY_REPLACE is done row by row inside the
 * transaction. Statements are cut at about 1 MB. */
int task_store_add_many(struct db *db, const struct task_new *t, size_t n, enum key_conflict on_conflict, size_t *ret_kept,
                        size_t *ret_bad, struct err *err) __attribute__((warn_unused_result));

enum task_sort { SORT_EXPECTED, SORT_EXPECTED_DESC, SORT_ID, SORT_ID_DESC };
struct task_filter {
    const uint64_t *ids; /* NULL: any */
    size_t id_count;
    const char *tag_glob;                /* NULL: any */
    const char *key;                     /* NULL: any */
    unsigned statuses;                   /* mask of TASK_BIT; 0 counts as TASK_ANY */
    int64_t due_before_at, due_after_at; /* expected_time < before, >= after; TASK_TIME_NONE: open */
    int64_t since_at;                    /* create_time >= since; TASK_TIME_NONE: open */
    size_t limit;                        /* 0: all */
    enum task_sort sort;                 /* ties by id: the order is total, so the same on every call */
};
/* Calls each(task, arg) for the matching tasks, in order, with everything but body and output (bodies too where `bodies`). Stops
 * when each returns non-zero and returns that. Touches rows in proportion to limit x (tags x statuses) at most: per (status, tag)
 * one range of the index `due`, merged; by key through its index; by id through the primary key. */
int task_store_list(struct db *db, const struct task_filter *f, bool bodies, int (*each)(const struct task *t, void *arg),
                    void *arg, struct err *err) __attribute__((warn_unused_result));

/* One task with body and output; ERR_NOT_FOUND. The caller task_done()s ret. */
int task_store_get(struct db *db, uint64_t id, struct task *ret, struct err *err) __attribute__((warn_unused_result));

struct task_attempt {
    uint32_t attempt;
    char *host;
    uint32_t pid;
    int64_t start_at, finish_at;
    int outcome;           /* enum task_outcome */
    int exit_code, signal; /* -1, 0: none */
    char *error;
    void *output;
    size_t output_size;
};
/* The recorded attempts of a task, oldest first. *ret is heap memory: task_attempts_free(ret, count). */
int task_store_attempts(struct db *db, uint64_t id, struct task_attempt **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void task_attempts_free(struct task_attempt *a, size_t count);

/* Operators' transitions (TASK_CANCEL, TASK_RETRY, TASK_RESCHEDULE) and deletion, for all that match f, in steps of at most 500
 * rows, each row by (id, version). dry_run: only counts. */
struct task_change {
    enum task_event event;
    int64_t expected_at; /* TASK_RETRY, TASK_RESCHEDULE: the new time; TASK_TIME_NONE: the database's now + delay_ms */
    int64_t delay_ms;
};
struct task_changed {
    uint64_t matched; /* tasks that matched f and were in a state that allows the event */
    uint64_t changed; /* of these: changed (== matched when dry_run) */
    uint64_t running; /* of the changed: were running before */
    uint64_t lost;    /* somebody else was quicker, or it is in *faults */
};
/* progress, where not NULL, is called after each step. *faults gets the tasks that could not be changed: their row is locked by
 * somebody (ERR_LOCKED), a live task has their tag and key (ERR_DUPLICATE; returned if nothing was changed), or the server refuses.
 * On other errors *ret is set when something had been changed before;
 * ERR_LOST: the last step may have been done or not, and doing it again does no harm. */
int task_store_change(struct db *db, const struct task_filter *f, const struct task_change *change, bool dry_run,
                      void (*progress)(const struct task_changed *so_far, void *arg), void *arg, struct task_changed *ret,
                      struct row_faults *faults, struct err *err) __attribute__((warn_unused_result));
/* Deletes finished tasks that match f and were finished before finished_before_at (TASK_TIME_NONE: any), with their attempts. */
int task_store_delete(struct db *db, const struct task_filter *f, int64_t finished_before_at, bool dry_run,
                      void (*progress)(const struct task_changed *so_far, void *arg), void *arg, struct task_changed *ret,
                      struct row_faults *faults, struct err *err) __attribute__((warn_unused_result));

/* The database's clock. */
int task_store_now(struct db *db, int64_t *ret_at, struct err *err) __attribute__((warn_unused_result));

#endif
