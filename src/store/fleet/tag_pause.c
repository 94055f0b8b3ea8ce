/*
 * tag_pause.c - see tag_pause.h. Invariant: a change and its event are one transaction.
 */
#include "store/fleet/tag_pause.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <stdlib.h>
#include <sys/param.h>

/* paused_until of a tag that is paused until it is resumed. */
#define FOR_EVER_AT WHEN_AT_MAX

#define COLUMNS(X) TAG_PAUSE_COLUMNS(X, "")
enum { COLUMNS(COLUMNS_NAME) COLUMN_COUNT };

void tag_pause_take(const struct db_rows *r, unsigned first, struct tag_pause *ret)
{
    int64_t until_at = db_time(r, first);

    ret->until_at = until_at >= FOR_EVER_AT ? INT64_MAX : until_at;
    ret->by = sql_dup(r, first + 1, NULL);
    ret->reason = sql_dup(r, first + 2, NULL);
}

static void take(const struct db_rows *r, void *arg)
{
    tag_pause_take(r, TAG_PAUSE_UNTIL, arg);
}

int tag_pause_read(struct db *db, const char *tag, struct tag_pause *ret, struct err *err)
{
    struct buf sql = BUF_INIT;

    *ret = (struct tag_pause){.until_at = TASK_TIME_NONE};
    buf_printf(&sql, "SELECT %s FROM dq_tag WHERE tag = ", COLUMNS_SELECT(COLUMNS));
    sql_put_tag(&sql, tag);
    buf_str(&sql, " AND " SQL_PAUSED(""));
    int rc = db_first(db, &sql, COLUMN_COUNT, take, ret, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

void tag_pause_done(struct tag_pause *p)
{
    free(p->by);
    free(p->reason);
}

/* The statement and its event, in one transaction. */
static int change_tag(struct db *db, const struct buf *sql, struct event_act *act,
                      uint64_t *ret_rows, struct err *err)
{
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = db_exec(db, sql, ret_rows, err);
    if (rc == 0 && *ret_rows)
        rc = event_store_add(db, act, NULL, 0, err);
    const bool sent = rc == 0;
    rc = db_end(db, rc, err);
    if (sent && rc == ERR_LOST)
        err_set(err, rc,
                "%s; it is not known whether the tag was changed: running it again is safe",
                err->text);
    return rc;
}

int tag_pause_begin(struct db *db, struct event_act *act, int64_t until_at, int64_t for_ms,
                    const char *reason, struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t rows;

    buf_str(
        &sql,
        "INSERT INTO dq_tag (tag, paused_until, paused_by, pause_reason, update_time) VALUES (");
    db_put_text(&sql, act->tag);
    buf_chr(&sql, ',');
    if (until_at == TASK_TIME_NONE)
        sql_put_from_now(&sql, for_ms);
    else
        db_put_time(&sql, MIN(until_at, FOR_EVER_AT));
    buf_chr(&sql, ',');
    db_put_text(&sql, act->actor);
    buf_chr(&sql, ',');
    db_put_text(&sql, reason);
    buf_str(
        &sql,
        ",UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE paused_until = VALUES(paused_until), paused_by = VALUES(paused_by),"
        " pause_reason = VALUES(pause_reason), update_time = VALUES(update_time)");
    int rc = change_tag(db, &sql, act, &rows, err);
    buf_done(&sql);
    return rc < 0 ? rc : 1;
}

int tag_pause_end(struct db *db, struct event_act *act, struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t rows = 0;

    buf_str(
        &sql,
        "UPDATE dq_tag SET paused_until = NULL, paused_by = NULL, pause_reason = NULL, update_time = UTC_TIMESTAMP(3) "
        "WHERE tag = ");
    db_put_text(&sql, act->tag);
    buf_str(&sql, " AND " SQL_PAUSED(""));
    int rc = change_tag(db, &sql, act, &rows, err);
    buf_done(&sql);
    return rc < 0 ? rc : rows > 0;
}
