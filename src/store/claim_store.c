/*
 * claim_store.c - what is due, and taking it.
 *
 * Invariant: a task counts as won only when the server has said that our UPDATE matched its row at the version that we read.
 * Candidates are read without locks through the index `due`; rows are then changed through the primary key only, in the order of
 * ids, so that claimers, settlers and reapers do not deadlock.
 */
#include "store/claim_store.h"
#include "base/mem.h"
#include "store/task_sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_BODY 16384 /* comes along with the claim */

void task_list_done(struct task_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        task_done(&l->items[i]);
    free(l->items);
    *l = (struct task_list){NULL, 0, 0};
}

static struct task *task_list_add(struct task_list *l)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->items = mem_resize(l->items, l->cap, sizeof *l->items);
    }
    struct task *t = &l->items[l->count++];
    task_init(t);
    return t;
}

/* ---- peek */

static void peek_reset(struct claim_peek *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->tags[i].tag);
    p->count = 0;
    p->now_us = 0;
}

void claim_peek_done(struct claim_peek *p)
{
    peek_reset(p);
    free(p->tags);
    *p = (struct claim_peek){.now_us = 0};
}

static void peek_add(struct claim_peek *p, const struct db_rows *r)
{
    if (p->count == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 16;
        p->tags = mem_resize(p->tags, p->cap, sizeof *p->tags);
    }
    p->tags[p->count++] = (struct claim_peek_tag){sql_dup_tag(r, 2), sql_due(r, 3)};
}

static int read_peek(struct db *db, const struct buf *sql, unsigned columns, struct claim_peek *p, uint64_t *id, struct err *err)
{
    struct db_rows *rows = NULL;

    int rc = db_query(db, sql, columns, false, &rows, err);
    if (rc == 0)
        peek_reset(p);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        p->now_us = sql_now_us(rows);
        peek_add(p, rows);
        if (id && db_u64(rows, 4) > *id)
            *id = db_u64(rows, 4);
        rc = 0;
    }
    db_rows_free(rows);
    return rc;
}

/* The condition as a range and the GROUP BY of both columns make it a loose index scan: one read a tag, however many tasks there
 * are. (`status = 0` would be a plain scan of all that is pending.) Without a join, for this is what an idle dqd asks. MariaDB takes
 * the limit as a setting, MySQL as a hint; each reads the other's as a comment. */
int claim_store_peek(struct db *db, int64_t limit_ms, struct claim_peek *p, struct err *err)
{
    struct buf sql = BUF_INIT;

    if (limit_ms)
        buf_printf(&sql, "/*M! SET STATEMENT max_statement_time = %" PRId64 ".%03d FOR */ ", limit_ms / 1000, (int)(limit_ms % 1000));
    buf_str(&sql, "SELECT ");
    if (limit_ms)
        buf_printf(&sql, "/*+ MAX_EXECUTION_TIME(%" PRId64 ") */ ", limit_ms);
    buf_printf(&sql,
               SQL_NOW ", tag, MIN(expected_time) FROM dq_task FORCE INDEX (due) WHERE status > %d AND status < %d"
                       " GROUP BY status, tag",
               TASK_PENDING - 1, TASK_PENDING + 1);
    int rc = read_peek(db, &sql, 4, p, NULL, err);
    buf_done(&sql);
    return rc;
}

int claim_store_news(struct db *db, uint64_t *id, struct claim_peek *p, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT " SQL_NOW ", tag, MIN(expected_time), MAX(id) FROM (SELECT id, status, tag, expected_time FROM dq_task"
               " FORCE INDEX (PRIMARY) WHERE id > %" PRIu64 " ORDER BY id DESC LIMIT %d) n WHERE status = %d GROUP BY tag",
               *id, CLAIM_NEWS_MOST, TASK_PENDING);
    int rc = read_peek(db, &sql, 5, p, id, err);
    buf_done(&sql);
    return rc;
}

/* Two ranges of the index, which has the id behind its last column. */
static void put_floor(struct buf *sql, const struct claim_floor *floor)
{
    if (floor->at <= 0) /* not known, or below all that dq stores: applications store zero dates */
        return;
    buf_str(sql, floor->id ? " AND (c.expected_time > " : " AND c.expected_time >= ");
    db_put_time(sql, floor->at);
    if (floor->id) {
        buf_str(sql, " OR c.expected_time = ");
        db_put_time(sql, floor->at);
        buf_printf(sql, " AND c.id > %" PRIu64 ")", floor->id);
    }
}

int claim_store_next(struct db *db, const char *tag, const struct claim_floor *floor, int64_t *ret_now_us, int64_t *ret_next_at,
                     struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    int64_t now_us = 0, next_at = TASK_TIME_NONE;

    buf_printf(&sql, "SELECT " SQL_NOW ", c.expected_time FROM dq_task c FORCE INDEX (due) WHERE c.status = %d AND c.tag = ",
               TASK_PENDING);
    db_put_text(&sql, tag);
    put_floor(&sql, floor);
    buf_str(&sql, " ORDER BY c.expected_time, c.id LIMIT 1");
    int rc = db_query(db, &sql, 3, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        now_us = sql_now_us(rows);
        next_at = sql_due(rows, 2);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    if (rc == 0) {
        *ret_now_us = now_us;
        *ret_next_at = next_at;
    }
    return rc;
}

/* ---- claim */

#define CLAIM_COLUMNS                                                                                                              \
    "c.id, c.version, c.tag, c.task_key, c.body_size, c.attempt, c.max_attempts, c.delay_time, c.expected_time, c.create_time,"    \
    " b.message_body"
#define CLAIM_COLUMN_COUNT 11
/* A small body comes from a second look at the row, which a long one (or one of unknown size) is spared: NULL as a key reads
 * nothing. */
#define SMALL_BODY_JOIN " LEFT JOIN dq_task b ON b.id = IF(c.body_size <= %d, c.id, NULL)"

static void read_claimed(const struct db_rows *r, struct task *t)
{
    t->id = db_u64(r, 0);
    t->version = db_u64(r, 1);
    t->tag = sql_dup_tag(r, 2);
    t->key = sql_dup(r, 3, NULL);
    t->body_size = db_is_null(r, 4) ? SIZE_MAX : (size_t)db_u64(r, 4);
    t->attempt = db_u32(r, 5);
    t->max_attempts = db_u32(r, 6);
    t->delay_ms = db_i64(r, 7, 0);
    t->expected_at = sql_due(r, 8);
    t->create_at = db_time(r, 9);
    task_read_body(r, 10, t);
}

static int read_list(struct db *db, const struct buf *sql, void (*read)(const struct db_rows *r, struct task *t),
                     struct task_list *ret, struct err *err)
{
    struct db_rows *rows = NULL;

    int rc = db_query(db, sql, CLAIM_COLUMN_COUNT, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        read(rows, task_list_add(ret));
        rc = 0;
    }
    db_rows_free(rows);
    return rc;
}

/* Those of a share that have been due for so long (negative: will be so soon): the longest first, or last. */
static int find_candidates(struct db *db, const struct claim_ask *ask, unsigned share, int64_t overdue_ms, bool far_end,
                           size_t limit, struct task_list *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    const char *order = far_end ? " DESC" : "";

    buf_printf(&sql,
               "SELECT " CLAIM_COLUMNS " FROM dq_task c FORCE INDEX (due)" SMALL_BODY_JOIN " WHERE c.status = %d AND c.tag = ",
               SMALL_BODY, TASK_PENDING);
    db_put_text(&sql, ask->tag);
    buf_printf(&sql, " AND c.expected_time <= UTC_TIMESTAMP(3) - INTERVAL %" PRId64 " MICROSECOND AND NOT EXISTS",
               overdue_ms * 1000);
    buf_str(&sql, " (SELECT 1 FROM dq_tag g WHERE g.paused_until > UTC_TIMESTAMP(3) AND g.tag = ");
    db_put_text(&sql, ask->tag);
    buf_chr(&sql, ')');
    if (share == ask->share)
        put_floor(&sql, &ask->floor);
    if (ask->shares > 1) {
        buf_str(&sql, " AND ");
        sql_put_share(&sql, "c.", ask->shares);
        buf_printf(&sql, " = %u", share);
    }
    buf_printf(&sql, " ORDER BY c.expected_time%s, c.id%s LIMIT %zu", order, order, limit);
    int rc = read_list(db, &sql, read_claimed, ret, err);
    buf_done(&sql);
    return rc;
}

static int claim_rows(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask, const struct claim_ref *refs,
                      size_t n, uint64_t *ret_rows, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "UPDATE dq_task FORCE INDEX (PRIMARY) SET ");
    sql_put_transition(&sql, "", TASK_CLAIM, NULL);
    buf_printf(&sql, ", max_attempts = COALESCE(max_attempts, %" PRIu32 "), claim_token = ", ask->max_attempts);
    sql_put_token(&sql, owner->token);
    buf_str(&sql, ", host = ");
    db_put_text(&sql, owner->host);
    buf_printf(&sql, ", pid = %" PRIu32 ", lease_until = ", owner->pid);
    sql_put_from_now(&sql, ask->lease_ms);
    buf_str(&sql, ", execution_time = GREATEST(UTC_TIMESTAMP(3), expected_time), exit_code = NULL, `signal` = NULL, error_stack = "
                  "NULL, output = NULL WHERE ");
    sql_put_from(&sql, "", TASK_CLAIM);
    buf_str(&sql, " AND ");
    sql_put_refs(&sql, "", refs, n);
    int rc = db_exec(db, &sql, ret_rows, err);
    buf_done(&sql);
    return rc;
}

/* Some were taken by others: asks which carry our token. `held` gets them, by id, at the version after the claim. */
static int read_back(struct db *db, const struct claim_owner *owner, const struct claim_ref *refs, size_t n, struct claim_ref *held,
                     size_t *ret_held, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (size_t i = 0; i < n; i++)
        held[i] = (struct claim_ref){refs[i].id, refs[i].version + 1};
    buf_printf(&sql, "SELECT id, version FROM dq_task FORCE INDEX (PRIMARY) WHERE status = %d AND claim_token = ", TASK_RUNNING);
    sql_put_token(&sql, owner->token);
    buf_str(&sql, " AND ");
    sql_put_refs(&sql, "", held, n);
    int rc = sql_read_refs(db, &sql, held, n, ret_held, err);
    buf_done(&sql);
    return rc;
}

static bool has_id(const struct claim_ref *refs, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (refs[i].id == id)
            return true;
    return false;
}

/* Moves the candidates that are ours (held NULL: all) to `won`; the others stay behind to be freed. */
static void move_won(const struct claim_owner *owner, const struct claim_ask *ask, struct task_list *found,
                     const struct claim_ref *held, size_t held_count, struct task_list *won)
{
    for (size_t i = 0; i < found->count; i++) {
        struct task *t = &found->items[i];
        if (held && !has_id(held, held_count, t->id))
            continue;
        t->status = TASK_RUNNING;
        t->version++;
        t->attempt++;
        if (!t->max_attempts)
            t->max_attempts = ask->max_attempts;
        memcpy(t->claim_token, owner->token, TASK_TOKEN_SIZE);
        t->claimed = true;
        *task_list_add(won) = *t;
        task_init(t);
    }
}

/* The tag's row in dq_tag is locked (made, when there is none) until the transaction ends, then its running tasks are counted. */
static int lock_limit(struct db *db, const struct claim_ask *ask, size_t *limit, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    uint64_t running = 0;

    buf_str(&sql, "INSERT INTO dq_tag (tag) VALUES (");
    db_put_text(&sql, ask->tag);
    buf_str(&sql, ") ON DUPLICATE KEY UPDATE tag = tag");
    int rc = db_exec(db, &sql, NULL, err);
    if (rc < 0)
        goto out;
    buf_reset(&sql);
    buf_printf(&sql, "SELECT COUNT(*) FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ", TASK_RUNNING);
    db_put_text(&sql, ask->tag);
    rc = db_query(db, &sql, 1, false, &rows, err);
    if (rc == 0 && (rc = db_rows_next(rows, err)) == 1)
        running = db_u64(rows, 0);
    db_rows_free(rows);
    uint64_t room = running < ask->global_limit ? ask->global_limit - running : 0;
    if (*limit > room)
        *limit = (size_t)room;
out:
    buf_done(&sql);
    return rc < 0 ? rc : 0;
}

static int claim_some(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask, size_t limit,
                      struct task_list *won, size_t *ret_seen, size_t *ret_lost, struct err *err)
{
    struct task_list found = {NULL, 0, 0};
    struct claim_ref *refs = NULL, *held = NULL;
    size_t held_count = 0;
    uint64_t rows = 0;

    int rc = limit ? find_candidates(db, ask, ask->share, -ask->early_ms, false, limit, &found, err) : 0;
    if (rc == 0 && ask->shares > 1 && found.count < limit) /* as long as there is enough of our own, we are in nobody's way */
        rc = find_candidates(db, ask, ask->steal_share, ask->steal_after_ms, ask->steal_far_end, limit - found.count, &found, err);
    if (rc < 0 || !found.count)
        goto out;
    refs = mem_alloc(found.count * sizeof *refs);
    for (size_t i = 0; i < found.count; i++)
        refs[i] = (struct claim_ref){found.items[i].id, found.items[i].version};
    rc = claim_rows(db, owner, ask, refs, found.count, &rows, err);
    if (rc == 0 && rows && rows < found.count) {
        held = mem_alloc(found.count * sizeof *held);
        rc = read_back(db, owner, refs, found.count, held, &held_count, err);
    }
out:
    if (rc == 0) {
        *ret_seen = found.count;
        *ret_lost = found.count - (size_t)rows;
        if (rows)
            move_won(owner, ask, &found, held, held_count, won);
    }
    free(refs);
    free(held);
    task_list_done(&found);
    return rc;
}

int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask, struct task_list *won,
                      size_t *ret_seen, size_t *ret_lost, struct err *err)
{
    struct task_list ours = {NULL, 0, 0};
    size_t limit = ask->limit, seen = 0, lost = 0;

    if (!ask->global_limit)
        return claim_some(db, owner, ask, limit, won, ret_seen, ret_lost, err);
    int rc = db_begin(db, err);
    if (rc == 0)
        rc = lock_limit(db, ask, &limit, err);
    if (rc == 0)
        rc = claim_some(db, owner, ask, limit, &ours, &seen, &lost, err);
    if (rc == 0)
        rc = db_commit(db, err);
    if (rc < 0) {
        db_rollback(db);
        goto out;
    }
    for (size_t i = 0; i < ours.count; i++) {
        *task_list_add(won) = ours.items[i];
        task_init(&ours.items[i]);
    }
    *ret_seen = seen;
    *ret_lost = lost;
out:
    task_list_done(&ours);
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int claim_store_recover(struct db *db, const struct claim_owner *owner, const uint64_t *known, size_t count, struct task_list *ret,
                        struct err *err)
{
    struct buf sql = BUF_INIT;
    struct task_list found = {NULL, 0, 0};

    buf_printf(&sql,
               "SELECT " CLAIM_COLUMNS " FROM dq_task c FORCE INDEX (due)" SMALL_BODY_JOIN
               " WHERE c.status = %d AND c.claim_token = ",
               SMALL_BODY, TASK_RUNNING);
    sql_put_token(&sql, owner->token);
    int rc = db_latest_begin(db, err);
    if (rc == 0)
        rc = read_list(db, &sql, read_claimed, &found, err);
    db_latest_end(db);
    for (size_t i = 0; rc == 0 && i < found.count; i++) {
        struct task *t = &found.items[i];
        if (count && bsearch(&t->id, known, count, sizeof *known, compare_ids))
            continue;
        t->status = TASK_RUNNING;
        memcpy(t->claim_token, owner->token, TASK_TOKEN_SIZE);
        t->claimed = true;
        *task_list_add(ret) = *t;
        task_init(t);
    }
    task_list_done(&found);
    buf_done(&sql);
    return rc;
}

/* ---- bodies */

/* Sizes that nobody noted (tasks inserted by applications) are asked for, so that no statement brings more than the caller has room
 * for. */
static int load_sizes(struct db *db, struct task *const *tasks, size_t count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    bool any = false;
    int rc = 0;

    buf_str(&sql, "SELECT id, LENGTH(message_body) FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN (");
    for (size_t i = 0; i < count; i++) {
        if (tasks[i]->body || tasks[i]->body_size != SIZE_MAX)
            continue;
        if (any)
            buf_chr(&sql, ',');
        buf_u64(&sql, tasks[i]->id);
        any = true;
    }
    buf_chr(&sql, ')');
    if (any)
        rc = db_query(db, &sql, 2, false, &rows, err);
    while (any && rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        for (size_t i = 0; i < count; i++)
            if (tasks[i]->id == db_u64(rows, 0))
                tasks[i]->body_size = (size_t)db_u64(rows, 1);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

int claim_store_load_bodies(struct db *db, struct task *const *tasks, size_t count, size_t max_bytes, size_t *ret_loaded,
                            struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    size_t n = 0, bytes = 0, wanted = 0;

    int rc = load_sizes(db, tasks, count, err);
    buf_str(&sql, "SELECT id, message_body FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN (");
    for (; rc == 0 && n < count; n++) {
        if (tasks[n]->body)
            continue;
        if (wanted && (tasks[n]->body_size > max_bytes || bytes + tasks[n]->body_size > max_bytes))
            break;
        if (wanted++)
            buf_chr(&sql, ',');
        buf_u64(&sql, tasks[n]->id);
        bytes += tasks[n]->body_size;
    }
    buf_chr(&sql, ')');
    if (rc == 0 && wanted)
        rc = db_query(db, &sql, 2, true, &rows, err);
    while (wanted && rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        for (size_t i = 0; i < n; i++)
            if (tasks[i]->id == db_u64(rows, 0) && !tasks[i]->body)
                task_read_body(rows, 1, tasks[i]);
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    if (rc < 0)
        return rc;
    for (*ret_loaded = 0; *ret_loaded < n && tasks[*ret_loaded]->body;)
        ++*ret_loaded;
    return 0;
}
