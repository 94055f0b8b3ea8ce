/*
 * failure_list.c - see failure_list.h. Invariant: with limits no statement reads more rows than
 * they allow, however many attempts there are.
 */
#include "store/ask/failure_list.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "store/ask/task_filter.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <sys/param.h>

#define STEP 5000 /* attempts that are read at a time */

/* clang-format off */
#define FAILURE_COLUMNS(X)              \
    X(FAILURE_ID, "a.task_id")          \
    X(FAILURE_TAG, "t.tag")             \
    X(FAILURE_STATUS, "t.status")       \
    X(FAILURE_FINISH, "a.finish_time")  \
    X(FAILURE_OUTCOME, "a.outcome")     \
    X(FAILURE_ERROR, "a.error_stack")
/* clang-format on */
enum { FAILURE_COLUMNS(COLUMNS_NAME) FAILURE_COUNT };

struct reading {
    const char *tag_glob;
    void (*each)(const struct failure *x, void *arg);
    void *arg;
};

static bool is_failure(int outcome)
{
    return outcome != OUTCOME_DONE && outcome != OUTCOME_CANCELLED;
}

static void take_failure(const struct db_rows *r, void *arg)
{
    struct reading *w = arg;
    const char *error = db_text(r, FAILURE_ERROR, NULL), *outcome = db_string(r, FAILURE_OUTCOME);
    struct failure x = {.id = db_u64(r, FAILURE_ID),
                        .status = sql_status(r, FAILURE_STATUS),
                        .error = error ? error : outcome,
                        .finish_at = db_time(r, FAILURE_FINISH)};

    if (!is_failure(task_outcome_parse(outcome)))
        return;
    MEM_LOCAL char *tag = sql_dup_tag(r, FAILURE_TAG);
    x.tag = tag;
    if (!w->tag_glob || task_tag_glob(w->tag_glob, tag))
        w->each(&x, w->arg);
}

/* The entries of the index in a time, in an order: three values. */
#define ENTRIES                                                                                    \
    " FROM dq_attempt FORCE INDEX (finished) WHERE finish_time >= ? AND finish_time < ?"           \
    " ORDER BY finish_time?"

/* most 0: all. */
static int list_part(struct db *db, int64_t since_at, int64_t before_at, bool newest_first,
                     size_t most, struct reading *w, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    const char *order = newest_first ? " DESC" : "";

    sql_put(&sql, "SELECT STRAIGHT_JOIN ? FROM (SELECT task_id, version, finish_time" ENTRIES,
            SQL_PART(COLUMNS_SELECT(FAILURE_COLUMNS)), SQL_TIME(since_at), SQL_TIME(before_at),
            SQL_PART(order));
    if (most)
        sql_put(&sql, " LIMIT ?", SQL_ID(most));
    buf_str(&sql, ") x JOIN dq_task t FORCE INDEX (PRIMARY) ON t.id = x.task_id");
    if (w->tag_glob)
        task_filter_put_tag(&sql, "t.", w->tag_glob);
    sql_put(&sql,
            " JOIN dq_attempt a FORCE INDEX (PRIMARY) ON a.task_id = x.task_id"
            " AND a.version = x.version ORDER BY x.finish_time?",
            SQL_PART(order));
    return db_all_streamed(db, &sql, FAILURE_COUNT, take_failure, w, err);
}

/* The time at which the attempt ended that comes behind `count` newer ones. 1, or 0 if there are
 * not so many. */
static int find_behind(struct db *db, int64_t since_at, int64_t before_at, size_t count,
                       int64_t *ret_at, struct err *err)
{
    return sql_first(db, COLUMNS_ONE, sql_take_time, ret_at, err,
                     "SELECT finish_time" ENTRIES " LIMIT ?, 1", SQL_TIME(since_at),
                     SQL_TIME(before_at), SQL_PART(" DESC"), SQL_ID(count - 1));
}

/* In steps of whole instants, to look at the clock between them. *ret_left_at: as failure_list has
 * it. */
static int list_newest(struct db *db, const struct failure_filter *f, struct reading *w,
                       int64_t *ret_left_at, struct err *err)
{
    int64_t begun_at = when_steady(), before_at = f->before_at, from_at;
    int rc = 1;

    for (size_t left = f->newest, n; rc == 1; left -= n, before_at = from_at) {
        n = MIN(left, (size_t)STEP);
        rc = find_behind(db, f->since_at, before_at, n, &from_at, err);
        if (rc < 0)
            return rc;
        int part = list_part(db, rc ? from_at : f->since_at, before_at, true, left, w, err);
        if (part < 0)
            return part;
        if (rc && (left == n || (f->most_ms && when_steady() - begun_at >= f->most_ms))) {
            *ret_left_at = from_at;
            return 0;
        }
    }
    return 0;
}

int failure_list(struct db *db, const struct failure_filter *f,
                 void (*each)(const struct failure *x, void *arg), void *arg, int64_t *ret_left_at,
                 struct err *err)
{
    struct reading w = {f->tag_glob, each, arg};
    int64_t left_at = TASK_TIME_NONE;
    int rc = f->newest ? list_newest(db, f, &w, &left_at, err)
                       : list_part(db, f->since_at, f->before_at, true, 0, &w, err);

    /* of equal times, some may have been read: those are left out */
    if (rc == 0 && left_at != TASK_TIME_NONE)
        rc = list_part(db, f->since_at, left_at, false, f->oldest, &w, err);
    if (rc == 0)
        *ret_left_at = left_at;
    return rc;
}
