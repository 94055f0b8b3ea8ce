/*
 * task_floor.c - the lowest id of the tasks created since an instant. Invariant: the rows that are
 * read are bounded, however large the table is.
 */
#include "store/ask/task_floor.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/fleet/event_store.h"
#include "store/row/sql.h"

/* By which a row may be created before those with lower ids: a transaction that took so long. */
#define SLACK_MS WHEN_HOUR
#define NEAR_IDS 20000 /* below the floor: all of them are looked at */

#define FIRST_COLUMNS(X) X(FIRST_ID, "id") X(FIRST_CREATED, "create_time")
/* clang-format off */
#define RANGE_COLUMNS(X)                 \
    X(RANGE_LOW, "COALESCE(MIN(id), 0)") \
    X(RANGE_HIGH, "COALESCE(MAX(id), 0) + 1")
/* clang-format on */
enum { FIRST_COLUMNS(COLUMNS_NAME) FIRST_COUNT };
enum { RANGE_COLUMNS(COLUMNS_NAME) RANGE_COUNT };

struct first {
    uint64_t id;
    int64_t create_at;
};

static void take_first(const struct db_rows *r, void *arg)
{
    *(struct first *)arg = (struct first){db_u64(r, FIRST_ID), db_time(r, FIRST_CREATED)};
}

struct range {
    uint64_t low, high;
};

static void take_range(const struct db_rows *r, void *arg)
{
    *(struct range *)arg = (struct range){db_u64(r, RANGE_LOW), db_u64(r, RANGE_HIGH)};
}

/* Reads id and create_time of the first task with this id or a greater one. 1; 0: there is none.
 */
static int task_from_id(struct db *db, uint64_t id, uint64_t *ret_id, int64_t *ret_create_at,
                        struct err *err)
{
    struct first first = {0, 0};
    int rc =
        sql_first(db, FIRST_COUNT, take_first, &first, err,
                  "SELECT ? FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= ? ORDER BY id LIMIT 1",
                  SQL_PART(COLUMNS_SELECT(FIRST_COLUMNS)), SQL_ID(id));

    if (rc == 1 && first.id < id) {
        rc = db_odd_row(db, err);
    } else if (rc == 1) {
        *ret_id = first.id;
        *ret_create_at = first.create_at;
    }
    return rc;
}

/* Finds the border between tasks that were created before `at` and later, if there is one. */
static int bisect(struct db *db, int64_t at, struct range *ret, struct err *err)
{
    uint64_t id = 0, high;
    int64_t create_at = 0;
    int rc = sql_first(db, RANGE_COUNT, take_range, ret, err, "SELECT ? FROM dq_task",
                       SQL_PART(COLUMNS_SELECT(RANGE_COLUMNS)));

    high = ret->high;
    ret->high = ret->low;
    while (rc >= 0 && ret->high < high) {
        uint64_t middle = ret->high + (high - ret->high) / 2;
        rc = task_from_id(db, middle, &id, &create_at, err);
        if (rc == 1 && create_at < at)
            ret->high = id + 1;
        else
            high = middle;
    }
    return rc < 0 ? rc : 0;
}

/* Appends a task just below below->high that was created at `at` or later, if there is one, and
 * single ones at distances that grow by a quarter: they meet any run of tasks that is a quarter as
 * long as its distance. */
static void put_samples(struct buf *sql, int64_t at, const struct range *below)
{
    uint64_t most = below->high - below->low;

    sql_put(sql,
            "(SELECT create_time FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= ? AND id < ?"
            " AND create_time >= ? LIMIT 1)",
            SQL_ID(most > NEAR_IDS ? below->high - NEAR_IDS : below->low), SQL_ID(below->high),
            SQL_TIME(at));
    for (uint64_t away = NEAR_IDS; away <= most; away += away / 4)
        sql_put(sql,
                " UNION ALL (SELECT create_time FROM dq_task FORCE INDEX (PRIMARY)"
                " WHERE id >= ? AND id < ? ORDER BY id LIMIT 1)",
                SQL_ID(below->high - away), SQL_ID(below->high));
}

/* Whether some task below the border was created at `at` or later: 1 or 0. */
static int is_broken(struct db *db, int64_t at, const struct range *below, struct err *err)
{
    BUF_LOCAL struct buf samples = BUF_INIT;

    put_samples(&samples, at, below);
    return sql_first(db, COLUMNS_ONE, NULL, NULL, err,
                     "SELECT 1 FROM (?) x WHERE create_time >= ? LIMIT 1", SQL_PART(samples.data),
                     SQL_TIME(at));
}

int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, bool *ret_ordered, struct err *err)
{
    struct range below = {0, 0};

    int rc = bisect(db, at - SLACK_MS, &below, err);
    if (rc == 0 && below.low < below.high)
        rc = event_store_has(db, "import", at - SLACK_MS, err);
    if (rc == ERR_DENIED) /* then it is not known whether there was one */
        rc = 1;
    if (rc == 0 && below.low < below.high)
        rc = is_broken(db, at, &below, err);
    if (rc < 0)
        return rc;
    *ret_id = rc ? 0 : below.high;
    *ret_ordered = !rc;
    return 0;
}
