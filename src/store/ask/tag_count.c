/*
 * tag_count.c - see tag_count.h. Invariant: unless `exact`, counting ends soon after its time is
 * up, whatever the server estimates.
 *
 * The server estimates a range from ten pages at its beginning. Those of ranges that have more are
 * wrong by a factor that depends on the server (MySQL and MariaDB 10.5 double them), not on the
 * range: it is measured by counting some. MySQL also cuts each estimate to half of the table, so
 * large ranges are estimated in pieces, which has more pages looked at, too.
 */
#include "store/ask/tag_count.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define PARTS_AT_ONCE 100 /* in one statement */
#define STATEMENT_MS 100  /* that one statement is meant to take */
#define ENTRIES_A_MS 1000 /* while the speed is not known */
/* Entries that are counted even if there is no time: of all parts, and of the beginning of each of
 * the largest ones. */
#define LEAST_ENTRIES 50000
#define LARGEST 8
/* Bytes of ten pages, and of an entry of the index beside its tag. */
#define PAGES_BYTES (10 * 16384)
#define ENTRY_BYTES 22
/* Slices and pieces of a range, and the estimate below which a piece is not halved. */
#define SLICES 16
#define PIECES 32
#define PIECE_ENTRIES 20000
#define SLICED 100 /* parts that are not among the largest, and are estimated in slices */

/* ---- ranges */

/* The part, and bounds of its own in the due order: from (from_at, from_id), which is included, to
 * before (until_at, until_id). */
struct range {
    const struct tag_count *part;
    int64_t from_at, until_at; /* TASK_TIME_NONE: no bound */
    uint64_t from_id, until_id;
    uint64_t rows;
};

static void put_range(struct buf *sql, const struct range *r)
{
    sql_put(sql, " FROM dq_task FORCE INDEX (due) WHERE status = ? AND tag = ?",
            SQL_INT(r->part->status), SQL_TAG(r->part->tag));
    if (r->from_at != TASK_TIME_NONE) /* with this entry */
        sql_put_due_beyond(sql, "", '>', db_put_time, r->from_at, r->from_id ? r->from_id - 1 : 0);
    if (r->until_at != TASK_TIME_NONE)
        sql_put_due_beyond(sql, "", '<', db_put_time, r->until_at, r->until_id);
}

static struct range range_of(const struct tag_count *p)
{
    return (struct range){.part = p, .from_at = p->from_at, .until_at = p->until_at};
}

/* ---- estimates: EXPLAIN has rows for each SELECT, numbered from 1 */

struct estimating {
    const struct sql_explain *at;
    struct range *ranges;
    size_t count;
};

static void take_estimate(const struct db_rows *r, void *arg)
{
    const struct estimating *w = arg;
    uint64_t id = db_u64(r, w->at->id);

    if (id >= 1 && id <= w->count)
        w->ranges[id - 1].rows = db_u64(r, w->at->rows);
}

static int estimate(struct db *db, struct range *ranges, size_t count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct estimating w = {sql_explain_columns(db), ranges, count};

    buf_str(&sql, SQL_EXPLAIN);
    for (size_t i = 0; i < count; i++) {
        ranges[i].rows = 0;
        buf_str(&sql, i ? " UNION ALL SELECT 1" : "SELECT 1");
        put_range(&sql, &ranges[i]);
    }
    return db_all(db, &sql, w.at->count, take_estimate, &w, err);
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
    struct range ranges[PARTS_AT_ONCE];
    int rc = 0;

    for (size_t i = 0, n; rc == 0 && i < count; i += n) {
        n = MIN(count - i, (size_t)PARTS_AT_ONCE);
        for (size_t k = 0; k < n; k++)
            ranges[k] = range_of(&parts[i + k]);
        rc = estimate(db, ranges, n, err);
        for (size_t k = 0; k < n; k++) {
            parts[i + k].tasks = ranges[k].rows;
            parts[i + k].sampled = true;
        }
    }
    return rc;
}

/* ---- counts */

/* With placeholders of printf. */
#define COUNT_COLUMNS(X) X(COUNT_PART, "%zu") X(COUNT_TASKS, "COUNT(*)")
enum { COUNT_COLUMNS(COLUMNS_NAME) COUNT_COUNT };

struct counting {
    struct db *db;
    const struct tag_count_how *how;
    struct tag_count **order; /* the parts, those with few tasks first */
    size_t count;
    int64_t begun_at, until_at; /* when_steady() */
    uint64_t read;              /* entries of the index, so far */
    /* of the ranges whose estimate is not exact: what was estimated and counted */
    double estimated, counted;
};

static int64_t left_ms(const struct counting *w)
{
    return MAX(w->until_at - when_steady(), 0);
}

/* There is less time than usual: fewer statements matter more than the last percent. */
static bool in_a_hurry(const struct counting *w)
{
    return w->how->most_ms > 0 && w->how->most_ms < TAG_COUNT_MS;
}

/* Entries that can be counted in a time, at the speed so far. None in one that is over. */
static uint64_t entries_in(const struct counting *w, int64_t ms)
{
    int64_t elapsed = MAX(when_steady() - w->begun_at, 1);
    double speed = w->read < LEAST_ENTRIES / 2 ? ENTRIES_A_MS : (double)w->read / (double)elapsed;

    return (uint64_t)MIN(speed * (double)MAX(ms, 0), 1e18);
}

/* Ten pages have fewer entries than the result, and a doubled estimate is more, because pages are
 * half full. */
static bool is_exact(const struct tag_count *p, uint64_t estimated)
{
    return estimated < PAGES_BYTES / (ENTRY_BYTES + strlen(p->tag));
}

/* Nor can it be a doubled one whose pages are a little less than half full, or whose first page
 * belongs to the range before for the most part. */
static bool is_surely_exact(const struct tag_count *p, uint64_t estimated)
{
    return is_exact(p, estimated + estimated / 4);
}

static void learn(struct counting *w, uint64_t estimated, uint64_t counted)
{
    w->estimated += (double)estimated;
    w->counted += (double)counted;
}

/* What ranges of the part probably have, given what was estimated for them. */
static uint64_t likely(const struct counting *w, const struct tag_count *p, uint64_t estimated)
{
    return is_exact(p, estimated) || w->estimated <= 0
               ? estimated
               : (uint64_t)((double)estimated * w->counted / w->estimated);
}

static void take_count(const struct db_rows *r, void *arg)
{
    struct counting *w = arg;
    uint64_t at = db_u64(r, COUNT_PART), n = db_u64(r, COUNT_TASKS);

    if (at >= w->count) {
        db_refuse_row(r);
        return;
    }
    if (!is_exact(w->order[at], w->order[at]->tasks))
        learn(w, w->order[at]->tasks, n);
    w->order[at]->tasks = n;
    w->order[at]->sampled = false;
    w->read += n;
}

static int count_some(struct counting *w, size_t from, size_t n, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    /* the server may have estimated too little, seconds after many tasks were added */
    sql_put_select_within(&sql, w->how->exact ? 0 : left_ms(w) + STATEMENT_MS);
    for (size_t i = from; i < from + n; i++) {
        struct range r = range_of(w->order[i]);
        buf_str(&sql, i > from ? " UNION ALL SELECT " : "");
        buf_printf(&sql, COLUMNS_SELECT(COUNT_COLUMNS), i);
        put_range(&sql, &r);
    }
    return db_all(w->db, &sql, COUNT_COUNT, take_count, w, err);
}

/* How many parts from `from` on make one statement of up to `most` entries, or one part of up to
 * `left`. */
static size_t group(const struct counting *w, size_t from, uint64_t most, uint64_t left,
                    uint64_t *ret_entries)
{
    uint64_t entries = 0;
    size_t n = 0;

    for (; from + n < w->count && n < PARTS_AT_ONCE; n++) {
        const struct tag_count *p = w->order[from + n];
        uint64_t more = likely(w, p, p->tasks);

        if (more > (n ? most - MIN(entries, most) : MAX(most, left)))
            break;
        entries += more;
    }
    *ret_entries = entries;
    return n;
}

/* Counts whole parts while there is time. *ret: how many of them. */
static int count_whole(struct counting *w, size_t *ret, struct err *err)
{
    uint64_t done = 0, all = 0, entries;
    size_t from = 0, n = 0;
    int rc = 0;

    for (size_t i = 0; i < w->count; i++)
        all += w->order[i]->tasks;
    while (rc == 0 && from < w->count) {
        uint64_t left = w->how->exact ? UINT64_MAX : entries_in(w, left_ms(w)),
                 most = MIN(entries_in(w, STATEMENT_MS), left);

        most = MAX(most, done < LEAST_ENTRIES ? LEAST_ENTRIES - done : 0);
        n = group(w, from, most, left, &entries);
        if (n == 0)
            break;
        rc = count_some(w, from, n, err);
        from += n;
        done += entries;
        if (rc == 0 && w->how->progress)
            w->how->progress(all ? (double)done / (double)all : 1, w->how->arg);
    }
    if (rc == ERR_TRANSIENT && !w->how->exact) { /* it took too long */
        from -= n;
        rc = 0;
    }
    *ret = from;
    return rc;
}

/* ---- the others */

/* clang-format off */
#define POINT_COLUMNS(X)              \
    X(POINT_AT, "expected_time")      \
    X(POINT_ID, "id")
/* clang-format on */
enum { POINT_COLUMNS(COLUMNS_NAME) POINT_COUNT };

struct point {
    int64_t at;
    uint64_t id;
};

static void take_point(const struct db_rows *r, void *arg)
{
    *(struct point *)arg = (struct point){sql_due(r, POINT_AT), db_u64(r, POINT_ID)};
}

/* The entry of the range with that number, from 0, at one of its ends. 1, or 0: it has fewer. */
static int find_point(struct db *db, const struct range *r, bool last, uint64_t number,
                      struct point *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    buf_printf(&sql, "SELECT %s", COLUMNS_SELECT(POINT_COLUMNS));
    put_range(&sql, r);
    sql_put(&sql, " ORDER BY ? LIMIT 1 OFFSET ?",
            SQL_PART(last ? SQL_DUE_ORDER("", " DESC") : SQL_DUE_ORDER("", "")), SQL_ID(number));
    return db_first(db, &sql, POINT_COUNT, take_point, ret, err);
}

struct sum {
    uint64_t exact, estimated;
};

/* Two copies of a range become its parts before that time and behind it. */
static void cut(struct range *before, struct range *behind, int64_t at)
{
    before->until_at = behind->from_at = at;
    before->until_id = behind->from_id = 0;
}

/* Adds up the estimates of pieces of a range, from first_at to last_at: slices of time and, up to
 * `most` pieces, halves of the largest ones. */
static int estimate_pieces(struct db *db, const struct range *r, int64_t first_at, int64_t last_at,
                           size_t most, struct sum *ret, struct err *err)
{
    struct range pieces[PIECES];
    size_t n = (size_t)MAX(MIN(last_at - first_at, SLICES), 1);

    for (size_t i = 0; i < n; i++) {
        pieces[i] = *r;
        if (i > 0)
            cut(&pieces[i - 1], &pieces[i],
                first_at + (last_at - first_at) / (int64_t)n * (int64_t)i);
    }
    int rc = estimate(db, pieces, n, err);

    while (rc == 0 && n < most) {
        size_t at = 0;
        for (size_t i = 1; i < n; i++)
            at = pieces[i].rows > pieces[at].rows ? i : at;
        int64_t begin_at = MAX(pieces[at].from_at, first_at),
                end_at = pieces[at].until_at == TASK_TIME_NONE ? last_at : pieces[at].until_at;
        if (pieces[at].rows < PIECE_ENTRIES || end_at - begin_at < 2)
            break;
        pieces[n] = pieces[at];
        cut(&pieces[at], &pieces[n], begin_at + (end_at - begin_at) / 2);
        rc = estimate(db, &pieces[at], 1, err);
        if (rc == 0)
            rc = estimate(db, &pieces[n++], 1, err);
    }
    for (size_t i = 0; i < n; i++)
        *(is_exact(r->part, pieces[i].rows) ? &ret->exact : &ret->estimated) += pieces[i].rows;
    return rc;
}

/* The times of the first and the last entry of the part. 1, or 0: it has none. */
static int find_ends(struct db *db, const struct tag_count *p, struct point *first,
                     struct point *last, struct err *err)
{
    struct range all = range_of(p);
    int rc = find_point(db, &all, false, 0, first, err);

    return rc == 1 ? find_point(db, &all, true, 0, last, err) : rc;
}

static int count_range(struct db *db, const struct range *r, uint64_t *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT COUNT(*)");
    put_range(&sql, r);
    return sql_one(db, &sql, COLUMNS_ONE, sql_take_u64, ret, err);
}

/* Counts a large part in steps until its time is up; then *ret_rest is what remains. 1, or 0: it
 * was counted to its end. */
static int count_steps(struct counting *w, struct tag_count *p, int64_t ms, struct range *ret_rest,
                       struct err *err)
{
    int64_t until_at = when_steady() + ms;
    struct range rest = range_of(p);
    struct point end;
    uint64_t last = 0;
    int rc = 1;

    p->tasks = 0;
    do {
        uint64_t step = entries_in(w, MIN(until_at - when_steady(), STATEMENT_MS));

        step = MAX(step, LEAST_ENTRIES / LARGEST);
        rc = find_point(w->db, &rest, false, step, &end, err);
        if (rc == 1) {
            rest.from_at = end.at;
            rest.from_id = end.id;
            p->tasks += step;
            w->read += step;
        }
    } while (rc == 1 && when_steady() < until_at);
    if (rc == 0)
        rc = count_range(w->db, &rest, &last, err);
    else if (rc == 1)
        *ret_rest = rest;
    p->tasks += last;
    p->sampled = rc == 1;
    w->read += last;
    return rc < 0 ? rc : p->sampled;
}

/* Estimates what remains of a part, and learns from what was counted of it. */
static int estimate_rest(struct counting *w, const struct tag_count *p, const struct range *rest,
                         struct sum *ret, struct err *err)
{
    struct range before = range_of(p);
    struct point first, last;
    struct sum sum = {0, 0};
    size_t most = in_a_hurry(w) ? 0 : PIECES;
    int rc = find_ends(w->db, p, &first, &last, err);

    if (rc <= 0)
        return rc;
    before.until_at = rest->from_at;
    before.until_id = rest->from_id;
    rc = estimate_pieces(w->db, &before, first.at, rest->from_at, most, &sum, err);
    if (rc == 0)
        rc = estimate_pieces(w->db, rest, rest->from_at, last.at, most, ret, err);
    if (rc == 0 && sum.estimated && sum.exact < p->tasks)
        learn(w, sum.estimated, p->tasks - sum.exact);
    return rc;
}

/* *ret: what a part has by the estimates of its slices. */
static int estimate_slices(struct counting *w, const struct tag_count *p, struct sum *ret,
                           struct err *err)
{
    struct range all = range_of(p);
    struct point first, last;
    int rc = find_ends(w->db, p, &first, &last, err);

    return rc == 1 ? estimate_pieces(w->db, &all, first.at, last.at, 0, ret, err) : rc;
}

/* The parts that were not counted whole: the largest ones in steps, to learn from them. */
static int estimate_others(struct counting *w, size_t from, struct err *err)
{
    size_t others = w->count - from, first = others > LARGEST ? w->count - LARGEST : from;
    struct sum rests[LARGEST] = {{0, 0}};
    struct range rest;
    int rc = 0;

    for (size_t i = first; rc >= 0 && i < w->count; i++) {
        rc = count_steps(w, w->order[i], left_ms(w) / (int64_t)(w->count - i), &rest, err);
        if (rc == 1)
            rc = estimate_rest(w, w->order[i], &rest, &rests[i - first], err);
    }
    for (size_t i = from; rc == 0 && i < w->count; i++) {
        struct tag_count *p = w->order[i];

        if (i < first && i + SLICED >= first && !in_a_hurry(w) && !is_surely_exact(p, p->tasks)) {
            struct sum sum = {0, 0};
            rc = estimate_slices(w, p, &sum, err);
            p->tasks = sum.exact + likely(w, p, sum.estimated);
        } else if (i < first)
            p->tasks = likely(w, p, p->tasks);
        else
            p->tasks += rests[i - first].exact + likely(w, p, rests[i - first].estimated);
    }
    return rc;
}

int tag_count_all(struct db *db, const struct tag_count_how *how, struct tag_count *parts,
                  size_t count, struct err *err)
{
    int64_t begun_at = when_steady();
    struct counting w = {.db = db, .how = how, .begun_at = begun_at};
    size_t counted = 0;
    int rc = tag_count_estimate(db, parts, count, err);

    if (rc < 0 || !count)
        return rc;
    w.begun_at = when_steady();
    w.until_at = begun_at + (how->most_ms < 0 ? 0 : how->most_ms ? how->most_ms : TAG_COUNT_MS);
    w.order = mem_alloc(count * sizeof(struct tag_count *));
    for (size_t i = 0; i < count; i++)
        w.order[w.count++] = &parts[i];
    tag_count_sort(w.order, w.count);
    rc = count_whole(&w, &counted, err);
    if (rc == 0)
        rc = estimate_others(&w, counted, err);
    free(w.order);
    return rc;
}
