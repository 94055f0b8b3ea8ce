/*
 * task_floor.c - the lowest id of the tasks created since an instant. Invariant: each statement
 * reads one row.
 */
#include "store/task_floor.h"
#include "store/columns.h"
#include "store/sql.h"

#include <inttypes.h>

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

/* Reads id and create_time of the first task with this id or a greater one. 1, or 0 if there is
 * none. */
static int task_from_id(struct db *db, uint64_t id, uint64_t *ret_id, int64_t *ret_create_at,
                        struct err *err)
{
    struct buf sql = BUF_INIT;
    struct first first = {0, 0};

    buf_printf(&sql,
               "SELECT %s FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= %" PRIu64
               " ORDER BY id LIMIT 1",
               COLUMNS_SELECT(FIRST_COLUMNS), id);
    int rc = db_first(db, &sql, FIRST_COUNT, take_first, &first, err);
    if (rc == 1 && first.id < id) {
        rc = sql_odd_row(db, err);
    } else if (rc == 1) {
        *ret_id = first.id;
        *ret_create_at = first.create_at;
    }
    buf_done(&sql);
    return rc;
}

int task_floor_id(struct db *db, int64_t at, uint64_t *ret_id, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct range range = {0, 0};
    uint64_t id = 0;
    int64_t create_at = 0;

    buf_printf(&sql, "SELECT %s FROM dq_task", COLUMNS_SELECT(RANGE_COLUMNS));
    int rc = db_first(db, &sql, RANGE_COUNT, take_range, &range, err);
    buf_done(&sql);
    while (rc >= 0 && range.low < range.high) {
        uint64_t middle = range.low + (range.high - range.low) / 2;
        rc = task_from_id(db, middle, &id, &create_at, err);
        if (rc == 1 && create_at < at)
            range.low = id + 1;
        else
            range.high = middle;
    }
    if (rc < 0)
        return rc;
    *ret_id = range.low;
    return 0;
}
