/*
 * poller_store.c - who polls.
 *
 * Invariant: correctness never depends on these rows; a wrong share only costs lost races.
 */
#include "store/poller_store.h"
#include "base/mem.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE "last_seen > UTC_TIMESTAMP(3) - INTERVAL (stale_after * 1000) MICROSECOND"

static int say_alive(struct db *db, const struct claim_owner *owner, const char *mode, int slots, int running,
                     int64_t stale_after_ms, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after) VALUES (");
    sql_put_token(&sql, owner->token);
    buf_chr(&sql, ',');
    db_put_text(&sql, owner->host);
    buf_printf(&sql, ",%" PRIu32 ",", owner->pid);
    db_put_text(&sql, mode);
    buf_printf(&sql, ",%d,%d,UTC_TIMESTAMP(3),UTC_TIMESTAMP(3),%" PRId64 ")", slots, running, stale_after_ms);
    buf_printf(&sql, " ON DUPLICATE KEY UPDATE slots = %d, running = %d, last_seen = UTC_TIMESTAMP(3), stale_after = %" PRId64,
               slots, running, stale_after_ms);
    int rc = db_exec(db, &sql, NULL, err);
    buf_done(&sql);
    return rc;
}

/* ERR_LOCKED at once if somebody has locked our row. */
static int probe(struct db *db, const struct claim_owner *owner, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT token FROM dq_poller WHERE token = ");
    sql_put_token(&sql, owner->token);
    buf_str(&sql, " FOR UPDATE NOWAIT");
    int rc = db_first(db, &sql, 1, NULL, NULL, err);
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

static int count_poller(const struct db_rows *r, void *arg, struct err *err)
{
    struct poller_share *found = arg;

    (void)err;
    found->now_us = sql_now_us(r);
    found->share += db_u64(r, 2) == 1;
    found->shares++;
    return 0;
}

int poller_store_beat(struct db *db, const struct claim_owner *owner, const char *mode, int slots, int running,
                      int64_t stale_after_ms, bool careful, struct poller_share *ret, struct err *err)
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
    buf_str(&sql, "SELECT " SQL_NOW ", token < ");
    sql_put_token(&sql, owner->token);
    buf_str(&sql, " FROM dq_poller WHERE " ALIVE);
    if (rc == 0)
        rc = db_each(db, &sql, 3, count_poller, &found, err);
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

struct infos {
    struct poller_info *items;
    size_t count;
};

static int add_info(const struct db_rows *r, void *arg, struct err *err)
{
    struct infos *list = arg;
    size_t len;

    (void)err;
    list->items = mem_resize(list->items, list->count + 1, sizeof *list->items);
    struct poller_info *p = &list->items[list->count++];
    const char *token = db_text(r, 0, &len);

    *p = (struct poller_info){
        .host = mem_strdup(db_string(r, 1)),
        .pid = db_u32(r, 2),
        .slots = db_int(r, 4, 0),
        .running = db_int(r, 5, 0),
        .started_at = db_time(r, 6),
        .last_seen_at = db_time(r, 7),
        .stale_after_ms = db_i64(r, 8, 0),
        .alive = db_u64(r, 9) == 1,
    };
    if (token)
        memcpy(p->token, token, len < TASK_TOKEN_SIZE ? len : TASK_TOKEN_SIZE);
    snprintf(p->mode, sizeof p->mode, "%s", db_string(r, 3));
    return 0;
}

int poller_store_list(struct db *db, struct poller_info **ret, size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct infos list = {0};

    buf_str(&sql, "SELECT token, host, pid, mode, slots, running, start_time, last_seen, stale_after, " ALIVE
                  " FROM dq_poller ORDER BY host, pid, token");
    int rc = db_each(db, &sql, 10, add_info, &list, err);
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
        free(p[i].host);
    free(p);
}
