/*
 * failure_list.c - see failure_list.h. Invariant: with limits no statement reads more rows than
 * they allow, however many attempts there are.
 */
#include "store/failure_list.h"
#include "base/task.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/sql.h"

#include <stdlib.h>

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
    void (*each)(const struct failure *x, void *arg);
    void *arg;
    size_t rows;
    int64_t last_at; /* of the last row */
};

static bool is_failure(int outcome)
{
    return outcome != OUTCOME_DONE && outcome != OUTCOME_CANCELLED;
}

static int take_failure(const struct db_rows *r, void *arg, struct err *err)
{
    struct reading *w = arg;
    const char *error = db_text(r, FAILURE_ERROR, NULL), *outcome = db_string(r, FAILURE_OUTCOME);
    struct failure x = {.id = db_u64(r, FAILURE_ID),
                        .status = sql_status(r, FAILURE_STATUS),
                        .error = error ? error : outcome,
                        .finish_at = db_time(r, FAILURE_FINISH)};

    (void)err;
    w->rows++;
    w->last_at = x.finish_at;
    if (db_is_null(r, FAILURE_TAG) || !is_failure(task_outcome_parse(outcome)))
        return 0;
    char *tag = sql_dup_tag(r, FAILURE_TAG);
    x.tag = tag;
    w->each(&x, w->arg);
    free(tag);
    return 0;
}

/* before_at TASK_TIME_NONE: up to now. most 0: all. */
static int list_part(struct db *db, int64_t since_at, int64_t before_at, bool newest_first,
                     size_t most, struct reading *w, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT STRAIGHT_JOIN %s FROM dq_attempt a FORCE INDEX (finished)"
               " LEFT JOIN dq_task t FORCE INDEX (PRIMARY) ON t.id = a.task_id"
               " WHERE a.finish_time >= ",
               COLUMNS_SELECT(FAILURE_COLUMNS));
    db_put_time(&sql, since_at);
    if (before_at != TASK_TIME_NONE) {
        buf_str(&sql, " AND a.finish_time < ");
        db_put_time(&sql, before_at);
    }
    buf_printf(&sql, " ORDER BY a.finish_time%s", newest_first ? " DESC" : "");
    if (most)
        buf_printf(&sql, " LIMIT %zu", most);
    w->rows = 0;
    int rc = db_each_streamed(db, &sql, FAILURE_COUNT, take_failure, w, err);
    buf_done(&sql);
    return rc;
}

int failure_list(struct db *db, const struct failure_filter *f,
                 void (*each)(const struct failure *x, void *arg), void *arg, bool *ret_sampled,
                 struct err *err)
{
    struct reading w = {.each = each, .arg = arg};

    *ret_sampled = false;
    int rc = list_part(db, f->since_at, TASK_TIME_NONE, true, f->newest, &w, err);
    if (rc < 0 || !f->newest || w.rows < f->newest)
        return rc;
    *ret_sampled = true;
    /* of equal times, some may have been read: those are left out */
    return list_part(db, f->since_at, w.last_at, false, f->oldest, &w, err);
}
