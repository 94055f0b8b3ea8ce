/*
 * task_list.c - see task_list.h. Invariant: a row is shown only if it matches when it is read.
 */
#include "store/ask/task_list.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/ask/task_keys.h"
#include "store/db/columns.h"
#include "store/row/sql.h"
#include "store/row/task_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define ROWS 500 /* read at once; fewer with bodies */
#define ROWS_WITH_BODIES 20

struct list {
    struct db *db;
    const struct task_filter *f;
    unsigned statuses;
    struct task_keys *keys;
};

struct reading {
    struct task *items;
    size_t count, most;
    unsigned columns;
};

static void take_task(const struct db_rows *r, void *arg)
{
    struct reading *w = arg;

    if (w->count < w->most)
        task_read(r, w->columns, &w->items[w->count++]);
}

/* Reads those of the tasks ids[0..n-1] that still match, sorted by id; *ret_count is their number.
 */
static int read_tasks(const struct list *l, const uint64_t *ids, size_t n, bool bodies,
                      struct task *ret, size_t *ret_count, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct reading read = {
        ret, 0, n,
        TASK_READ_SHORT |
            (bodies ? TASK_READ_BIT(TASK_READ_BODY) | TASK_READ_BIT(TASK_READ_AGAIN_BODY) : 0)};

    buf_str(&sql, "SELECT ");
    unsigned count = task_read_put_columns(&sql, "t.", read.columns);
    sql_put(&sql, " FROM dq_task t FORCE INDEX (PRIMARY) WHERE id IN ?", SQL_IDS(ids, n));
    task_filter_put(&sql, l->f, l->statuses);
    int rc = db_all(l->db, &sql, count, take_task, &read, err);
    qsort(ret, read.count, sizeof *ret, order_ids);
    *ret_count = read.count;
    return rc;
}

struct handled {
    size_t keys; /* taken; 0: the end */
    size_t rows; /* of these, those that match, for which `each` was called */
};

/* Calls `each` for at most `left` of these tasks; *ret_rows: for how many. */
static int show_some(const struct list *l, const uint64_t *ids, size_t n, size_t left, bool bodies,
                     int (*each)(const struct task *t, void *arg), void *arg, size_t *ret_rows,
                     struct err *err)
{
    MEM_LOCAL struct task *tasks = mem_alloc(ROWS * sizeof *tasks);
    size_t count = 0;
    int rc = n ? read_tasks(l, ids, n, bodies, tasks, &count, err) : 0;

    *ret_rows = 0;
    for (size_t i = 0; rc >= 0 && i < n && *ret_rows < left; i++) {
        const struct task *t = bsearch(&ids[i], tasks, count, sizeof *tasks, order_ids);
        if (!t)
            continue;
        ++*ret_rows;
        rc = each(t, arg);
        if (rc)
            break;
        rc = 0;
    }
    for (size_t i = 0; i < count; i++)
        task_done(&tasks[i]);
    return rc;
}

/* Handles at most `most` tasks of the list, and calls `each` for at most `left`. */
static int handle_some(const struct list *l, size_t most, size_t left, bool bodies,
                       int (*each)(const struct task *t, void *arg), void *arg, struct handled *ret,
                       struct err *err)
{
    uint64_t ids[ROWS];
    size_t n = 0;
    int rc = 1;

    ret->rows = 0;
    while (n < most && (rc = task_keys_next(l->keys, &ids[n], err)) == 1)
        n++;
    if (rc >= 0)
        rc = show_some(l, ids, n, left, bodies, each, arg, &ret->rows, err);
    ret->keys = n;
    return rc;
}

static int list_by_index(struct db *db, const struct task_filter *f, bool bodies,
                         int (*each)(const struct task *t, void *arg), void *arg, struct err *err)
{
    struct list l = {.db = db, .f = f, .statuses = f->statuses ? f->statuses : TASK_ANY};
    struct handled done = {1, 0};
    size_t left = f->limit ? f->limit : SIZE_MAX, missed = 0;

    int rc = task_keys_new(&l.keys, db, f, l.statuses, err);
    while (rc == 0 && left && done.keys) {
        /* the more did not match, the more are looked at together */
        size_t most = MIN(left < ROWS ? left + 2 * missed : ROWS, bodies ? ROWS_WITH_BODIES : ROWS);
        if (f->search && missed >= f->search->most) {
            f->search->partial = true;
            break;
        }
        rc = handle_some(&l, most, left, bodies, each, arg, &done, err);
        left -= done.rows;
        missed += done.keys - done.rows;
    }
    if (f->search && !left && f->sort == SORT_ID_DESC)
        f->search->partial = false; /* none of the older ones belongs before these */
    task_keys_free(l.keys);
    return rc;
}

/* ---- orders without an index */

struct place {
    int64_t at;
    uint64_t id;
};

struct sorting {
    enum task_sort by;
    struct task_filter_search *search;
    struct place *items;
    size_t count, cap;
};

static int64_t place_of(const struct task *t, enum task_sort by)
{
    int64_t at = by == SORT_FINISHED ? t->finish_at : t->create_at;
    return by == SORT_LATE ? task_late_from(t) : at == TASK_TIME_NONE ? INT64_MAX : -at;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->id > y->id) - (x->id < y->id);
}

static int add_place(const struct task *t, void *arg)
{
    struct sorting *s = arg;

    if (s->search && s->count == s->search->most) {
        s->search->partial = true;
        return 1;
    }
    s->items = mem_room(s->items, s->count, &s->cap, sizeof *s->items);
    s->items[s->count++] = (struct place){place_of(t, s->by), t->id};
    return 0;
}

static int list_sorted(struct db *db, const struct task_filter *f, bool bodies,
                       int (*each)(const struct task *t, void *arg), void *arg, struct err *err)
{
    struct list l = {.db = db, .f = f, .statuses = f->statuses ? f->statuses : TASK_ANY};
    struct sorting s = {.by = f->sort, .search = f->search};
    struct task_filter near = *f;
    size_t left = f->limit ? f->limit : SIZE_MAX, rows;

    near.limit = 0;
    near.sort = f->sort == SORT_LATE       ? SORT_EXPECTED
                : f->sort == SORT_FINISHED ? SORT_EXPECTED_DESC
                                           : SORT_ID_DESC;
    /* reads by id, newest first */
    if (f->sort == SORT_CREATED && !f->since[TASK_FILTER_CREATED].set)
        near.since[TASK_FILTER_CREATED] = (struct task_filter_bound){true, .at = TASK_TIME_NONE};
    int rc = list_by_index(db, &near, false, add_place, &s, err);
    if (s.count)
        qsort(s.items, s.count, sizeof *s.items, compare_places);
    rc = MIN(rc, 0);
    for (size_t i = 0, n; rc == 0 && left && i < s.count; i += n, left -= rows) {
        uint64_t ids[ROWS];
        n = MIN(MIN(s.count - i, left), bodies ? ROWS_WITH_BODIES : ROWS);
        for (size_t k = 0; k < n; k++)
            ids[k] = s.items[i + k].id;
        rc = show_some(&l, ids, n, left, bodies, each, arg, &rows, err);
    }
    free(s.items);
    return rc;
}

int task_list(struct db *db, const struct task_filter *f, bool bodies,
              int (*each)(const struct task *t, void *arg), void *arg, struct err *err)
{
    return (f->sort < SORT_LATE ? list_by_index : list_sorted)(db, f, bodies, each, arg, err);
}

int task_list_count(struct db *db, unsigned statuses, uint64_t most, uint64_t *ret, struct err *err)
{
    *ret = 0;
    return sql_read(
        db, COLUMNS_ONE, sql_take_u64, ret, err,
        "SELECT COUNT(*) FROM (SELECT 1 FROM dq_task FORCE INDEX (due) WHERE ? LIMIT ?) x",
        SQL_STATUSES(statuses), SQL_ID(most));
}
