/*
 * tag_lateness.c - how late tasks were started, by tag.
 *
 * Invariant: reads about TAG_SAMPLE_CAP rows at most, those of each (status, tag) that were due
 * last, unless the table is small for its number of tags. `sampled` reports that rows were left
 * out.
 */
#include "store/ask/tag_lateness.h"
#include "base/mem.h"
#include "store/ask/tag_store.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define PART_MIN 100     /* rows of each (status, tag), however many pairs there are */
#define PAIRS_AT_ONCE 50 /* (status, tag) in one statement */
/* States of tasks whose last start is measured. */
#define STARTED (TASK_BIT(TASK_DONE) | TASK_BIT(TASK_FAILED) | TASK_BIT(TASK_RUNNING))

/* The measured tasks of a tag. */
struct sample {
    char *tag;
    int64_t *late_ms;
    size_t count, cap;
    bool cut;
    uint64_t done, failed;
};

struct samples {
    struct sample **items; /* by name */
    size_t count, cap;
};

struct pair {
    int status;
    struct sample *sample;
    size_t seen;
};

struct pairs {
    struct pair *items;
    size_t count, cap;
};

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void sample_add(struct sample *s, int64_t late_ms, uint64_t done, uint64_t failed)
{
    MEM_ROOM(s->late_ms, s->count, s->cap);
    s->late_ms[s->count++] = late_ms;
    s->done += done;
    s->failed += failed;
}

static int compare_samples(const void *a, const void *b)
{
    return strcmp((*(struct sample *const *)a)->tag, (*(struct sample *const *)b)->tag);
}

static struct sample *add_sample(struct samples *all, char *tag)
{
    struct sample *s = mem_zero(1, sizeof *s);

    MEM_ROOM(all->items, all->count, all->cap);
    s->tag = tag;
    return all->items[all->count++] = s;
}

static void add_pair(struct pairs *pairs, int status, struct sample *s)
{
    MEM_ROOM(pairs->items, pairs->count, pairs->cap);
    pairs->items[pairs->count++] = (struct pair){status, s, 0};
}

struct finding {
    const char *glob; /* NULL: all tags */
    struct samples *all;
    struct pairs *pairs;
    struct sample *last;
};

#define PAIR_COLUMNS(X) X(PAIR_STATUS, "status") X(PAIR_TAG, "tag")
enum { PAIR_COLUMNS(COLUMNS_NAME) PAIR_COUNT };

static int take_pair(const struct db_rows *r, void *arg, struct err *err)
{
    struct finding *w = arg;
    char *tag = sql_dup_tag(r, PAIR_TAG);

    (void)err;
    if (w->glob && !task_tag_glob(w->glob, tag)) {
        free(tag);
        return 0;
    }
    if (!w->last || strcmp(w->last->tag, tag))
        w->last = add_sample(w->all, tag);
    else
        free(tag);
    add_pair(w->pairs, sql_status(r, PAIR_STATUS), w->last);
    return 0;
}

/* Finds the pairs (status, tag) of tasks that were started: done, failed, running. */
static int find_pairs(struct db *db, const char *glob, struct samples *all, struct pairs *pairs,
                      struct err *err)
{
    struct buf sql = BUF_INIT;
    struct finding w = {glob, all, pairs, NULL};

    buf_printf(
        &sql,
        "SELECT %s FROM (SELECT status, tag FROM dq_task FORCE INDEX (due) GROUP BY status, tag) p WHERE ",
        COLUMNS_SELECT(PAIR_COLUMNS));
    sql_put_statuses(&sql, "", STARTED);
    buf_str(&sql, " ORDER BY tag, status");
    int rc = db_each(db, &sql, PAIR_COUNT, take_pair, &w, err);
    if (all->count)
        /* the server's order may differ */
        qsort(all->items, all->count, sizeof(struct sample *), compare_samples);
    buf_done(&sql);
    return rc;
}

/* How late a task was started, and whether it finished within the window, whose length in
 * microseconds is a placeholder of printf. */
#define MEASURE_COLUMNS(X, name)                                                                   \
    X(name##_LATE,                                                                                 \
      "TIMESTAMPDIFF(MICROSECOND, GREATEST(expected_time, create_time), execution_time) DIV 1000") \
    X(name##_FINISHED, "finish_time >= UTC_TIMESTAMP(3) - INTERVAL %" PRId64 " MICROSECOND")

#define PART_COLUMNS(X) X(PART_NUMBER, "%zu") MEASURE_COLUMNS(X, PART)
#define ANY_COLUMNS(X) X(ANY_STATUS, "status") X(ANY_TAG, "tag") MEASURE_COLUMNS(X, ANY)
enum { PART_COLUMNS(COLUMNS_NAME) PART_COUNT };
enum { ANY_COLUMNS(COLUMNS_NAME) ANY_COUNT };

static void put_window(struct buf *sql, int64_t window_ms)
{
    buf_str(
        sql,
        " FROM dq_task FORCE INDEX (due) WHERE expected_time <= UTC_TIMESTAMP(3) AND expected_time >= ");
    sql_put_from_now(sql, -window_ms);
    buf_str(sql, " AND ");
}

static void take_row(struct sample *s, int status, const struct db_rows *r, unsigned late_col,
                     unsigned finished_col)
{
    uint64_t finished = db_u64(r, finished_col);

    if (!db_is_null(r, late_col))
        sample_add(s, db_i64(r, late_col, 0), status == TASK_DONE ? finished : 0,
                   status == TASK_FAILED ? finished : 0);
}

struct measuring {
    struct db *db;
    struct pair *pairs;
    size_t count, limit;
};

static int take_measure(const struct db_rows *r, void *arg, struct err *err)
{
    const struct measuring *w = arg;
    uint64_t i = db_u64(r, PART_NUMBER);

    if (i >= w->count)
        return sql_odd_row(w->db, err);
    take_row(w->pairs[i].sample, w->pairs[i].status, r, PART_LATE, PART_FINISHED);
    w->pairs[i].sample->cut |= ++w->pairs[i].seen == w->limit;
    return 0;
}

/* Measures the tasks of each pair that were due last. */
static int measure(struct db *db, struct pair *pairs, size_t count, int64_t window_ms, size_t limit,
                   struct err *err)
{
    struct buf sql = BUF_INIT;

    for (size_t i = 0; i < count; i++) {
        buf_str(&sql, i ? " UNION ALL (SELECT " : "(SELECT ");
        buf_printf(&sql, COLUMNS_SELECT(PART_COLUMNS), i, window_ms * 1000);
        put_window(&sql, window_ms);
        buf_printf(&sql, "status = %d AND tag = ", pairs[i].status);
        sql_put_tag(&sql, pairs[i].sample->tag);
        buf_printf(&sql, " ORDER BY " SQL_DUE_ORDER("", " DESC") " LIMIT %zu)", limit);
    }
    int rc = db_each_streamed(db, &sql, PART_COUNT, take_measure,
                              &(struct measuring){db, pairs, count, limit}, err);
    buf_done(&sql);
    return rc;
}

static int compare_name(const void *key, const void *element)
{
    return strcmp(key, (*(struct sample *const *)element)->tag);
}

struct measuring_all {
    struct samples *all;
    struct sample *last;
};

static int take_any_measure(const struct db_rows *r, void *arg, struct err *err)
{
    struct measuring_all *w = arg;
    char *tag = sql_dup_tag(r, ANY_TAG);

    (void)err;
    if (!w->last || strcmp(w->last->tag, tag) != 0) {
        struct sample **found =
            bsearch(tag, w->all->items, w->all->count, sizeof(struct sample *), compare_name);
        w->last = found ? *found : NULL;
    }
    if (w->last)
        take_row(w->last, sql_status(r, ANY_STATUS), r, ANY_LATE, ANY_FINISHED);
    free(tag);
    return 0;
}

/* Measures all tasks in one statement. Tags added since are left out. */
static int measure_all(struct db *db, struct samples *all, int64_t window_ms, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT ");
    buf_printf(&sql, COLUMNS_SELECT(ANY_COLUMNS), window_ms * 1000);
    put_window(&sql, window_ms);
    sql_put_statuses(&sql, "", STARTED);
    int rc = db_each_streamed(db, &sql, ANY_COUNT, take_any_measure,
                              &(struct measuring_all){all, NULL}, err);
    buf_done(&sql);
    return rc;
}

static int measure_pairs(struct db *db, struct samples *all, struct pairs *pairs, int64_t window_ms,
                         struct err *err)
{
    size_t limit = pairs->count ? TAG_SAMPLE_CAP / pairs->count : 0;
    int rc = tag_store_is_small(db, pairs->count, err);

    if (rc == 1)
        return measure_all(db, all, window_ms, err);
    for (size_t i = 0; rc == 0 && i < pairs->count; i += PAIRS_AT_ONCE)
        rc = measure(db, &pairs->items[i], MIN(pairs->count - i, PAIRS_AT_ONCE), window_ms,
                     MAX(limit, PART_MIN), err);
    return rc;
}

/* The smallest value that is not exceeded by at least that percentage of the sorted values. */
static int64_t percentile(const struct sample *s, unsigned percent)
{
    size_t rank = (s->count * percent + 99) / 100;
    return s->late_ms[rank ? rank - 1 : 0];
}

static struct tag_lateness summarize(struct sample *s, int64_t window_ms)
{
    qsort(s->late_ms, s->count, sizeof *s->late_ms, compare_numbers);
    return (struct tag_lateness){
        .tag = mem_strdup(s->tag),
        .started = s->count,
        .sampled = s->cut,
        .p50_ms = percentile(s, 50),
        .p95_ms = percentile(s, 95),
        .p99_ms = percentile(s, 99),
        .max_ms = s->late_ms[s->count - 1],
        .done = s->done,
        .failed = s->failed,
        .done_per_second = window_ms > 0 ? (double)s->done * 1000.0 / (double)window_ms : 0,
    };
}

/* One entry for all tags, then one per tag; none if nothing was started. */
static void summarize_all(const struct samples *all, int64_t window_ms, struct tag_lateness **ret,
                          size_t *ret_count)
{
    struct tag_lateness *list = mem_alloc((all->count + 1) * sizeof *list);
    struct sample total = {.tag = NULL};
    size_t count = 1;

    for (size_t i = 0; i < all->count; i++) {
        struct sample *s = all->items[i];
        for (size_t k = 0; k < s->count; k++)
            sample_add(&total, s->late_ms[k], 0, 0);
        total.done += s->done;
        total.failed += s->failed;
        total.cut |= s->cut;
        if (s->count)
            list[count++] = summarize(s, window_ms);
    }
    if (total.count)
        list[0] = summarize(&total, window_ms);
    else
        count = 0;
    free(total.late_ms);
    *ret = list;
    *ret_count = count;
}

int tag_lateness_list(struct db *db, const char *tag_glob, int64_t window_ms,
                      struct tag_lateness **ret, size_t *ret_count, struct err *err)
{
    struct samples all = {0};
    struct pairs pairs = {0};

    int rc = find_pairs(db, tag_glob, &all, &pairs, err);
    if (rc == 0)
        rc = measure_pairs(db, &all, &pairs, window_ms, err);
    if (rc == 0)
        summarize_all(&all, window_ms, ret, ret_count);
    for (size_t i = 0; i < all.count; i++) {
        free(all.items[i]->tag);
        free(all.items[i]->late_ms);
        free(all.items[i]);
    }
    free(all.items);
    free(pairs.items);
    return rc;
}

void tag_lateness_free(struct tag_lateness *t, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(t[i].tag);
    free(t);
}
