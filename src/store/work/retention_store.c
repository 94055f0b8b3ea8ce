/*
 * retention_store.c - deleting tasks that finished long ago. Invariant: a task that is
 * retried meanwhile is not deleted.
 */
#include "store/work/retention_store.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/row/sql.h"
#include "store/work/delete_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

void retention_store_done(struct retention_place *place)
{
    free(place->tag);
    *place = (struct retention_place){NULL, {0, 0}, false};
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

#define OLD_COLUMNS(X) CLAIM_REF_COLUMNS(X) X(OLD_DUE, "expected_time") X(OLD_SIZE, "body_size")
enum { OLD_COLUMNS(COLUMNS_NAME) OLD_COUNT };

/* A step of tasks to be deleted, and when the last of them was due. */
struct step {
    struct claim_ref refs[ROWS_STEP];
    size_t count, bytes;
    bool cut; /* see struct retention_place */
    int64_t last_at;
};

static int add_old(const struct db_rows *r, void *arg, struct err *err)
{
    struct step *s = arg;

    (void)err;
    s->cut = !rows_take(&s->bytes, db_is_null(r, OLD_SIZE) ? SIZE_MAX : db_u64(r, OLD_SIZE));
    if (s->cut)
        return 1;
    s->refs[s->count++] = (struct claim_ref){db_u64(r, CLAIM_REF_ID), db_u64(r, CLAIM_REF_VERSION)};
    s->last_at = sql_due(r, OLD_DUE);
    return s->count == ROWS_STEP;
}

/* The index finds the tasks that were due early, which mostly finished early; finish_time decides.
 */
static int old_rows(struct db *db, enum task_status status, const char *tag, int64_t age_ms,
                    const struct peek_floor *floor, size_t limit, struct step *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    sql_put(&sql, "SELECT ? FROM dq_task c FORCE INDEX (due) WHERE status = ? AND tag = ?",
            SQL_PART(COLUMNS_SELECT(OLD_COLUMNS)), SQL_INT(status), SQL_TAG(tag));
    peek_store_put_floor(&sql, floor);
    sql_put(&sql,
            " AND expected_time < ? AND COALESCE(finish_time, expected_time) < ?"
            " ORDER BY " SQL_DUE_ORDER("", "") " LIMIT ?",
            SQL_FROM_NOW(-age_ms), SQL_FROM_NOW(-age_ms), SQL_ID(limit));
    ret->count = ret->bytes = 0;
    ret->cut = false;
    return db_each(db, &sql, OLD_COUNT, add_old, ret, err);
}

/* Where the search goes on; a place in a tag that has no old tasks any more is dropped. */
static size_t first_tag(const struct old_tags *tags, struct retention_place *place)
{
    for (size_t i = 0; place->tag && i < tags->count; i++)
        if (!strcmp(tags->items[i], place->tag))
            return i;
    retention_store_done(place);
    return 0;
}

/* Dates that cannot be read are those of dq's before the first one. */
static void go_behind(struct retention_place *place, const char *tag, const struct step *s)
{
    char *copy = mem_strdup(tag);

    retention_store_done(place);
    place->tag = copy;
    place->floor = (struct peek_floor){MAX(s->last_at, 1), s->refs[s->count - 1].id};
}

/* Deletes a step of the tag. *ret_ended: the tag has no other tasks. */
static int expire_step(struct db *db, enum task_status status, const char *tag, int64_t age_ms,
                       size_t limit, struct retention_place *place, size_t *ret_deleted,
                       bool *ret_ended, struct rows_faults *faults, struct err *err)
{
    struct step s;
    size_t before = faults ? faults->count : 0;
    struct delete_store_how how = {NULL, 1, place->tag}; /* its locked rows may go on */
    struct delete_store_done done = {0, false};

    int rc = old_rows(db, status, tag, age_ms, &place->floor, limit, &s, err);
    if (rc == 0 && s.count)
        rc = delete_store_refs(db, s.refs, s.count, &how, &done, faults, err);
    *ret_deleted = rc == 0 ? done.deleted : 0;
    *ret_ended = s.count < limit && !s.cut;
    if (rc == 0 && s.count && faults && faults->count > before)
        go_behind(place, tag, &s);
    place->cut = s.cut;
    return rc;
}

int retention_store_expire(struct db *db, enum task_status status, int64_t age_ms, size_t limit,
                           struct retention_place *place, size_t *ret_deleted,
                           struct rows_faults *faults, struct err *err)
{
    struct retention_place here = {NULL, {0, 0}, false};
    struct retention_place *at = place ? place : &here;
    struct old_tags tags = {0};
    size_t total = 0, deleted = 0;
    bool ended, stuck = false;

    int rc = find_tags(db, status, age_ms, &tags, err);
    size_t i = rc == 0 ? first_tag(&tags, at) : 0;
    at->cut = false;
    while (rc == 0 && !stuck && !at->cut && i < tags.count && total < limit) {
        rc = expire_step(db, status, tags.items[i], age_ms, MIN(limit - total, ROWS_STEP), at,
                         &deleted, &ended, faults, err);
        total += deleted;
        stuck = !deleted && !ended;
        if (rc == 0 && ended) {
            retention_store_done(at);
            i++;
        }
    }
    if (rc == 0 && i == tags.count)
        retention_store_done(at);
    for (size_t t = 0; t < tags.count; t++)
        free(tags.items[t]);
    free(tags.items);
    retention_store_done(&here);
    if (rc == 0)
        *ret_deleted = total;
    return rc;
}
