/*
 * why_store.c - see why_store.h. Invariant: no statement reads more than WHY_STORE_MOST + 1 rows or
 * index entries, however large the table is.
 */
#include "store/why_store.h"
#include "base/mem.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MEAN_OF 100
/* paused_until of a tag that is paused until it is resumed: 9999-12-31 23:59:59.999 */
#define PAUSED_FOR_EVER_AT INT64_C(253402300799999)

static void put_tag_range(struct buf *sql, enum task_status status, const char *tag)
{
    buf_printf(sql, " FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ", (int)status);
    sql_put_tag(sql, tag);
}

static int count_before(struct db *db, const struct task *t, struct why_tag *ret, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT COUNT(*) FROM (SELECT 1");
    put_tag_range(&sql, TASK_PENDING, t->tag);
    buf_str(&sql, " AND expected_time <= ");
    db_put_time(&sql, t->expected_at);
    buf_str(&sql, " AND NOT (expected_time = ");
    db_put_time(&sql, t->expected_at);
    buf_printf(&sql, " AND id >= %" PRIu64 ") LIMIT %d) b", t->id, WHY_STORE_MOST + 1);
    int rc = db_first(db, &sql, COLUMNS_ONE, sql_take_u64, &ret->before, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

#define OWNER_COLUMNS(X) X(OWNER_TOKEN, "claim_token") X(OWNER_TASKS, "COUNT(*)")
enum { OWNER_COLUMNS(COLUMNS_NAME) OWNER_COUNT };

static int add_owner(const struct db_rows *r, void *arg, struct err *err)
{
    struct why_tag *w = arg;
    size_t len = 0;
    const char *token = db_text(r, OWNER_TOKEN, &len);

    (void)err;
    w->owners = mem_resize(w->owners, w->owner_count + 1, sizeof *w->owners);
    struct why_owner *o = &w->owners[w->owner_count++];
    *o = (struct why_owner){.tasks = db_u64(r, OWNER_TASKS)};
    if (token)
        memcpy(o->token, token, len < TASK_TOKEN_SIZE ? len : TASK_TOKEN_SIZE);
    return 0;
}

static int read_owners(struct db *db, const char *tag, struct why_tag *ret, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM (SELECT claim_token", COLUMNS_SELECT(OWNER_COLUMNS));
    put_tag_range(&sql, TASK_RUNNING, tag);
    buf_printf(&sql, " LIMIT %d) o GROUP BY claim_token", WHY_STORE_MOST + 1);
    int rc = db_each(db, &sql, OWNER_COUNT, add_owner, ret, err);
    buf_done(&sql);
    return rc;
}

static void take_mean(const struct db_rows *r, void *arg)
{
    *(int64_t *)arg = db_i64(r, COLUMNS_ONLY, -1);
}

static int read_mean(struct db *db, const char *tag, struct why_tag *ret, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(
        &sql,
        "SELECT AVG(took) DIV 1000 FROM (SELECT TIMESTAMPDIFF(MICROSECOND, execution_time, finish_time) AS took");
    put_tag_range(&sql, TASK_DONE, tag);
    buf_printf(&sql, " ORDER BY expected_time DESC LIMIT %d) m", MEAN_OF);
    int rc = db_first(db, &sql, COLUMNS_ONE, take_mean, &ret->mean_ms, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

/* clang-format off */
#define PAUSE_COLUMNS(X)             \
    X(PAUSE_UNTIL, "paused_until")   \
    X(PAUSE_BY, "paused_by")         \
    X(PAUSE_REASON, "pause_reason")
/* clang-format on */
enum { PAUSE_COLUMNS(COLUMNS_NAME) PAUSE_COUNT };

static void take_pause(const struct db_rows *r, void *arg)
{
    struct why_tag *w = arg;
    int64_t until_at = db_time(r, PAUSE_UNTIL);

    w->paused_until_at = until_at >= PAUSED_FOR_EVER_AT ? INT64_MAX : until_at;
    w->paused_by = sql_dup(r, PAUSE_BY, NULL);
    w->pause_reason = sql_dup(r, PAUSE_REASON, NULL);
}

static int read_pause(struct db *db, const char *tag, struct why_tag *ret, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM dq_tag WHERE tag = ", COLUMNS_SELECT(PAUSE_COLUMNS));
    sql_put_tag(&sql, tag);
    buf_str(&sql, " AND paused_until > UTC_TIMESTAMP(3)");
    int rc = db_first(db, &sql, PAUSE_COUNT, take_pause, ret, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

int why_store_read(struct db *db, const struct task *t, struct why_tag *ret, struct err *err)
{
    *ret = (struct why_tag){.mean_ms = -1, .paused_until_at = TASK_TIME_NONE};
    int rc = count_before(db, t, ret, err);
    if (rc == 0)
        rc = read_owners(db, t->tag, ret, err);
    if (rc == 0)
        rc = read_mean(db, t->tag, ret, err);
    if (rc == 0)
        rc = read_pause(db, t->tag, ret, err);
    return rc;
}

void why_store_done(struct why_tag *w)
{
    free(w->owners);
    free(w->paused_by);
    free(w->pause_reason);
}

int why_store_first(struct db *db, const char *tag, uint64_t *ret_id, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT id");
    put_tag_range(&sql, TASK_PENDING, tag);
    buf_str(&sql, " ORDER BY expected_time, id LIMIT 1");
    int rc = db_first(db, &sql, COLUMNS_ONE, sql_take_u64, ret_id, err);
    buf_done(&sql);
    return rc;
}

int why_store_locked(struct db *db, uint64_t id, struct err *err)
{
    struct buf sql = BUF_INIT;

    if (!db_skips_locked(db))
        return err_set(err, ERR_STATE, "this server has no SKIP LOCKED");
    buf_printf(&sql,
               "SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE id = %" PRIu64
               " FOR UPDATE SKIP LOCKED",
               id);
    int rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
    buf_done(&sql);
    return rc < 0 ? rc : rc == 0;
}
