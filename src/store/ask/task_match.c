/*
 * task_match.c - see task_match.h.
 */
#include "store/ask/task_match.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/ask/task_floor.h"
#include "store/db/columns.h"
#include "store/fleet/event_store.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <sys/param.h>

#define IDS 500 /* in one statement */
/* An attempt is stored in the transaction that ends its task, maybe long before the task is. */
#define ATTEMPT_SLACK_MS (10 * WHEN_MINUTE)

struct reading {
    struct db *db;
    const struct task_filter *f;
    unsigned statuses;
    struct task_match *ret;
};

void task_match_add(struct task_match *m, struct task_key key)
{
    MEM_ROOM(m->keys, m->count, m->cap);
    m->keys[m->count++] = key;
}

#define MATCH_COLUMNS(X) X(MATCH_ID, "id") X(MATCH_EXPECTED, "expected_time") X(MATCH_TAG, "tag")
enum { MATCH_COLUMNS(COLUMNS_NAME) MATCH_COUNT };

static void take_match(const struct db_rows *r, void *arg)
{
    const struct reading *w = arg;
    MEM_LOCAL char *tag = w->f->tag_glob ? sql_dup_tag(r, MATCH_TAG) : NULL;

    if (!tag || task_tag_glob(w->f->tag_glob, tag))
        task_match_add(w->ret, (struct task_key){db_stamp(r, MATCH_EXPECTED), db_u64(r, MATCH_ID)});
}

int task_match_read(struct db *db, const struct task_filter *f, const struct buf *from,
                    struct task_match *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM ", COLUMNS_SELECT(MATCH_COLUMNS));
    buf_add(&sql, from->data, from->len);
    return db_all_streamed(db, &sql, MATCH_COUNT, take_match, &(struct reading){.f = f, .ret = ret},
                           err);
}

/* Reads those of `from` that match the whole filter. */
static int read_from(const struct reading *w, struct buf *from, struct err *err)
{
    task_filter_put(from, w->f, w->statuses);
    return task_match_read(w->db, w->f, from, w->ret, err);
}

static int read_ids(const struct reading *w, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < w->f->id_count; i += IDS) {
        BUF_LOCAL struct buf from = BUF_INIT;
        sql_put(&from, "dq_task FORCE INDEX (PRIMARY) WHERE id IN ?",
                SQL_IDS(w->f->ids + i, MIN(w->f->id_count - i, IDS)));
        rc = read_from(w, &from, err);
    }
    return rc;
}

static int read_key(const struct reading *w, struct err *err)
{
    BUF_LOCAL struct buf from = BUF_INIT;

    buf_str(&from, "dq_task FORCE INDEX (live_key) WHERE 1"); /* task_filter_put adds the key */
    return read_from(w, &from, err);
}

/* Raises *floor so far that about search->most tasks are left. */
static int raise_floor(const struct reading *w, uint64_t *floor, struct err *err)
{
    struct task_filter_search *search = w->f->search;
    int rc = sql_first(
        w->db, COLUMNS_ONE, sql_take_u64, floor, err,
        "SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= ? ORDER BY id DESC LIMIT ?, 1",
        SQL_ID(*floor), SQL_ID(search->most));

    if (rc < 0)
        return rc;
    search->partial = rc == 1;
    *floor += search->partial;
    return 0;
}

/* Tasks with ids from about the first one that was created since then. */
static int read_created(const struct reading *w, struct err *err)
{
    const struct task_filter *f = w->f;
    BUF_LOCAL struct buf from = BUF_INIT;
    const int64_t since = f->since[TASK_FILTER_CREATED].at;
    uint64_t floor = 0;
    bool ordered = true;

    int rc = since == TASK_TIME_NONE ? 0 : task_floor_id(w->db, since, &floor, &ordered, err);
    if (rc == 0 && f->unordered)
        *f->unordered = !ordered && !f->search;
    if (rc == 0 && f->search)
        rc = raise_floor(w, &floor, err);
    if (rc < 0)
        return rc;
    buf_printf(&from, "dq_task FORCE INDEX (PRIMARY) WHERE id >= %" PRIu64, floor);
    return read_from(w, &from, err);
}

/* Failed tasks have an attempt that ended with them, and attempts an index by that time. Only
 * imported ones may have none: if there are any, 0, else 1. */
static int read_finished(const struct reading *w, struct err *err)
{
    const int64_t since = w->f->since[TASK_FILTER_FINISHED].at;
    BUF_LOCAL struct buf from = BUF_INIT;

    int rc = event_store_has(w->db, "import", since, err);
    if (rc)
        return rc == 1 || rc == ERR_DENIED ? 0 : rc;
    sql_put(
        &from,
        "(SELECT DISTINCT task_id FROM dq_attempt FORCE INDEX (finished) WHERE finish_time >= ?)"
        " a STRAIGHT_JOIN dq_task FORCE INDEX (PRIMARY) ON id = task_id WHERE 1",
        SQL_TIME(since - ATTEMPT_SLACK_MS));
    rc = read_from(w, &from, err);
    return rc < 0 ? rc : 1;
}

int task_match_load(struct db *db, const struct task_filter *f, unsigned statuses,
                    struct task_match *ret, struct err *err)
{
    const struct reading w = {db, f, statuses, ret};
    int rc;

    if (f->ids)
        rc = read_ids(&w, err);
    else if (f->key)
        rc = read_key(&w, err);
    else if (f->since[TASK_FILTER_CREATED].set)
        rc = read_created(&w, err);
    else if (f->since[TASK_FILTER_FINISHED].set && statuses == TASK_BIT(TASK_FAILED))
        return read_finished(&w, err);
    else
        return 0;
    return rc < 0 ? rc : 1;
}
