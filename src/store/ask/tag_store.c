/*
 * tag_store.c - tags as operators see them: how many tasks, how late, whether they are paused.
 *
 * Invariant: without `exact`, the work is bounded by a time and the number of tags, however many
 * tasks there are.
 */
#include "store/ask/tag_store.h"
#include "base/index.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/ask/tag_late.h"
#include "store/db/columns.h"
#include "store/fleet/limit_store.h"
#include "store/row/sql.h"

#include <stdlib.h>
#include <string.h>

/* A count costs the server as much as reading this many entries of the index in a row. */
#define ENTRIES_A_COUNT 300
#define ENTRIES_MOST 3000000
#define LATE_MS 200    /* that finding out how late tags are may take, unless counting has less */
#define MANY_PARTS 200 /* for fewer, tag_store_is_small does not ask */

struct infos {
    struct tag_info *items;
    size_t count, cap;
    struct index index; /* by tag */
};

/* NULL if it is not in the list. */
static struct tag_info *infos_find(const struct infos *t, const char *tag)
{
    size_t at = index_find(&t->index, tag, strlen(tag));

    return at == INDEX_NONE ? NULL : &t->items[at];
}

/* The entry of a tag, added if it is new. */
static struct tag_info *infos_get(struct infos *t, const char *tag)
{
    struct tag_info *found = infos_find(t, tag);

    if (found)
        return found;
    MEM_ROOM(t->items, t->count, t->cap);
    t->items[t->count] = (struct tag_info){.tag = mem_strdup(tag), TAG_INFO_NONE};
    index_add(&t->index, t->items[t->count].tag, strlen(tag));
    return &t->items[t->count++];
}

struct reading {
    struct db *db;
    struct infos *to;
    const char *glob; /* NULL: all tags */
    int64_t now_at;
    const struct tag_count_how *how;
    struct limit_paused *pauses;
    size_t pause_count;
};

static bool is_wanted(const struct reading *w, const char *tag)
{
    return !w->glob || task_tag_glob(w->glob, tag);
}

/* Lists the tags that are paused by themselves, whether they have tasks or not. */
static int read_pauses(struct reading *w, struct err *err)
{
    int rc = limit_store_paused(w->db, NULL, &w->pauses, &w->pause_count, err);

    for (size_t i = 0; i < w->pause_count; i++) {
        const struct limit_paused *p = &w->pauses[i];
        w->now_at = p->now_at;
        if (p->info.tag && !p->glob && is_wanted(w, p->info.tag))
            infos_get(w->to, p->info.tag);
    }
    return rc;
}

/* Of several pauses of a tag, the one that ends last. */
static void take_pause(struct tag_info *to, const struct tag_info *from)
{
    if (from->paused_until_at <= to->paused_until_at)
        return;
    free(to->paused_by);
    free(to->pause_reason);
    to->paused_until_at = from->paused_until_at;
    to->paused_by = mem_strdup(from->paused_by);
    to->pause_reason = mem_strdup(from->pause_reason);
}

static void take_pauses(const struct reading *w)
{
    for (size_t i = 0; i < w->pause_count; i++) {
        const struct limit_paused *p = &w->pauses[i];
        struct tag_info *own = p->info.tag && !p->glob ? infos_find(w->to, p->info.tag) : NULL;

        if (own)
            take_pause(own, &p->info);
        for (size_t k = 0; p->glob && p->info.tag && k < w->to->count; k++)
            if (task_tag_glob(p->info.tag, w->to->items[k].tag))
                take_pause(&w->to->items[k], &p->info);
    }
}

/* clang-format off */
#define PAIR_COLUMNS(X)      \
    X(PAIR_STATUS, "status") \
    X(PAIR_TAG, "tag")       \
    X(PAIR_FIRST, "MIN(expected_time)")
/* clang-format on */
enum { PAIR_COLUMNS(COLUMNS_NAME) PAIR_COUNT };

static void take_pair(const struct db_rows *r, void *arg)
{
    const struct reading *w = arg;
    int status = sql_status(r, PAIR_STATUS);
    MEM_LOCAL char *tag = sql_dup_tag(r, PAIR_TAG);

    if (status != TASK_STATUS_UNKNOWN && is_wanted(w, tag)) {
        struct tag_info *i = infos_get(w->to, tag);
        i->count[status] = 1;
        if (status == TASK_PENDING) {
            int64_t first_at = sql_due(r, PAIR_FIRST);
            unsigned level = TASK_LEVEL_BIT(sql_level(r, PAIR_STATUS));

            i->levels |= level;
            i->due_levels |= first_at <= w->now_at ? level : 0;
            if (i->next_at == TASK_TIME_NONE || first_at < i->next_at)
                i->next_at = first_at;
            if (i->next_at <= w->now_at)
                i->late_from_at = i->next_at;
        }
    }
}

/* Finds the pairs (status, tag) by a loose index scan, and the earliest time of each tag's pending
 * tasks. Sets count to 1 for each pair. */
static int read_pairs(struct reading *w, struct err *err)
{
    return sql_all(w->db, PAIR_COUNT, take_pair, w, err,
                   "SELECT ? FROM dq_task FORCE INDEX (due) GROUP BY status, tag",
                   SQL_PART(COLUMNS_SELECT(PAIR_COLUMNS)));
}

/* value: of status. */
static bool is_part(const struct tag_info *t, unsigned value, unsigned skip)
{
    int status = sql_status_of(value);

    return t->count[status] && !(skip & TASK_BIT(status)) &&
           (status != TASK_PENDING || t->levels & TASK_LEVEL_BIT(sql_level_of(value)));
}

static bool is_due(const struct tag_info *t, unsigned value)
{
    return sql_status_of(value) == TASK_PENDING &&
           t->due_levels & TASK_LEVEL_BIT(sql_level_of(value));
}

static size_t count_parts(const struct infos *t, unsigned skip)
{
    size_t n = 0;

    for (size_t i = 0; i < t->count; i++) {
        for (unsigned s = 0; s < SQL_STATUS_COUNT; s++)
            n += is_part(&t->items[i], s, skip) + is_due(&t->items[i], s);
    }
    return n;
}

int tag_store_is_small(struct db *db, size_t parts, struct err *err)
{
    size_t most = parts < ENTRIES_MOST / ENTRIES_A_COUNT ? parts * ENTRIES_A_COUNT : ENTRIES_MOST;

    if (parts < MANY_PARTS)
        return 0;
    int rc = sql_first(db, COLUMNS_ONE, NULL, NULL, err,
                       "SELECT 1 FROM dq_task FORCE INDEX (due) LIMIT ?, 1", SQL_ID(most));
    return rc < 0 ? rc : rc == 0;
}

/* clang-format off */
#define ALL_COLUMNS(X)       \
    X(ALL_STATUS, "status")  \
    X(ALL_TAG, "tag")        \
    X(ALL_TASKS, "COUNT(*)") \
    X(ALL_DUE, "SUM(expected_time <= UTC_TIMESTAMP(3))")
/* clang-format on */
enum { ALL_COLUMNS(COLUMNS_NAME) ALL_COUNT };

static void take_all_counts(const struct db_rows *r, void *arg)
{
    const struct reading *w = arg;
    int status = sql_status(r, ALL_STATUS);
    MEM_LOCAL char *tag = sql_dup_tag(r, ALL_TAG);
    struct tag_info *i = infos_find(w->to, tag);

    if (i && status != TASK_STATUS_UNKNOWN)
        i->count[status] += db_u64(r, ALL_TASKS);
    if (i && status == TASK_PENDING)
        i->due += db_u64(r, ALL_DUE);
}

/* Reads the whole index for all counts in one statement. Tags added since are left out. */
static int read_all_counts(struct reading *w, struct err *err)
{
    for (size_t i = 0; i < w->to->count; i++)
        memset(w->to->items[i].count, 0, sizeof w->to->items[i].count);
    return sql_all(w->db, ALL_COUNT, take_all_counts, w, err,
                   "SELECT ? FROM dq_task FORCE INDEX (due) GROUP BY status, tag",
                   SQL_PART(COLUMNS_SELECT(ALL_COLUMNS)));
}

/* The states of each tag that has tasks in them, and its due tasks, each a part; of pending tasks,
 * each level. */
static size_t make_parts(const struct reading *w, struct tag_count *parts)
{
    size_t n = 0;

    for (size_t i = 0; i < w->to->count; i++) {
        const struct tag_info *t = &w->to->items[i];

        for (unsigned s = 0; s < SQL_STATUS_COUNT; s++) {
            struct tag_count part = {
                .tag = t->tag, .status = s, .from_at = TASK_TIME_NONE, .until_at = TASK_TIME_NONE};

            if (is_part(t, s, w->how->skip))
                parts[n++] = part;
            part.until_at = w->now_at + 1;
            if (is_due(t, s))
                parts[n++] = part;
        }
    }
    return n;
}

/* In the order of make_parts. */
static void take_parts(struct infos *t, unsigned skip, const struct tag_count *parts)
{
    for (size_t i = 0; i < t->count; i++) {
        struct tag_info *info = &t->items[i];

        uint64_t sum[TASK_STATUS_COUNT] = {0};

        for (unsigned s = 0; s < SQL_STATUS_COUNT; s++) {
            int status = sql_status_of(s);

            if (is_part(info, s, skip)) {
                sum[status] += parts->tasks;
                info->sampled[status] |= parts++->sampled;
            }
            if (is_due(info, s)) {
                info->due += parts->tasks;
                info->due_sampled |= parts++->sampled;
            }
        }
        for (unsigned s = 0; s < TASK_STATUS_COUNT; s++)
            info->count[s] = skip & TASK_BIT(s) ? info->count[s] : sum[s];
    }
}

static int read_counts(struct reading *w, struct err *err)
{
    MEM_LOCAL struct tag_count *parts =
        mem_alloc((count_parts(w->to, w->how->skip) + 1) * sizeof *parts);
    int rc = tag_count_all(w->db, w->how, parts, make_parts(w, parts), err);

    if (rc == 0)
        take_parts(w->to, w->how->skip, parts);
    return rc;
}

int tag_store_list(struct db *db, const char *tag_glob, const struct tag_count_how *how,
                   struct tag_info **ret, size_t *ret_count, int64_t *ret_now_at, struct err *err)
{
    struct infos t = {0};
    struct reading w = {.db = db, .to = &t, .glob = tag_glob, .how = how};

    int rc = read_pauses(&w, err);
    if (rc == 0)
        rc = read_pairs(&w, err);
    take_pauses(&w);
    limit_store_paused_free(w.pauses, w.pause_count);
    if (rc == 0)
        rc = tag_store_is_small(db, count_parts(&t, how->skip), err);
    if (rc >= 0)
        rc = rc == 1 ? read_all_counts(&w, err) : read_counts(&w, err);
    index_done(&t.index);
    if (t.count)
        qsort(t.items, t.count, sizeof *t.items, order_names);
    if (rc == 0)
        rc = tag_late_read(db, t.items, t.count, !tag_glob,
                           how->most_ms > 0 ? how->most_ms : LATE_MS, err);
    if (rc < 0) {
        tag_store_free(t.items, t.count);
        return rc;
    }
    *ret = t.items;
    *ret_count = t.count;
    *ret_now_at = w.now_at;
    return 0;
}

void tag_store_free(struct tag_info *t, size_t count)
{
    for (size_t i = 0; i < count; i++)
        limit_store_tag_done(&t[i]);
    free(t);
}
