/*
 * tag_lateness.c - how late tasks were started, by tag.
 *
 * Invariant: reads at most about TAG_SAMPLE_CAP rows, the latest due of each (status, tag); what was left out is said.
 */
#include "base/mem.h"
#include "store/tag_store.h"
#include "store/task_sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PART_MIN 100 /* rows of a (status, tag), however many there are of these */

/* The tasks of a tag that have been measured. */
struct sample {
    char *tag;
    int64_t *late_ms;
    size_t count, cap;
    bool cut;
    uint64_t done, failed;
};

struct samples {
    struct sample *items;
    size_t count;
};

struct pair {
    int status;
    size_t sample;
};

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void sample_add(struct sample *s, int64_t late_ms, uint64_t done, uint64_t failed)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 256;
        s->late_ms = mem_resize(s->late_ms, s->cap, sizeof *s->late_ms);
    }
    s->late_ms[s->count++] = late_ms;
    s->done += done;
    s->failed += failed;
}

/* The (status, tag) that have been started: done, failed, running. Ordered by tag for the one who looks the sample up. */
static int find_pairs(struct db *db, const char *glob, struct samples *all, struct pair **ret, size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    struct pair *pairs = NULL;
    size_t count = 0;

    buf_str(&sql, "SELECT status, tag FROM (SELECT status, tag FROM dq_task FORCE INDEX (due) GROUP BY status, tag) p WHERE ");
    sql_put_statuses(&sql, "", TASK_BIT(TASK_DONE) | TASK_BIT(TASK_FAILED) | TASK_BIT(TASK_RUNNING));
    buf_str(&sql, " ORDER BY tag, status");
    int rc = db_query(db, &sql, 2, false, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        char *tag = sql_dup_tag(rows, 1);
        rc = 0;
        if (glob && !task_tag_glob(glob, tag)) {
            free(tag);
            continue;
        }
        if (!all->count || strcmp(all->items[all->count - 1].tag, tag)) {
            all->items = mem_resize(all->items, all->count + 1, sizeof *all->items);
            all->items[all->count++] = (struct sample){.tag = tag};
        } else {
            free(tag);
        }
        pairs = mem_resize(pairs, count + 1, sizeof *pairs);
        pairs[count++] = (struct pair){sql_status(rows, 0), all->count - 1};
    }
    db_rows_free(rows);
    buf_done(&sql);
    *ret = pairs;
    *ret_count = count;
    return rc;
}

static int measure(struct db *db, struct sample *s, int status, int64_t window_ms, size_t limit, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;
    size_t seen = 0;

    buf_printf(&sql,
               "SELECT TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) DIV 1000, finish_time >= UTC_TIMESTAMP(3) - "
               "INTERVAL %" PRId64 " MICROSECOND FROM dq_task FORCE INDEX (due) WHERE status = %d AND tag = ",
               window_ms * 1000, status);
    sql_put_tag(&sql, s->tag);
    buf_str(&sql, " AND expected_time <= UTC_TIMESTAMP(3) AND expected_time >= ");
    sql_put_from_now(&sql, -window_ms);
    buf_printf(&sql, " ORDER BY expected_time DESC, id DESC LIMIT %zu", limit);
    int rc = db_query(db, &sql, 2, true, &rows, err);
    while (rc == 0 && (rc = db_rows_next(rows, err)) == 1) {
        uint64_t finished = db_u64(rows, 1);
        if (!db_is_null(rows, 0))
            sample_add(s, db_i64(rows, 0, 0), status == TASK_DONE ? finished : 0, status == TASK_FAILED ? finished : 0);
        seen++;
        rc = 0;
    }
    db_rows_free(rows);
    buf_done(&sql);
    s->cut |= seen == limit;
    return rc;
}

/* The smallest value that at least this share of the sorted values does not exceed. */
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

/* One entry for all, then one per tag; nothing at all where nothing was started. */
static void summarize_all(const struct samples *all, int64_t window_ms, struct tag_lateness **ret, size_t *ret_count)
{
    struct tag_lateness *list = mem_alloc((all->count + 1) * sizeof *list);
    struct sample total = {.tag = NULL};
    size_t count = 1;

    for (size_t i = 0; i < all->count; i++) {
        struct sample *s = &all->items[i];
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

int tag_store_lateness(struct db *db, const char *tag_glob, int64_t window_ms, struct tag_lateness **ret, size_t *ret_count,
                       struct err *err)
{
    struct samples all = {NULL, 0};
    struct pair *pairs = NULL;
    size_t count = 0;

    int rc = find_pairs(db, tag_glob, &all, &pairs, &count, err);
    size_t limit = count ? TAG_SAMPLE_CAP / count : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = measure(db, &all.items[pairs[i].sample], pairs[i].status, window_ms, limit < PART_MIN ? PART_MIN : limit, err);
    if (rc == 0)
        summarize_all(&all, window_ms, ret, ret_count);
    for (size_t i = 0; i < all.count; i++) {
        free(all.items[i].tag);
        free(all.items[i].late_ms);
    }
    free(all.items);
    free(pairs);
    return rc;
}

void tag_lateness_free(struct tag_lateness *t, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(t[i].tag);
    free(t);
}
