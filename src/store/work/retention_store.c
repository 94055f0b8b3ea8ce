/*
 * retention_store.c - deleting tasks that finished long ago. Invariant: a task that is
 * retried meanwhile is not deleted.
 */
#include "store/work/retention_store.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/row/sql.h"
#include "store/work/delete_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* It begins with the next tag. */
static void leave_tag(struct retention_place *place)
{
    free(place->tag);
    place->tag = NULL;
    place->floor = (struct peek_floor){0};
    place->faults = false;
}

/* Where one row could not be deleted, more may follow. Then `until` comes soon, and what was read
 * of the rows behind them was in vain. */
#define FAULTY_STEP 50

void retention_store_forget(struct retention_place *place)
{
    for (size_t i = 0; i < place->bad_count; i++)
        free(place->bad[i].tag);
    free(place->bad);
    place->bad = NULL;
    place->bad_count = 0;
}

void retention_store_done(struct retention_place *place)
{
    leave_tag(place);
    retention_store_forget(place);
}

/* Up to where tasks of the tag are passed over; NULL: nowhere, unless it is added. */
static struct peek_floor *last_bad(struct retention_place *place, const char *tag, bool add)
{
    for (size_t i = 0; i < place->bad_count; i++)
        if (strcmp(place->bad[i].tag, tag) == 0)
            return &place->bad[i].last;
    if (!add)
        return NULL;
    place->bad = mem_resize(place->bad, place->bad_count + 1, sizeof *place->bad);
    place->bad[place->bad_count] = (struct retention_bad){.tag = mem_strdup(tag)};
    return &place->bad[place->bad_count++].last;
}

struct old_tags {
    char **items;
    size_t count;
};

static void add_tag(const struct db_rows *r, void *arg)
{
    struct old_tags *tags = arg;

    tags->items = mem_resize(tags->items, tags->count + 1, sizeof *tags->items);
    tags->items[tags->count++] = sql_dup_tag(r, COLUMNS_ONLY);
}

/* Finds the tags that have a finished task due before the limit, with a loose index scan as in
 * peek_store_all. */
static int find_tags(struct db *db, enum task_status status, int64_t age_ms, struct old_tags *ret,
                     struct err *err)
{
    return sql_all(
        db, COLUMNS_ONE, add_tag, ret, err,
        "SELECT tag FROM (SELECT tag, MIN(expected_time) AS first FROM dq_task FORCE INDEX (due)"
        " WHERE status > ? AND status < ? GROUP BY status, tag) w WHERE first < ?",
        SQL_INT((int)status - 1), SQL_INT((int)status + 1), SQL_FROM_NOW(-age_ms));
}

#define DUE_COLUMNS(X) CLAIM_REF_COLUMNS(X) X(DUE_TIME, "expected_time") X(DUE_SIZE, "body_size")
enum { DUE_COLUMNS(COLUMNS_NAME) DUE_OLD, DUE_COUNT };

/* A step of tasks to be deleted, and the last of those that were looked at. */
struct step {
    struct claim_ref refs[ROWS_STEP];
    int64_t due_at[ROWS_STEP];
    size_t count, bytes, seen;
    bool cut; /* see struct retention_place */
    struct peek_floor last;
};

static void add_old(const struct db_rows *r, void *arg)
{
    struct step *s = arg;
    const bool old = db_u64(r, DUE_OLD);

    if (s->cut || s->seen == ROWS_STEP)
        return;
    s->cut = old && !rows_take(&s->bytes, db_is_null(r, DUE_SIZE) ? SIZE_MAX : db_u64(r, DUE_SIZE));
    if (s->cut)
        return;
    /* dates that cannot be read are those of dq's before the first one */
    s->last = (struct peek_floor){MAX(sql_due(r, DUE_TIME), 1), db_u64(r, CLAIM_REF_ID)};
    if (old) {
        s->due_at[s->count] = s->last.at;
        s->refs[s->count++] = (struct claim_ref){s->last.id, db_u64(r, CLAIM_REF_VERSION)};
    }
    s->seen++;
}

/* The index finds the tasks that were due early, which mostly finished early; finish_time decides.
 * It is in no index: the limit bounds the rows of which it is read. */
static int old_rows(struct db *db, enum task_status status, const char *tag, int64_t age_ms,
                    const struct peek_floor *floor, size_t limit, struct step *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    sql_put(&sql,
            "SELECT ?, COALESCE(finish_time, expected_time) < ?"
            " FROM dq_task c FORCE INDEX (due) WHERE status = ? AND tag = ?",
            SQL_PART(COLUMNS_SELECT(DUE_COLUMNS)), SQL_FROM_NOW(-age_ms), SQL_INT(status),
            SQL_TAG(tag));
    peek_store_put_floor(&sql, floor);
    sql_put(&sql, " AND expected_time < ? ORDER BY " SQL_DUE_ORDER("", "") " LIMIT ?",
            SQL_FROM_NOW(-age_ms), SQL_ID(limit));
    *ret = (struct step){.count = 0};
    return db_all(db, &sql, DUE_COUNT, add_old, ret, err);
}

/* Where the search goes on; in a tag that has no old tasks any more, with the next one. The server
 * returns them in their order. */
static size_t first_tag(const struct old_tags *tags, struct retention_place *place)
{
    size_t i = 0;

    while (place->tag && i < tags->count && strcmp(tags->items[i], place->tag) < 0)
        i++;
    if (place->tag && (i == tags->count || strcmp(tags->items[i], place->tag) != 0))
        leave_tag(place);
    return i;
}

static void go_on_with(struct retention_place *place, const char *tag)
{
    if (!place->tag)
        place->tag = mem_strdup(tag);
}

/* Then each step would wait as long for dq_attempt, one after the other. */
static int attempts_locked(struct db *db, struct err *err)
{
    return sql_exec(db, NULL, err, ROWS_PROBE_ATTEMPT);
}

/* Looks at a step of the tag, and deletes what is old. *ret_ended: it was the last one. */
static int expire_step(struct db *db, enum task_status status, const char *tag, int64_t age_ms,
                       size_t limit, struct retention_place *place, size_t *seen, size_t *deleted,
                       bool *ret_ended, struct rows_faults *faults, struct err *err)
{
    struct step s;
    size_t before = faults ? faults->count : 0;
    /* its locked rows may go on */
    struct delete_store_how how = {NULL, 1, place->faults, place->until};
    struct delete_store_done done = {0, false, 0};
    const struct peek_floor *bad = place->tag ? NULL : last_bad(place, tag, false);

    if (bad)
        place->floor = *bad;
    int rc = old_rows(db, status, tag, age_ms, &place->floor, limit, &s, err);
    if (rc == 0 && s.count)
        rc = delete_store_refs(db, s.refs, s.count, &how, &done, faults, err);
    const bool faulty = faults && faults->count > before;
    const bool late = rc == 0 && done.tried < s.count;
    if (late)
        s.last = (struct peek_floor){s.due_at[done.tried - 1], s.refs[done.tried - 1].id};
    if (rc == 0 && faulty)
        *last_bad(place, tag, true) = s.last;
    if (rc == 0 && (faulty || s.seen > s.count)) {
        go_on_with(place, tag);
        place->floor = s.last;
        place->faults |= faulty;
    }
    if (rc == 0 && faulty)
        rc = attempts_locked(db, err);
    *seen += s.seen;
    *deleted += rc == 0 ? done.deleted : 0;
    *ret_ended = s.seen < limit && !s.cut && !late;
    place->cut = s.cut;
    place->late = place->until && (late || (faulty && when_steady() > place->until));
    return rc;
}

int retention_store_expire(struct db *db, enum task_status status, int64_t age_ms, size_t limit,
                           struct retention_place *place, size_t *ret_deleted,
                           struct rows_faults *faults, struct err *err)
{
    struct retention_place here = {.tag = NULL};
    struct retention_place *at = place ? place : &here;
    struct old_tags tags = {0};
    size_t seen = 0, deleted = 0;
    bool ended;

    int rc = find_tags(db, status, age_ms, &tags, err);
    if (rc == 0 && tags.count)
        rc = attempts_locked(db, err);
    size_t i = rc == 0 ? first_tag(&tags, at) : 0;
    at->cut = at->late = false;
    while (rc == 0 && !at->cut && !at->late && i < tags.count && seen < limit) {
        rc = expire_step(db, status, tags.items[i], age_ms,
                         MIN(limit - seen, at->faults ? FAULTY_STEP : ROWS_STEP), at, &seen,
                         &deleted, &ended, faults, err);
        if (rc == 0 && ended) {
            leave_tag(at);
            i++;
        }
    }
    if (rc == 0 && i == tags.count)
        leave_tag(at);
    else if (rc == 0 && i > 0)
        go_on_with(at, tags.items[i]);
    for (size_t t = 0; t < tags.count; t++)
        free(tags.items[t]);
    free(tags.items);
    retention_store_done(&here);
    if (rc == 0)
        *ret_deleted = deleted;
    return rc;
}
