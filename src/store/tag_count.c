/*
 * tag_count.c - see tag_count.h. Invariant: unless `exact`, all counts together read no more than
 * about TAG_COUNT_ENTRIES entries of the index, whatever the server estimates.
 */
#include "store/tag_count.h"
#include "base/mem.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define PARTS_AT_ONCE 100 /* in one statement */

static void put_range(struct buf *sql, const struct tag_count *p)
{
    buf_printf(sql,
               "SELECT 1 FROM dq_task FORCE INDEX (due) WHERE status = %u AND tag = ", p->status);
    sql_put_tag(sql, p->tag);
    if (p->from_at != TASK_TIME_NONE) {
        buf_str(sql, " AND expected_time >= ");
        db_put_time(sql, p->from_at);
    }
    if (p->until_at != TASK_TIME_NONE) {
        buf_str(sql, " AND expected_time < ");
        db_put_time(sql, p->until_at);
    }
}

/* ---- estimates: EXPLAIN has a row for each SELECT, numbered from 1 */

struct estimating {
    const struct sql_explain *at;
    struct tag_count *parts;
    size_t count;
};

static int take_estimate(const struct db_rows *r, void *arg, struct err *err)
{
    const struct estimating *w = arg;
    uint64_t id = db_u64(r, w->at->id);

    (void)err;
    if (id >= 1 && id <= w->count)
        w->parts[id - 1].tasks = db_u64(r, w->at->rows);
    return 0;
}

static int estimate(struct db *db, struct tag_count *parts, size_t count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct estimating w = {sql_explain_columns(db), parts, count};

    buf_str(&sql, SQL_EXPLAIN);
    for (size_t i = 0; i < count; i++) {
        parts[i].tasks = 0;
        parts[i].sampled = true;
        buf_str(&sql, i ? " UNION ALL " : "");
        put_range(&sql, &parts[i]);
    }
    int rc = db_each(db, &sql, w.at->count, take_estimate, &w, err);
    buf_done(&sql);
    return rc;
}

static int compare_tasks(const void *a, const void *b)
{
    const struct tag_count *x = *(struct tag_count *const *)a, *y = *(struct tag_count *const *)b;
    return (x->tasks > y->tasks) - (x->tasks < y->tasks);
}

void tag_count_sort(struct tag_count **parts, size_t count)
{
    if (count)
        qsort(parts, count, sizeof(struct tag_count *), compare_tasks);
}

int tag_count_estimate(struct db *db, struct tag_count *parts, size_t count, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i += PARTS_AT_ONCE)
        rc = estimate(db, parts + i, MIN(count - i, (size_t)PARTS_AT_ONCE), err);
    return rc;
}

/* ---- the size of the table */

/* About how many rows the table has, as the server's statistics say. */
static int table_size(struct db *db, uint64_t *ret, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct tag_count all = {.tasks = 0};
    struct estimating w = {sql_explain_columns(db), &all, 1};

    buf_str(&sql, SQL_EXPLAIN "SELECT 1 FROM dq_task FORCE INDEX (due)");
    int rc = db_each(db, &sql, w.at->count, take_estimate, &w, err);
    buf_done(&sql);
    *ret = all.tasks;
    return rc;
}

static bool has_bounds(const struct tag_count *p)
{
    return p->from_at != TASK_TIME_NONE || p->until_at != TASK_TIME_NONE;
}

/* The estimates of ranges may all be twice too large: pages that are half full count as full. */
static int scale(struct db *db, struct tag_count *parts, size_t count, struct err *err)
{
    uint64_t size = 0, counted = 0, estimated = 0;
    int rc = table_size(db, &size, err);

    for (size_t i = 0; i < count; i++)
        if (!has_bounds(&parts[i]))
            *(parts[i].sampled ? &estimated : &counted) += parts[i].tasks;
    if (rc < 0 || !estimated || size <= counted)
        return rc;
    for (size_t i = 0; i < count; i++)
        if (parts[i].sampled)
            parts[i].tasks = (uint64_t)MIN(
                (double)parts[i].tasks * (double)(size - counted) / (double)estimated, 1e18);
    return 0;
}

/* ---- counts */

/* With placeholders of printf. */
#define COUNT_COLUMNS(X) X(COUNT_PART, "%zu") X(COUNT_TASKS, "COUNT(*)")
enum { COUNT_COLUMNS(COLUMNS_NAME) COUNT_COUNT };

struct counting {
    struct db *db;
    const struct tag_count_how *how;
    struct tag_count **order; /* the parts, those with few tasks first */
    uint64_t *limits;         /* of each count, in that order; 0: none */
    size_t count;
    uint64_t read; /* entries of the index, so far */
};

static int take_count(const struct db_rows *r, void *arg, struct err *err)
{
    struct counting *w = arg;
    uint64_t at = db_u64(r, COUNT_PART), n = db_u64(r, COUNT_TASKS);

    if (at >= w->count)
        return sql_odd_row(w->db, err);
    w->order[at]->tasks = n;
    w->order[at]->sampled = w->limits[at] && n >= w->limits[at];
    w->read += n;
    return 0;
}

static int count_some(struct counting *w, size_t from, size_t n, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (size_t i = from; i < from + n; i++) {
        buf_str(&sql, i > from ? " UNION ALL SELECT " : "SELECT ");
        buf_printf(&sql, COLUMNS_SELECT(COUNT_COLUMNS), i);
        buf_str(&sql, " FROM (");
        put_range(&sql, w->order[i]);
        if (w->limits[i])
            buf_printf(&sql, " LIMIT %" PRIu64, w->limits[i]);
        buf_str(&sql, ") x");
    }
    int rc = db_each(w->db, &sql, COUNT_COUNT, take_count, w, err);
    buf_done(&sql);
    return rc;
}

/* How many parts from `from` on make one statement: at least one. */
static size_t group(const struct counting *w, size_t from, size_t until, uint64_t *ret_entries)
{
    uint64_t entries = 0;
    size_t n = 0;

    while (from + n < until && n < PARTS_AT_ONCE &&
           (n == 0 || entries + w->order[from + n]->tasks <= TAG_COUNT_ENTRIES))
        entries += w->order[from + n++]->tasks;
    *ret_entries = entries;
    return n;
}

/* Counts the first `until` parts. */
static int count_first(struct counting *w, size_t until, uint64_t all, struct err *err)
{
    uint64_t done = 0, entries;
    size_t n;
    int rc = 0;

    for (size_t from = 0; rc == 0 && from < until; from += n) {
        n = group(w, from, until, &entries);
        rc = count_some(w, from, n, err);
        done += entries;
        if (rc == 0 && w->how->progress)
            w->how->progress(all ? (double)done / (double)all : 1, w->how->arg);
    }
    return rc;
}

/* Parts with more tasks than the server estimated (it may do that for seconds after many were
 * added) may use up what is left. */
static int count_again(struct counting *w, size_t until, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < until && w->read < TAG_COUNT_ENTRIES; i++) {
        if (!w->order[i]->sampled)
            continue;
        w->limits[i] = TAG_COUNT_ENTRIES - w->read + 1;
        if (w->limits[i] > w->order[i]->tasks)
            rc = count_some(w, i, 1, err);
    }
    return rc;
}

static bool is_rough(const struct tag_count_how *how, const struct tag_count *p)
{
    return how->rough & TASK_BIT(p->status) && !has_bounds(p);
}

int tag_count_all(struct db *db, const struct tag_count_how *how, struct tag_count *parts,
                  size_t count, struct err *err)
{
    struct counting w = {.db = db, .how = how};
    uint64_t all = 0;
    size_t until = 0;
    int rc = tag_count_estimate(db, parts, count, err);

    if (rc < 0 || !count)
        return rc;
    w.order = mem_alloc(count * sizeof(struct tag_count *));
    w.limits = mem_zero(count, sizeof *w.limits);
    for (size_t i = 0; i < count; i++)
        if (!is_rough(how, &parts[i]))
            w.order[w.count++] = &parts[i];
    tag_count_sort(w.order, w.count);
    for (; until < w.count && (how->exact || all + w.order[until]->tasks <= TAG_COUNT_ENTRIES);
         until++) {
        w.limits[until] = how->exact ? 0 : 4 * w.order[until]->tasks + 1000;
        all += w.order[until]->tasks;
    }
    rc = count_first(&w, until, all, err);
    if (rc == 0)
        rc = count_again(&w, until, err);
    if (rc == 0 && how->whole)
        rc = scale(db, parts, count, err);
    free(w.order);
    free(w.limits);
    return rc;
}
