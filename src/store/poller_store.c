/*
 * poller_store.c - the pollers that are alive.
 *
 * Invariant: correctness never depends on these rows; a wrong share only causes lost races.
 */
#include "store/poller_store.h"
#include "base/mem.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE "last_seen > UTC_TIMESTAMP(3) - INTERVAL (stale_after * 1000) MICROSECOND"

static int say_alive(struct db *db, const struct claim_owner *owner, const char *mode, int slots,
                     int running, int64_t stale_after_ms, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(
        &sql,
        "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version) VALUES (");
    sql_put_token(&sql, owner->token);
    buf_chr(&sql, ',');
    db_put_text(&sql, owner->host);
    buf_printf(&sql, ",%" PRIu32 ",", owner->pid);
    db_put_text(&sql, mode);
    buf_printf(&sql, ",%d,%d,UTC_TIMESTAMP(3),UTC_TIMESTAMP(3),%" PRId64 ",", slots, running,
               stale_after_ms);
    db_put_text(&sql, PACKAGE_VERSION);
    buf_printf(
        &sql,
        ") ON DUPLICATE KEY UPDATE slots = %d, running = %d, last_seen = UTC_TIMESTAMP(3), stale_after = %" PRId64,
        slots, running, stale_after_ms);
    int rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc;
}

/* ERR_LOCKED, without waiting, if another session has locked our row. */
static int probe(struct db *db, const struct claim_owner *owner, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT token FROM dq_poller WHERE token = ");
    sql_put_token(&sql, owner->token);
    buf_str(&sql, " FOR UPDATE NOWAIT");
    int rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

/* Our token is appended to the last one. */
#define SHARE_COLUMNS(X) SQL_NOW(X, SHARE_NOW) X(SHARE_BEFORE_US, "token < ")
enum { SHARE_COLUMNS(COLUMNS_NAME) SHARE_COUNT };

static int count_poller(const struct db_rows *r, void *arg, struct err *err)
{
    struct poller_share *found = arg;

    (void)err;
    found->now_us = sql_now_us(r, SHARE_NOW);
    found->share += db_u64(r, SHARE_BEFORE_US) == 1;
    found->shares++;
    return 0;
}

int poller_store_beat(struct db *db, const struct claim_owner *owner, const char *mode, int slots,
                      int running, int64_t stale_after_ms, bool careful, struct poller_share *ret,
                      struct err *err)
{
    struct buf sql = BUF_INIT;
    struct poller_share found = {0};

    int rc = careful && db_skips_locked(db) ? probe(db, owner, err) : 0;
    if (rc == 0)
        rc = say_alive(db, owner, mode, slots, running, stale_after_ms, err);
    if (rc == ERR_LOCKED) {
        found.unheard = true;
        rc = 0;
    }
    buf_printf(&sql, "SELECT %s", COLUMNS_SELECT(SHARE_COLUMNS));
    sql_put_token(&sql, owner->token);
    buf_str(&sql, " FROM dq_poller WHERE " ALIVE);
    if (rc == 0)
        rc = db_each(db, &sql, SHARE_COUNT, count_poller, &found, err);
    buf_done(&sql);
    if (rc == 0)
        *ret = found;
    return rc;
}

int poller_store_leave(struct db *db, const struct claim_owner *owner, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "DELETE FROM dq_poller WHERE token = ");
    sql_put_token(&sql, owner->token);
    int rc = db_exec(db, &sql, NULL, err);
    buf_reset(&sql);
    buf_str(&sql, "DELETE FROM dq_poller WHERE last_seen < UTC_TIMESTAMP(3) - INTERVAL 1 DAY");
    if (rc == 0)
        rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc;
}

/* The columns of dq_poller that struct poller_info has, and how a cell becomes a field. */
/* clang-format off */
#define INFO_COLUMNS(X)                                                          \
    X(TOKEN, "token", read_token(r, TOKEN, p->token))                            \
    X(HOST, "host", p->host = mem_strdup(db_string(r, HOST)))                    \
    X(PID, "pid", p->pid = db_u32(r, PID))                                       \
    X(MODE, "mode", snprintf(p->mode, sizeof p->mode, "%s", db_string(r, MODE))) \
    X(SLOTS, "slots", p->slots = db_int(r, SLOTS, 0))                            \
    X(RUNNING, "running", p->running = db_int(r, RUNNING, 0))                    \
    X(STARTED, "start_time", p->started_at = db_time(r, STARTED))                \
    X(LAST_SEEN, "last_seen", p->last_seen_at = db_time(r, LAST_SEEN))           \
    X(STALE_AFTER, "stale_after", p->stale_after_ms = db_i64(r, STALE_AFTER, 0)) \
    X(DQD_VERSION, "version", p->version = sql_dup(r, DQD_VERSION, NULL))        \
    X(LIVES, ALIVE, p->alive = db_u64(r, LIVES) == 1)
/* clang-format on */
enum { INFO_COLUMNS(COLUMNS_NAME) INFO_COUNT };

static void read_token(const struct db_rows *r, unsigned col, unsigned char ret[TASK_TOKEN_SIZE])
{
    size_t len;
    const char *token = db_text(r, col, &len);

    if (token)
        memcpy(ret, token, len < TASK_TOKEN_SIZE ? len : TASK_TOKEN_SIZE);
}

struct infos {
    struct poller_info *items;
    size_t count;
};

static int add_info(const struct db_rows *r, void *arg, struct err *err)
{
    struct infos *list = arg;

    (void)err;
    list->items = mem_resize(list->items, list->count + 1, sizeof *list->items);
    struct poller_info *p = &list->items[list->count++];
    *p = (struct poller_info){0};
#define READ(name, text, statement) statement;
    INFO_COLUMNS(READ)
#undef READ
    return 0;
}

int poller_store_list(struct db *db, struct poller_info **ret, size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct infos list = {0};

    buf_printf(&sql, "SELECT %s FROM dq_poller ORDER BY host, pid, token",
               COLUMNS_SELECT(INFO_COLUMNS));
    int rc = db_each(db, &sql, INFO_COUNT, add_info, &list, err);
    buf_done(&sql);
    if (rc < 0) {
        poller_store_free(list.items, list.count);
        return rc;
    }
    *ret = list.items;
    *ret_count = list.count;
    return 0;
}

void poller_store_free(struct poller_info *p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(p[i].host), free(p[i].version);
    free(p);
}
