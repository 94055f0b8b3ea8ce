/*
 * health_store.c - see health_store.h. Invariant: nothing here locks a row or reads more than
 * HEALTH_ROWS of them.
 */
#include "store/ask/health_store.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <stdio.h>
#include <string.h>

/* ---- settings */

struct wanted {
    const char *const *names;
    size_t count;
    char **values;
};

static void take_setting(const struct db_rows *r, void *arg)
{
    const struct wanted *w = arg;

    for (size_t i = 0; i < w->count; i++)
        if (!w->values[i] && !strcmp(w->names[i], db_string(r, COLUMNS_SHOW_NAME)))
            w->values[i] = mem_strdup(db_string(r, COLUMNS_SHOW_VALUE));
}

int health_store_settings(struct db *db, const char *const *names, size_t count, char **ret_values,
                          struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct wanted wanted = {names, count, ret_values};

    buf_str(&sql, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('");
    for (size_t i = 0; i < count; i++) {
        ret_values[i] = NULL;
        buf_printf(&sql, "%s%s", i ? "', '" : "", names[i]);
    }
    buf_str(&sql, "')");
    return db_all(db, &sql, COLUMNS_SHOW, take_setting, &wanted, err);
}

/* ---- clock */

int health_store_clock(struct db *db, struct health_clock *ret, struct err *err)
{
    int64_t server_at = 0, begun_us = when_steady_us(), host_at = when_host_wall();

    int rc = db_now(db, &server_at, err);
    if (rc == 0 && server_at <= 0)
        rc = db_odd_row(db, err);
    if (rc < 0)
        return rc;
    ret->trip_us = when_steady_us() - begun_us;
    ret->ahead_ms = server_at - host_at - ret->trip_us / 2000;
    return 0;
}

/* ---- plans */

struct planning {
    const struct sql_explain *at;
    struct health_plan *plan;
    bool begun;
};

static void take_plan(const struct db_rows *r, void *arg)
{
    struct planning *w = arg;
    const char *extra = db_string(r, w->at->extra);

    w->plan->sorts = w->plan->sorts || strstr(extra, "filesort") || strstr(extra, "temporary");
    if (w->begun)
        return;
    w->begun = true;
    snprintf(w->plan->key, sizeof w->plan->key, "%s", db_string(r, w->at->key));
    snprintf(w->plan->type, sizeof w->plan->type, "%s", db_string(r, w->at->type));
    w->plan->rows = db_u64(r, w->at->rows);
    w->plan->loose = strstr(extra, "group-by");
}

int health_store_plan(struct db *db, const struct buf *statement, struct health_plan *ret,
                      struct err *err)
{
    struct planning w = {sql_explain_columns(db), ret, false};

    *ret = (struct health_plan){.rows = 0};
    return sql_all(db, w.at->count, take_plan, &w, err, SQL_EXPLAIN "?", SQL_PART(statement->data));
}

/* ---- rows */

#define UNKEYED "status IN (0,3,5,6) AND task_key IS NOT NULL AND COALESCE(live, 0) <> 1"
#define UNKNOWN "status >= " TEXT_OF(SQL_STATUS_COUNT)
#define DATELESS "status " SQL_PENDING " AND expected_time < '1000-01-01'"
/* clang-format off */
#define ODD_COLUMNS(X)                                  \
    X(ODD_UNKEYED, "COALESCE(SUM(" UNKEYED "), 0)")     \
    X(ODD_UNKNOWN, "COALESCE(SUM(" UNKNOWN "), 0)")     \
    X(ODD_DATELESS, "COALESCE(SUM(" DATELESS "), 0)")   \
    X(ODD_EXAMPLE, "MIN(CASE WHEN " UNKEYED " OR " UNKNOWN " OR " DATELESS " THEN id END)")
/* clang-format on */
enum { ODD_COLUMNS(COLUMNS_NAME) ODD_COUNT };
_Static_assert(TASK_RUNNING == 3, "the numbers in the statements above");

static void take_odd(const struct db_rows *r, void *arg)
{
    *(struct health_rows *)arg =
        (struct health_rows){db_u64(r, ODD_UNKEYED), db_u64(r, ODD_UNKNOWN),
                             db_u64(r, ODD_DATELESS), db_u64(r, ODD_EXAMPLE)};
}

int health_store_rows(struct db *db, struct health_rows *ret, struct err *err)
{
    return sql_read(db, ODD_COUNT, take_odd, ret, err,
                    "SELECT ? FROM (SELECT id, status, task_key, live, expected_time FROM dq_task"
                    " FORCE INDEX (PRIMARY) ORDER BY id DESC LIMIT ?) n",
                    SQL_PART(COLUMNS_SELECT(ODD_COLUMNS)), SQL_INT(HEALTH_ROWS));
}
