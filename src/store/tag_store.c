/*
 * tag_store.c - tags as operators see them: counts and switches.
 *
 * Invariant: without `exact`, the work is bounded by the number of tags, however many tasks there
 * are.
 */
#include "store/tag_store.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LATE_AT_ONCE 100 /* tags in one statement */
/* Due tasks of a tag that are read to find the one that is latest, if the first ones were given a
 * time in the past. */
#define LATE_READ 2000
/* A count costs the server as much as reading this many entries of the index in a row. */
#define ENTRIES_A_COUNT 300
#define ENTRIES_MOST 3000000
#define MANY_PARTS 200 /* for fewer, tag_store_is_small does not ask */
/* paused_until of a tag that is paused until it is resumed: 9999-12-31 23:59:59.999 */
#define PAUSED_FOR_EVER_AT INT64_C(253402300799999)

struct infos {
    struct tag_info *items;
    size_t count, cap;
    size_t *slots; /* a hash table of item indexes + 1; 0: free */
    size_t slot_count;
};

static size_t *find_slot(const struct infos *t, const char *tag)
{
    size_t at = (size_t)text_hash(TEXT_HASH_INIT, tag, strlen(tag)) & (t->slot_count - 1);

    while (t->slots[at] && strcmp(t->items[t->slots[at] - 1].tag, tag) != 0)
        at = (at + 1) & (t->slot_count - 1);
    return &t->slots[at];
}

/* Keeps the hash table at most half full. */
static void grow_slots(struct infos *t)
{
    free(t->slots);
    t->slot_count = t->slot_count ? 2 * t->slot_count : 64;
    t->slots = mem_zero(t->slot_count, sizeof *t->slots);
    for (size_t i = 0; t->items && i < t->count; i++)
        *find_slot(t, t->items[i].tag) = i + 1;
}

/* NULL if it is not in the list. */
static struct tag_info *infos_find(const struct infos *t, const char *tag)
{
    const size_t *slot = t->slots ? find_slot(t, tag) : NULL;

    return slot && *slot ? &t->items[*slot - 1] : NULL;
}

/* The entry of a tag, added if it is new. */
static struct tag_info *infos_get(struct infos *t, const char *tag)
{
    struct tag_info *found = infos_find(t, tag);

    if (found)
        return found;
    if (2 * t->count >= t->slot_count)
        grow_slots(t);
    if (!t->items || t->count == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 32;
        t->items = mem_resize(t->items, t->cap, sizeof *t->items);
    }
    *find_slot(t, tag) = t->count + 1;
    t->items[t->count] = (struct tag_info){.tag = mem_strdup(tag),
                                           .late_from_at = TASK_TIME_NONE,
                                           .next_at = TASK_TIME_NONE,
                                           .paused_until_at = TASK_TIME_NONE};
    return &t->items[t->count++];
}

static int compare_infos(const void *a, const void *b)
{
    const struct tag_info *x = a, *y = b;
    return strcmp(x->tag, y->tag);
}

struct reading {
    struct db *db;
    struct infos *to;
    const char *glob; /* NULL: all tags */
    int64_t now_at;
    const struct tag_count_how *how;
};

static bool is_wanted(const struct reading *w, const char *tag)
{
    return !w->glob || task_tag_glob(w->glob, tag);
}

/* clang-format off */
#define SWITCH_COLUMNS(X)             \
    X(SWITCH_NOW, "UTC_TIMESTAMP(3)") \
    X(SWITCH_TAG, "g.tag")            \
    X(SWITCH_UNTIL, "g.paused_until") \
    X(SWITCH_BY, "g.paused_by")       \
    X(SWITCH_REASON, "g.pause_reason")
/* clang-format on */
enum { SWITCH_COLUMNS(COLUMNS_NAME) SWITCH_COUNT };

static int take_switch(const struct db_rows *r, void *arg, struct err *err)
{
    struct reading *w = arg;
    char *tag = db_is_null(r, SWITCH_TAG) ? NULL : sql_dup_tag(r, SWITCH_TAG);

    (void)err;
    w->now_at = db_time(r, SWITCH_NOW);
    if (tag && is_wanted(w, tag)) {
        struct tag_info *i = infos_get(w->to, tag);
        int64_t until = db_time(r, SWITCH_UNTIL);
        i->paused_until_at = until >= PAUSED_FOR_EVER_AT ? INT64_MAX : until;
        free(i->paused_by);
        free(i->pause_reason);
        i->paused_by = sql_dup(r, SWITCH_BY, NULL);
        i->pause_reason = sql_dup(r, SWITCH_REASON, NULL);
    }
    free(tag);
    return 0;
}

/* Returns at least one row, which has the clock, even if no tag is paused. */
static int read_switches(struct reading *w, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(
        &sql,
        "SELECT %s FROM (SELECT 1) one LEFT JOIN dq_tag g ON g.paused_until > UTC_TIMESTAMP(3)",
        COLUMNS_SELECT(SWITCH_COLUMNS));
    int rc = db_each(w->db, &sql, SWITCH_COUNT, take_switch, w, err);
    buf_done(&sql);
    return rc;
}

/* clang-format off */
#define PAIR_COLUMNS(X)      \
    X(PAIR_STATUS, "status") \
    X(PAIR_TAG, "tag")       \
    X(PAIR_FIRST, "MIN(expected_time)")
/* clang-format on */
enum { PAIR_COLUMNS(COLUMNS_NAME) PAIR_COUNT };

static int take_pair(const struct db_rows *r, void *arg, struct err *err)
{
    const struct reading *w = arg;
    int status = sql_status(r, PAIR_STATUS);
    char *tag = sql_dup_tag(r, PAIR_TAG);

    (void)err;
    if (status != TASK_STATUS_UNKNOWN && is_wanted(w, tag)) {
        struct tag_info *i = infos_get(w->to, tag);
        i->count[status] = 1;
        if (status == TASK_PENDING) {
            i->next_at = sql_due(r, PAIR_FIRST);
            if (i->next_at <= w->now_at)
                i->late_from_at = i->next_at;
        }
    }
    free(tag);
    return 0;
}

/* Finds the pairs (status, tag) by a loose index scan, and the earliest time of each tag's pending
 * tasks. Sets count to 1 for each pair. */
static int read_pairs(struct reading *w, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (due) GROUP BY status, tag",
               COLUMNS_SELECT(PAIR_COLUMNS));
    int rc = db_each(w->db, &sql, PAIR_COUNT, take_pair, w, err);
    buf_done(&sql);
    return rc;
}

static size_t count_parts(const struct infos *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->count; i++) {
        for (int s = 0; s < TASK_STATUS_COUNT; s++)
            n += t->items[i].count[s] > 0;
        n += t->items[i].late_from_at != TASK_TIME_NONE;
    }
    return n;
}

int tag_store_is_small(struct db *db, size_t parts, bool *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    size_t most = parts < ENTRIES_MOST / ENTRIES_A_COUNT ? parts * ENTRIES_A_COUNT : ENTRIES_MOST;

    if (parts < MANY_PARTS) {
        *ret = false;
        return 0;
    }
    buf_printf(&sql, "SELECT 1 FROM dq_task FORCE INDEX (due) LIMIT %zu, 1", most);
    int rc = db_first(db, &sql, COLUMNS_ONE, NULL, NULL, err);
    buf_done(&sql);
    if (rc < 0)
        return rc;
    *ret = rc == 0;
    return 0;
}

/* clang-format off */
#define ALL_COLUMNS(X)       \
    X(ALL_STATUS, "status")  \
    X(ALL_TAG, "tag")        \
    X(ALL_TASKS, "COUNT(*)") \
    X(ALL_DUE, "SUM(expected_time <= UTC_TIMESTAMP(3))")
/* clang-format on */
enum { ALL_COLUMNS(COLUMNS_NAME) ALL_COUNT };

static int take_all_counts(const struct db_rows *r, void *arg, struct err *err)
{
    const struct reading *w = arg;
    int status = sql_status(r, ALL_STATUS);
    char *tag = sql_dup_tag(r, ALL_TAG);
    struct tag_info *i = infos_find(w->to, tag);

    (void)err;
    if (i && status != TASK_STATUS_UNKNOWN)
        i->count[status] = db_u64(r, ALL_TASKS);
    if (i && status == TASK_PENDING)
        i->due = db_u64(r, ALL_DUE);
    free(tag);
    return 0;
}

/* Reads the whole index for all counts in one statement. Tags added since are left out. */
static int read_all_counts(struct reading *w, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (size_t i = 0; i < w->to->count; i++)
        memset(w->to->items[i].count, 0, sizeof w->to->items[i].count);
    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (due) GROUP BY status, tag",
               COLUMNS_SELECT(ALL_COLUMNS));
    int rc = db_each(w->db, &sql, ALL_COUNT, take_all_counts, w, err);
    buf_done(&sql);
    return rc;
}

/* The states of each tag that has tasks in them, and its due tasks, each a part. */
static size_t make_parts(const struct reading *w, struct tag_count *parts)
{
    size_t n = 0;

    for (size_t i = 0; i < w->to->count; i++) {
        const struct tag_info *t = &w->to->items[i];

        for (unsigned s = 0; s < TASK_STATUS_COUNT; s++)
            if (t->count[s])
                parts[n++] = (struct tag_count){.tag = t->tag,
                                                .status = s,
                                                .from_at = TASK_TIME_NONE,
                                                .until_at = TASK_TIME_NONE};
        if (t->late_from_at != TASK_TIME_NONE)
            parts[n++] = (struct tag_count){.tag = t->tag,
                                            .status = TASK_PENDING,
                                            .from_at = TASK_TIME_NONE,
                                            .until_at = w->now_at + 1};
    }
    return n;
}

/* In the order of make_parts. */
static void take_parts(struct infos *t, const struct tag_count *parts)
{
    for (size_t i = 0; i < t->count; i++) {
        struct tag_info *info = &t->items[i];

        for (unsigned s = 0; s < TASK_STATUS_COUNT; s++) {
            if (!info->count[s])
                continue;
            info->count[s] = parts->tasks;
            info->sampled[s] = parts++->sampled;
        }
        if (info->late_from_at != TASK_TIME_NONE) {
            info->due = parts->tasks;
            info->due_sampled = parts++->sampled;
        }
    }
}

static int read_counts(struct reading *w, struct err *err)
{
    struct tag_count *parts = mem_alloc((count_parts(w->to) + 1) * sizeof *parts);
    struct tag_count_how how = *w->how;

    how.whole = !w->glob;
    int rc = tag_count_all(w->db, &how, parts, make_parts(w, parts), err);

    if (rc == 0)
        take_parts(w->to, parts);
    free(parts);
    return rc;
}

/* ---- lateness */

/* With a placeholder of printf. */
/* clang-format off */
#define LATE_COLUMNS(X)                       \
    X(LATE_TAG, "%zu")                        \
    X(LATE_FROM, "MIN(late_from)")            \
    X(LATE_LAST, "MAX(expected_time)")        \
    X(LATE_TASKS, "COUNT(*)")
/* clang-format on */
enum { LATE_COLUMNS(COLUMNS_NAME) LATE_COUNT };

struct lateness {
    struct reading *w;
    uint64_t limit;
};

/* Tasks that come later are late from their expected time or later: if the last one read was due no
 * earlier than the minimum, it is that of all. */
static int take_late(const struct db_rows *r, void *arg, struct err *err)
{
    const struct lateness *x = arg;
    struct infos *t = x->w->to;
    uint64_t at = db_u64(r, LATE_TAG);
    int64_t from_at = sql_due(r, LATE_FROM);

    if (at >= t->count)
        return sql_odd_row(x->w->db, err);
    if (db_is_null(r, LATE_FROM))
        return 0;
    t->items[at].late_from_at = from_at;
    t->items[at].late_sampled =
        db_u64(r, LATE_TASKS) >= x->limit && sql_due(r, LATE_LAST) < from_at;
    return 0;
}

/* Appends the SELECT of the first due tasks of a tag. */
static void put_late(struct buf *sql, const struct infos *t, size_t i, uint64_t limit)
{
    buf_str(sql, "SELECT ");
    buf_printf(sql, COLUMNS_SELECT(LATE_COLUMNS), i);
    buf_printf(sql,
               " FROM (SELECT expected_time, " SQL_LATE_FROM
               " AS late_from FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ",
               TASK_PENDING);
    sql_put_tag(sql, t->items[i].tag);
    buf_printf(sql,
               " AND expected_time <= UTC_TIMESTAMP(3) ORDER BY expected_time, id LIMIT %" PRIu64
               ") x",
               limit);
}

static int run_late(const struct lateness *x, struct buf *sql, struct err *err)
{
    int rc = db_each(x->w->db, sql, LATE_COUNT, take_late, (void *)x, err);

    buf_reset(sql);
    return rc;
}

/* Reads the first `limit` due tasks of each tag; again: of those for which that was not enough. */
static int read_late_some(struct reading *w, uint64_t limit, bool again, struct err *err)
{
    struct lateness x = {w, limit};
    struct buf sql = BUF_INIT;
    size_t parts = 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < w->to->count; i++) {
        const struct tag_info *t = &w->to->items[i];

        if (again ? !t->late_sampled : t->late_from_at == TASK_TIME_NONE)
            continue;
        buf_str(&sql, parts ? " UNION ALL " : "");
        put_late(&sql, w->to, i, limit);
        if (++parts == LATE_AT_ONCE) {
            rc = run_late(&x, &sql, err);
            parts = 0;
        }
    }
    if (rc == 0 && parts)
        rc = run_late(&x, &sql, err);
    buf_done(&sql);
    return rc;
}

static int read_late(struct reading *w, struct err *err)
{
    int rc = read_late_some(w, 1, false, err);

    return rc == 0 ? read_late_some(w, LATE_READ, true, err) : rc;
}

int tag_store_list(struct db *db, const char *tag_glob, const struct tag_count_how *how,
                   struct tag_info **ret, size_t *ret_count, int64_t *ret_now_at, struct err *err)
{
    struct infos t = {0};
    struct reading w = {db, &t, tag_glob, 0, how};
    bool small = false;

    int rc = read_switches(&w, err);
    if (rc == 0)
        rc = read_pairs(&w, err);
    if (rc == 0)
        rc = tag_store_is_small(db, count_parts(&t), &small, err);
    if (rc == 0)
        rc = small ? read_all_counts(&w, err) : read_counts(&w, err);
    if (rc == 0)
        rc = read_late(&w, err);
    free(t.slots);
    if (rc < 0) {
        tag_store_free(t.items, t.count);
        return rc;
    }
    if (t.count)
        qsort(t.items, t.count, sizeof *t.items, compare_infos);
    *ret = t.items;
    *ret_count = t.count;
    *ret_now_at = w.now_at;
    return 0;
}

void tag_store_free(struct tag_info *t, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(t[i].tag);
        free(t[i].paused_by);
        free(t[i].pause_reason);
    }
    free(t);
}

/* ---- pausing */

/* The statement and its event, in one transaction. */
static int change_tag(struct db *db, const struct buf *sql, struct event_act *act,
                      uint64_t *ret_rows, struct err *err)
{
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = db_exec(db, sql, ret_rows, err);
    if (rc == 0 && *ret_rows)
        rc = event_store_add(db, act, 0, err);
    if (rc == 0)
        rc = db_commit(db, err);
    if (rc < 0)
        db_rollback(db);
    return rc;
}

int tag_store_pause(struct db *db, struct event_act *act, int64_t until_at, int64_t for_ms,
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
        db_put_time(&sql, until_at > PAUSED_FOR_EVER_AT ? PAUSED_FOR_EVER_AT : until_at);
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

int tag_store_resume(struct db *db, struct event_act *act, struct err *err)
{
    struct buf sql = BUF_INIT;
    uint64_t rows = 0;

    buf_str(
        &sql,
        "UPDATE dq_tag SET paused_until = NULL, paused_by = NULL, pause_reason = NULL, update_time = UTC_TIMESTAMP(3) "
        "WHERE tag = ");
    db_put_text(&sql, act->tag);
    buf_str(&sql, " AND paused_until > UTC_TIMESTAMP(3)");
    int rc = change_tag(db, &sql, act, &rows, err);
    buf_done(&sql);
    return rc < 0 ? rc : rows > 0;
}
