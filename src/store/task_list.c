/*
 * task_list.c - tasks that match a filter, in a total order.
 *
 * A list is a merge of cursors, each a sorted sequence of (expected time, id) that is read from the
 * database page by page: either one cursor per (status, tag), which is a range of the index `due`;
 * or one that walks the primary key; or one whose keys are loaded and sorted at once (by id, by
 * key, since). The rows are then read by primary key.
 *
 * Invariant: keys come out strictly ascending in the chosen order, so no task is shown twice, even
 * if other sessions change tasks meanwhile.
 */
#include "store/task_list.h"
#include "base/mem.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/sql.h"
#include "store/task_floor.h"
#include "store/task_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define PAGE_MIN 16
#define PAGE_MAX 500
#define PAGES_KEYS 200000 /* keys in memory, over all cursors */
#define FILL_CURSORS 100  /* in one statement */
#define ROWS 500          /* read at once; fewer with bodies */
#define ROWS_WITH_BODIES 20
#define SINCE_SLACK_MS (INT64_C(3600) * 1000)

struct key {
    uint64_t expected; /* db_stamp: invalid times, too, have a place in the server's order */
    uint64_t id;
};

struct cursor {
    int status;
    char *tag; /* NULL: walks the primary key, any status */
    struct key *keys;
    size_t count, cap, next; /* keys[next] is the head */
    struct key last;         /* read last */
    bool begun, end;         /* last is set; nothing follows keys[count - 1] */
};

struct list {
    struct db *db;
    const struct task_filter *f;
    unsigned statuses;
    struct cursor *cursors; /* a heap by head, once filled */
    size_t count, cap;
    size_t page; /* 0: everything in one page */
};

/* ---- order */

static bool by_id(const struct task_filter *f)
{
    return f->sort == SORT_ID || f->sort == SORT_ID_DESC;
}

static bool descending(const struct task_filter *f)
{
    return f->sort == SORT_EXPECTED_DESC || f->sort == SORT_ID_DESC;
}

static int compare_keys(const struct task_filter *f, const struct key *a, const struct key *b)
{
    int c = 0;
    if (!by_id(f))
        c = a->expected < b->expected ? -1 : a->expected > b->expected;
    if (!c)
        c = a->id < b->id ? -1 : a->id > b->id;
    return descending(f) ? -c : c;
}

static int compare_keys_r(const void *a, const void *b, void *f)
{
    return compare_keys(f, a, b);
}

static void sift_down(struct list *l, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1, least = i;
        for (size_t c = child; c < child + 2 && c < l->count; c++) {
            const struct cursor *x = &l->cursors[c], *y = &l->cursors[least];
            if (compare_keys(l->f, &x->keys[x->next], &y->keys[y->next]) < 0)
                least = c;
        }
        if (least == i)
            return;
        struct cursor swap = l->cursors[i];
        l->cursors[i] = l->cursors[least];
        l->cursors[least] = swap;
        i = least;
    }
}

/* ---- cursors */

static struct cursor *cursor_add(struct list *l, int status, const char *tag)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->cursors = mem_resize(l->cursors, l->cap, sizeof *l->cursors);
    }
    struct cursor *c = &l->cursors[l->count++];
    *c = (struct cursor){.status = status, .tag = mem_strdup(tag)};
    return c;
}

static void cursor_done(struct cursor *c)
{
    free(c->tag);
    free(c->keys);
}

static void cursor_push(struct cursor *c, struct key key)
{
    if (c->count == c->cap) {
        c->cap = c->cap ? 2 * c->cap : PAGE_MIN;
        c->keys = mem_resize(c->keys, c->cap, sizeof *c->keys);
    }
    c->keys[c->count++] = c->last = key;
    c->begun = true;
}

/* With a placeholder of printf. */
#define KEY_COLUMNS(X) X(KEY_CURSOR, "%zu") X(KEY_ID, "id") X(KEY_EXPECTED, "expected_time")
enum { KEY_COLUMNS(COLUMNS_NAME) KEY_COUNT };

/* Appends `(SELECT number, id, expected_time ... LIMIT page)`: the page behind c->last. */
static void put_page(struct buf *sql, const struct list *l, size_t number, const struct cursor *c)
{
    const bool desc = descending(l->f), id_order = by_id(l->f);

    buf_str(sql, "(SELECT ");
    buf_printf(sql, COLUMNS_SELECT(KEY_COLUMNS), number);
    buf_printf(sql, " FROM dq_task FORCE INDEX (%s) WHERE ", c->tag ? "due" : "PRIMARY");
    if (c->tag) {
        buf_printf(sql, "status = %d AND tag = ", c->status);
        sql_put_tag(sql, c->tag);
    } else {
        buf_str(sql, "1");
    }
    task_filter_put_time(sql, l->f, TASK_FILTER_DUE);
    if (!l->f->search) /* else what does not match has to be counted */
        task_filter_put_row(sql, l->f);
    if (c->begun && !id_order) {
        buf_str(sql, desc ? " AND expected_time <= " : " AND expected_time >= ");
        db_put_stamp(sql, c->last.expected);
        buf_str(sql, desc ? " AND (expected_time < " : " AND (expected_time > ");
        db_put_stamp(sql, c->last.expected);
        buf_printf(sql, " OR id %c %" PRIu64 ")", desc ? '<' : '>', c->last.id);
    } else if (c->begun) {
        buf_printf(sql, " AND id %c %" PRIu64, desc ? '<' : '>', c->last.id);
    }
    buf_str(sql, " ORDER BY ");
    if (!id_order)
        buf_printf(sql, "expected_time%s, ", desc ? " DESC" : "");
    buf_printf(sql, "id%s", desc ? " DESC" : "");
    buf_printf(sql, " LIMIT %" PRIu64 ")",
               /* within a UNION, ORDER BY needs a LIMIT to have an effect */
               l->page ? (uint64_t)l->page : (uint64_t)INT64_MAX);
}

struct filling {
    struct list *l;
    size_t from, to;
};

static int take_key(const struct db_rows *r, void *arg, struct err *err)
{
    const struct filling *w = arg;
    const struct list *l = w->l;
    uint64_t number = db_u64(r, KEY_CURSOR);

    if (number < w->from || number >= w->to || (l->page && l->cursors[number].count >= l->page))
        return sql_odd_row(l->db, err);
    cursor_push(&l->cursors[number], (struct key){db_stamp(r, KEY_EXPECTED), db_u64(r, KEY_ID)});
    return 0;
}

/* Reads the next pages of cursors[from .. to-1], which are used up. */
static int fill(struct list *l, size_t from, size_t to, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (size_t i = from; i < to; i++) {
        if (i > from)
            buf_str(&sql, " UNION ALL ");
        put_page(&sql, l, i, &l->cursors[i]);
        l->cursors[i].count = l->cursors[i].next = 0;
    }
    int rc =
        db_each_streamed(l->db, &sql, KEY_COUNT, take_key, &(struct filling){l, from, to}, err);
    buf_done(&sql);
    for (size_t i = from; i < to; i++)
        l->cursors[i].end = !l->page || l->cursors[i].count < l->page;
    return rc;
}

/* ---- which cursors a filter needs */

#define MATCH_COLUMNS(X) X(MATCH_ID, "id") X(MATCH_EXPECTED, "expected_time") X(MATCH_TAG, "tag")
enum { MATCH_COLUMNS(COLUMNS_NAME) MATCH_COUNT };

static int take_match(const struct db_rows *r, void *arg, struct err *err)
{
    struct list *l = arg;
    char *tag = l->f->tag_glob ? sql_dup_tag(r, MATCH_TAG) : NULL;

    (void)err;
    if (!tag || task_tag_glob(l->f->tag_glob, tag))
        cursor_push(&l->cursors[0], (struct key){db_stamp(r, MATCH_EXPECTED), db_u64(r, MATCH_ID)});
    free(tag);
    return 0;
}

static int load_where(struct list *l, const struct buf *where, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM dq_task ", COLUMNS_SELECT(MATCH_COLUMNS));
    buf_add(&sql, where->data, where->len);
    task_filter_put(&sql, l->f, l->statuses);
    int rc = db_each_streamed(l->db, &sql, MATCH_COUNT, take_match, l, err);
    buf_done(&sql);
    return rc;
}

/* Raises *floor so far that about search->most tasks are left. */
static int raise_floor(struct list *l, uint64_t *floor, struct err *err)
{
    struct task_filter_search *search = l->f->search;
    struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= %" PRIu64
               " ORDER BY id DESC LIMIT %zu, 1",
               *floor, search->most);
    int rc = db_first(l->db, &sql, COLUMNS_ONE, sql_take_u64, floor, err);
    buf_done(&sql);
    if (rc < 0)
        return rc;
    search->partial = rc == 1;
    *floor += search->partial;
    return 0;
}

/* Tasks with ids from about the first one that was created since then. */
static int load_since(struct list *l, struct err *err)
{
    const struct task_filter *f = l->f;
    struct buf where = BUF_INIT;
    uint64_t floor;

    int rc = task_floor_id(l->db, f->since[TASK_FILTER_CREATED].at - SINCE_SLACK_MS, &floor, err);
    if (rc == 0 && f->search)
        rc = raise_floor(l, &floor, err);
    if (rc == 0) {
        buf_printf(&where, "FORCE INDEX (PRIMARY) WHERE id >= %" PRIu64, floor);
        rc = load_where(l, &where, err);
    }
    buf_done(&where);
    return rc;
}

/* By ids, by key, or since: few enough to load all keys at once. */
static int load(struct list *l, struct err *err)
{
    const struct task_filter *f = l->f;
    struct cursor *c = cursor_add(l, 0, NULL);
    struct buf where = BUF_INIT;
    int rc = 0;

    c->end = true;
    for (size_t i = 0; f->ids && rc == 0 && i < f->id_count; i += ROWS) {
        buf_reset(&where);
        buf_str(&where, "FORCE INDEX (PRIMARY) WHERE ");
        sql_put_ids(&where, "", f->ids + i, f->id_count - i < ROWS ? f->id_count - i : ROWS);
        rc = load_where(l, &where, err);
    }
    if (!f->ids && f->key) {
        buf_str(&where, "FORCE INDEX (live_key) WHERE 1"); /* task_filter_put adds the key */
        rc = load_where(l, &where, err);
    } else if (!f->ids) {
        rc = load_since(l, err);
    }
    buf_done(&where);
    if (c->count)
        qsort_r(c->keys, c->count, sizeof *c->keys, compare_keys_r, (void *)(uintptr_t)f);
    return rc;
}

#define RANGE_COLUMNS(X) X(RANGE_STATUS, "status") X(RANGE_TAG, "tag")
enum { RANGE_COLUMNS(COLUMNS_NAME) RANGE_COUNT };

static int take_range(const struct db_rows *r, void *arg, struct err *err)
{
    struct list *l = arg;
    const char *glob = l->f->tag_glob;
    char *tag = sql_dup_tag(r, RANGE_TAG);

    (void)err;
    if (l->statuses & TASK_BIT(sql_status(r, RANGE_STATUS)) && (!glob || task_tag_glob(glob, tag)))
        cursor_add(l, db_int(r, RANGE_STATUS, 0), tag);
    free(tag);
    return 0;
}

static int add_ranges(struct list *l, struct err *err)
{
    const char *glob = l->f->tag_glob;
    struct buf sql = BUF_INIT;

    const bool one = glob && !task_filter_has_wildcard(glob);
    for (int s = 0; one && s < TASK_STATUS_COUNT; s++)
        if (l->statuses & TASK_BIT(s))
            cursor_add(l, s, glob);
    if (one && !(l->statuses & TASK_BIT(TASK_STATUS_UNKNOWN)))
        return 0;
    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (due)", COLUMNS_SELECT(RANGE_COLUMNS));
    if (one)
        buf_printf(&sql, " WHERE status >= %d", (int)TASK_STATUS_COUNT);
    buf_str(&sql, " GROUP BY status, tag"); /* a loose index scan */
    int rc = db_each_streamed(l->db, &sql, RANGE_COUNT, take_range, l, err);
    buf_done(&sql);
    return rc;
}

/* Sorted by id, a range of `due` must be read to its end for each page, so one page has to hold all
 * that is wanted. */
static size_t page_size(const struct list *l, bool ranges)
{
    const struct task_filter *f = l->f;
    size_t page = PAGES_KEYS / (l->count ? l->count : 1);

    bool all_match = !task_filter_needs_row(f);

    if (ranges && by_id(f))
        return all_match ? f->limit : 0;
    if (all_match && f->limit && f->limit < PAGE_MAX &&
        2 * f->limit / (l->count ? l->count : 1) < page)
        page = ranges ? 2 * f->limit / (l->count ? l->count : 1) : f->limit;
    return page < PAGE_MIN ? PAGE_MIN : page > PAGE_MAX ? PAGE_MAX : page;
}

/* Opens the cursors, reads their first pages, and makes them a heap. */
static int list_open(struct list *l, struct err *err)
{
    const struct task_filter *f = l->f;
    int rc = 0;

    if (f->ids || f->key || f->since[TASK_FILTER_CREATED].set) {
        rc = load(l, err);
    } else {
        bool walk = by_id(f) && l->statuses == TASK_ANY && !f->tag_glob &&
                    !f->since[TASK_FILTER_DUE].set && !f->before[TASK_FILTER_DUE].set;
        if (walk)
            cursor_add(l, 0, NULL);
        else
            rc = add_ranges(l, err);
        l->page = page_size(l, !walk);
        for (size_t i = 0; rc == 0 && i < l->count; i += FILL_CURSORS)
            rc = fill(l, i, MIN(i + FILL_CURSORS, l->count), err);
    }
    if (rc < 0)
        return rc;
    for (size_t i = l->count; i-- > 0;) {
        if (l->cursors[i].count == 0) {
            cursor_done(&l->cursors[i]);
            l->cursors[i] = l->cursors[--l->count];
        }
    }
    for (size_t i = l->count / 2; i-- > 0;)
        sift_down(l, i);
    return 0;
}

static void list_close(struct list *l)
{
    for (size_t i = 0; i < l->count; i++)
        cursor_done(&l->cursors[i]);
    free(l->cursors);
}

/* Takes the least key of all cursors. 1, or 0 at the end. */
static int list_next(struct list *l, struct key *ret, struct err *err)
{
    if (!l->count)
        return 0;
    struct cursor *top = &l->cursors[0];
    *ret = top->keys[top->next++];
    if (top->next == top->count && !top->end) {
        int rc = fill(l, 0, 1, err);
        if (rc < 0)
            return rc;
    }
    if (top->next == top->count) {
        cursor_done(top);
        *top = l->cursors[--l->count];
    }
    sift_down(l, 0);
    return 1;
}

/* ---- rows */

static int compare_tasks(const void *a, const void *b)
{
    const struct task *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

struct reading {
    struct task *items;
    size_t count, most;
    unsigned columns;
};

static int take_task(const struct db_rows *r, void *arg, struct err *err)
{
    struct reading *w = arg;

    (void)err;
    if (w->count == w->most)
        return 1;
    task_read(r, w->columns, &w->items[w->count++]);
    return 0;
}

/* Reads those of the tasks ids[0..n-1] that still match, sorted by id; *ret_count is their number.
 */
static int read_tasks(struct list *l, const uint64_t *ids, size_t n, bool bodies, struct task *ret,
                      size_t *ret_count, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct reading read = {ret, 0, n,
                           TASK_READ_SHORT | (bodies ? TASK_READ_BIT(TASK_READ_BODY) : 0)};

    buf_str(&sql, "SELECT ");
    task_read_put_columns(&sql, "t.", read.columns);
    buf_str(&sql, " FROM dq_task t FORCE INDEX (PRIMARY) WHERE ");
    sql_put_ids(&sql, "", ids, n);
    task_filter_put(&sql, l->f, l->statuses);
    int rc = db_each(l->db, &sql, task_read_count(read.columns), take_task, &read, err);
    buf_done(&sql);
    qsort(ret, read.count, sizeof *ret, compare_tasks);
    *ret_count = read.count;
    return rc;
}

/* What became of some tasks of the list. */
struct told {
    size_t keys; /* taken; 0: the end */
    size_t rows; /* of these, those that match, for which `each` was called */
};

/* Handles at most `most` tasks of the list, and calls `each` for at most `left`. */
static int tell_some(struct list *l, struct key *last, size_t most, size_t left, bool bodies,
                     int (*each)(const struct task *t, void *arg), void *arg, struct told *ret,
                     struct err *err)
{
    uint64_t ids[ROWS];
    struct task *tasks = mem_alloc(ROWS * sizeof *tasks);
    size_t n = 0, count = 0;
    struct key key;
    int rc = 1;

    ret->rows = 0;
    while (n < most && (rc = list_next(l, &key, err)) == 1) {
        if (last->id &&
            compare_keys(l->f, &key, last) <= 0) /* it moved to another range meanwhile */
            continue;
        *last = key;
        ids[n++] = key.id;
    }
    if (rc >= 0 && n)
        rc = read_tasks(l, ids, n, bodies, tasks, &count, err);
    for (size_t i = 0; rc >= 0 && i < n && ret->rows < left; i++) {
        const struct task *t =
            bsearch(&(struct task){.id = ids[i]}, tasks, count, sizeof *tasks, compare_tasks);
        if (!t)
            continue;
        ret->rows++;
        rc = each(t, arg);
        if (rc)
            break;
        rc = 0;
    }
    for (size_t i = 0; i < count; i++)
        task_done(&tasks[i]);
    free(tasks);
    ret->keys = n;
    return rc;
}

int task_list(struct db *db, const struct task_filter *f, bool bodies,
              int (*each)(const struct task *t, void *arg), void *arg, struct err *err)
{
    struct list l = {.db = db, .f = f, .statuses = f->statuses ? f->statuses : TASK_ANY};
    struct key last = {0, 0};
    struct told told = {1, 0};
    size_t left = f->limit ? f->limit : SIZE_MAX, missed = 0;

    int rc = list_open(&l, err);
    while (rc == 0 && left && told.keys) {
        /* the more did not match, the more are looked at together */
        size_t most = MIN(left < ROWS ? left + 2 * missed : ROWS, bodies ? ROWS_WITH_BODIES : ROWS);
        if (f->search && missed >= f->search->most) {
            f->search->partial = true;
            break;
        }
        rc = tell_some(&l, &last, most, left, bodies, each, arg, &told, err);
        left -= told.rows;
        missed += told.keys - told.rows;
    }
    if (f->search && !left && f->sort == SORT_ID_DESC)
        f->search->partial = false; /* none of the older ones belongs before these */
    list_close(&l);
    return rc;
}
