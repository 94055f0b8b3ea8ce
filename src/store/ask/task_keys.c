/*
 * task_keys.c - see task_keys.h.
 *
 * The keys are a merge of cursors, each a sorted sequence of (expected time, id) that is read from
 * the database page by page: either one cursor per (status, tag), which is a range of the index
 * `due`; or one that walks the primary key; or one whose keys are loaded and sorted at once (by id,
 * by key, since, or of very many tags).
 *
 * Invariant: keys come out strictly ascending in the chosen order, so no task is shown twice, even
 * if other sessions change tasks meanwhile.
 */
#include "store/ask/task_keys.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/ask/tag_store.h"
#include "store/ask/task_match.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define PAGE_MIN 16
#define PAGE_MAX 500
#define PAGES_KEYS 200000 /* keys in memory, over all cursors */
#define FILL_CURSORS 100  /* in one statement */
/* Opening so many cursors costs the server as much as one count of tag_store_is_small. */
#define CURSORS_A_COUNT 8

struct cursor {
    int status; /* the value in the column */
    char *tag;  /* NULL: walks the primary key, any status */
    struct task_match m;
    size_t next;          /* m.keys[next] is the head */
    struct task_key last; /* read last */
    bool begun, end;      /* last is set; nothing follows the last of m.keys */
};

struct task_keys {
    struct db *db;
    const struct task_filter *f;
    unsigned statuses;
    struct cursor *cursors; /* a heap by head, once filled */
    size_t count, cap;
    size_t page;          /* 0: everything in one page */
    size_t together;      /* so many cursors, those of a tag, are filled by one statement */
    struct task_key last; /* returned last; id 0: none was */
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

static int compare_keys(const struct task_filter *f, const struct task_key *a,
                        const struct task_key *b)
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

static void sift_down(struct task_keys *k, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1, least = i;
        for (size_t c = child; c < child + 2 && c < k->count; c++) {
            const struct cursor *x = &k->cursors[c], *y = &k->cursors[least];
            if (compare_keys(k->f, &x->m.keys[x->next], &y->m.keys[y->next]) < 0)
                least = c;
        }
        if (least == i)
            return;
        struct cursor swap = k->cursors[i];
        k->cursors[i] = k->cursors[least];
        k->cursors[least] = swap;
        i = least;
    }
}

/* ---- cursors */

static struct cursor *cursor_add(struct task_keys *k, int status, const char *tag)
{
    MEM_ROOM(k->cursors, k->count, k->cap);
    struct cursor *c = &k->cursors[k->count++];
    *c = (struct cursor){.status = status, .tag = mem_strdup(tag)};
    return c;
}

static void cursor_done(struct cursor *c)
{
    free(c->tag);
    free(c->m.keys);
}

/* With a placeholder of printf. */
#define KEY_COLUMNS(X) X(KEY_CURSOR, "%zu") X(KEY_ID, "id") X(KEY_EXPECTED, "expected_time")
enum { KEY_COLUMNS(COLUMNS_NAME) KEY_COUNT };

/* Appends `(SELECT number, id, expected_time ... LIMIT page)`: the page behind c->last. */
static void put_page(struct buf *sql, const struct task_keys *k, size_t number,
                     const struct cursor *c)
{
    const bool desc = descending(k->f), id_order = by_id(k->f);

    buf_str(sql, "(SELECT ");
    buf_printf(sql, COLUMNS_SELECT(KEY_COLUMNS), number);
    if (c->tag)
        sql_put(sql, " FROM dq_task FORCE INDEX (due) WHERE status = ? AND tag = ?",
                SQL_INT(c->status), SQL_TAG(c->tag));
    else
        buf_str(sql, " FROM dq_task FORCE INDEX (PRIMARY) WHERE 1");
    task_filter_put_time(sql, k->f, TASK_FILTER_DUE);
    if (!k->f->search) /* else what does not match has to be counted */
        task_filter_put_row(sql, k->f);
    if (c->begun && !id_order)
        sql_put_due_beyond(sql, "", desc ? '<' : '>', db_put_stamp, c->last.expected, c->last.id);
    else if (c->begun)
        buf_printf(sql, " AND id %c %" PRIu64, desc ? '<' : '>', c->last.id);
    buf_printf(sql, " ORDER BY %s LIMIT %" PRIu64 ")",
               id_order ? desc ? "id DESC" : "id"
               : desc   ? SQL_DUE_ORDER("", " DESC")
                        : SQL_DUE_ORDER("", ""),
               /* within a UNION, ORDER BY needs a LIMIT to have an effect */
               k->page ? (uint64_t)k->page : (uint64_t)INT64_MAX);
}

struct filling {
    struct task_keys *k;
    size_t from, to;
};

static void take_key(const struct db_rows *r, void *arg)
{
    const struct filling *w = arg;
    const struct task_keys *k = w->k;
    uint64_t number = db_u64(r, KEY_CURSOR);

    if (number < w->from || number >= w->to || (k->page && k->cursors[number].m.count >= k->page)) {
        db_refuse_row(r);
        return;
    }
    struct cursor *c = &k->cursors[number];
    c->last = (struct task_key){db_stamp(r, KEY_EXPECTED), db_u64(r, KEY_ID)};
    c->begun = true;
    task_match_add(&c->m, c->last);
}

/* Reads the next pages of cursors[from .. to-1], which are used up. */
static int fill(struct task_keys *k, size_t from, size_t to, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    for (size_t i = from; i < to; i++) {
        if (i > from)
            buf_str(&sql, " UNION ALL ");
        put_page(&sql, k, i, &k->cursors[i]);
        k->cursors[i].m.count = k->cursors[i].next = 0;
    }
    int rc = db_all_streamed(k->db, &sql, KEY_COUNT, take_key, &(struct filling){k, from, to}, err);
    for (size_t i = from; i < to; i++)
        k->cursors[i].end = !k->page || k->cursors[i].m.count < k->page;
    return rc;
}

/* ---- which cursors a filter needs */

/* Appends the condition of f->pause. */
static void put_pause(struct buf *sql, const struct task_keys *k, const char *tag)
{
    if (k->f->pause == TASK_FILTER_ALL_TAGS)
        return;
    buf_printf(sql,
               " AND %s(EXISTS " SQL_PAUSE_OF_NAME "%s) OR EXISTS " SQL_PAUSE_OF_GLOB
               "TRIM(TRAILING ' ' FROM %s)" SQL_LIKE_GLOB "))",
               k->f->pause == TASK_FILTER_PAUSED ? "" : "NOT ", tag, tag);
}

#define RANGE_COLUMNS(X) X(RANGE_STATUS, "status") X(RANGE_TAG, "tag")
enum { RANGE_COLUMNS(COLUMNS_NAME) RANGE_COUNT };

static void take_range(const struct db_rows *r, void *arg)
{
    struct task_keys *k = arg;
    const char *glob = k->f->tag_glob;
    MEM_LOCAL char *tag = sql_dup_tag(r, RANGE_TAG);

    if (k->statuses & TASK_BIT(sql_status(r, RANGE_STATUS)) && (!glob || task_tag_glob(glob, tag)))
        cursor_add(k, db_int(r, RANGE_STATUS, 0), tag);
}

/* One for each value of status that is wanted, whether there are such tasks or not. */
static void add_tag(struct task_keys *k, const char *tag)
{
    const size_t count = k->count;

    for (int s = 0; s < SQL_STATUS_COUNT; s++)
        if (k->statuses & TASK_BIT(sql_status_of((uint64_t)s)))
            cursor_add(k, s, tag);
    k->together = k->count - count;
}

static void take_tag(const struct db_rows *r, void *arg)
{
    struct task_keys *k = arg;
    MEM_LOCAL char *tag = sql_dup_tag(r, COLUMNS_ONLY);

    if (!k->f->tag_glob || task_tag_glob(k->f->tag_glob, tag))
        add_tag(k, tag);
}

/* A task changes its state, never its tag: nothing is lost between this statement and those that
 * read the ranges, if each reads all states of a tag. */
static int add_tags(struct task_keys *k, struct err *err)
{
    BUF_LOCAL struct buf pause = BUF_INIT;

    put_pause(&pause, k, "r.tag");
    return sql_all(k->db, COLUMNS_ONE, take_tag, k, err,
                   "SELECT tag FROM (SELECT status, tag FROM dq_task FORCE INDEX (due)"
                   " GROUP BY status, tag) r WHERE 1? GROUP BY tag",
                   SQL_PART(pause.data));
}

static int add_ranges(struct task_keys *k, struct err *err)
{
    const char *glob = k->f->tag_glob;
    BUF_LOCAL struct buf sql = BUF_INIT;
    int rc = 0;

    const bool one = glob && !task_filter_has_wildcard(glob), odd = one || k->f->whole;
    if (one)
        add_tag(k, glob);
    else if (odd)
        rc = add_tags(k, err);
    if (rc < 0 || (odd && !(k->statuses & TASK_BIT(TASK_STATUS_UNKNOWN))))
        return rc;
    buf_printf(&sql, "SELECT %s FROM (SELECT status, tag FROM dq_task FORCE INDEX (due)",
               COLUMNS_SELECT(RANGE_COLUMNS));
    if (odd)
        buf_str(&sql, " WHERE status >= " TEXT_OF(SQL_STATUS_COUNT));
    buf_str(&sql, " GROUP BY status, tag) r WHERE 1"); /* a loose index scan */
    put_pause(&sql, k, "r.tag");
    return db_all_streamed(k->db, &sql, RANGE_COUNT, take_range, k, err);
}

static void drop_cursors(struct task_keys *k)
{
    for (size_t i = 0; i < k->count; i++)
        cursor_done(&k->cursors[i]);
    k->count = 0;
}

/* The one cursor of keys that are all loaded. */
static void add_loaded(struct task_keys *k, struct task_match m)
{
    struct cursor *c = cursor_add(k, 0, NULL);

    c->m = m;
    c->end = true;
    if (m.count)
        qsort_r(m.keys, m.count, sizeof *m.keys, compare_keys_r, (void *)(uintptr_t)k->f);
}

/* Instead of a cursor for each range: all keys of these states at once. */
static int load_ranges(struct task_keys *k, struct err *err)
{
    BUF_LOCAL struct buf from = BUF_INIT;
    struct task_match m = {0};

    drop_cursors(k);
    sql_put(&from, "dq_task FORCE INDEX (due) WHERE ?", SQL_STATUSES(k->statuses));
    task_filter_put_time(&from, k->f, TASK_FILTER_DUE);
    if (!k->f->search) /* as put_page */
        task_filter_put_row(&from, k->f);
    put_pause(&from, k, "dq_task.tag");
    int rc = task_match_read(k->db, k->f, &from, &m, err);
    add_loaded(k, m);
    return rc;
}

/* Sorted by id, a range of `due` must be read to its end for each page, so one page has to hold all
 * that is wanted; and it has to if nothing may be lost between two pages, unless few are wanted of
 * rows that must be read. */
static size_t page_size(const struct task_keys *k, bool ranges)
{
    const struct task_filter *f = k->f;
    size_t cursors = MAX(k->count, 1), page = PAGES_KEYS / cursors;
    bool all_match = !task_filter_needs_row(f);

    if (ranges && f->whole && !by_id(f) && !all_match && f->limit)
        return MAX(2 * f->limit, PAGE_MAX);
    if (ranges && (by_id(f) || f->whole))
        return all_match ? f->limit : 0;
    if (all_match && f->limit && f->limit < PAGE_MAX && 2 * f->limit / cursors < page)
        page = ranges ? 2 * f->limit / cursors : f->limit;
    return MIN(MAX(page, PAGE_MIN), PAGE_MAX);
}

/* Reads the first page of each cursor; or everything, if the table is small for so many of them. */
static int fill_all(struct task_keys *k, bool ranges, struct err *err)
{
    const size_t some = FILL_CURSORS - FILL_CURSORS % MAX(k->together, 1);
    int rc = ranges ? tag_store_is_small(k->db, k->count / CURSORS_A_COUNT, err) : 0;

    if (rc == 1)
        return load_ranges(k, err);
    k->page = page_size(k, ranges);
    for (size_t i = 0; rc == 0 && i < k->count; i += some)
        rc = fill(k, i, MIN(i + some, k->count), err);
    return rc;
}

/* Opens the cursors, and makes them a heap. */
static int open_cursors(struct task_keys *k, struct err *err)
{
    const struct task_filter *f = k->f;
    struct task_match m = {0};

    int rc = task_match_load(k->db, f, k->statuses, &m, err);
    if (rc) {
        add_loaded(k, m);
    } else {
        bool walk = by_id(f) && k->statuses == TASK_ANY && !f->tag_glob &&
                    !f->since[TASK_FILTER_DUE].set && !f->before[TASK_FILTER_DUE].set;
        if (walk)
            cursor_add(k, 0, NULL);
        else
            rc = add_ranges(k, err);
        if (rc == 0)
            rc = fill_all(k, !walk, err);
    }
    if (rc < 0)
        return rc;
    for (size_t i = k->count; i-- > 0;) {
        if (k->cursors[i].m.count == 0) {
            cursor_done(&k->cursors[i]);
            k->cursors[i] = k->cursors[--k->count];
        }
    }
    for (size_t i = k->count / 2; i-- > 0;)
        sift_down(k, i);
    return 0;
}

int task_keys_new(struct task_keys **ret, struct db *db, const struct task_filter *f,
                  unsigned statuses, struct err *err)
{
    struct task_keys *k = mem_zero(1, sizeof *k);

    k->db = db;
    k->f = f;
    k->statuses = statuses;
    int rc = open_cursors(k, err);
    if (rc < 0)
        task_keys_free(k);
    else
        *ret = k;
    return rc;
}

void task_keys_free(struct task_keys *k)
{
    if (!k)
        return;
    drop_cursors(k);
    free(k->cursors);
    free(k);
}

/* Takes the least key of all cursors. 1, or 0 at the end. */
static int take_least(struct task_keys *k, struct task_key *ret, struct err *err)
{
    if (!k->count)
        return 0;
    struct cursor *top = &k->cursors[0];
    *ret = top->m.keys[top->next++];
    if (top->next == top->m.count && !top->end) {
        int rc = fill(k, 0, 1, err);
        if (rc < 0)
            return rc;
    }
    if (top->next == top->m.count) {
        cursor_done(top);
        *top = k->cursors[--k->count];
    }
    sift_down(k, 0);
    return 1;
}

int task_keys_next(struct task_keys *k, uint64_t *ret_id, struct err *err)
{
    struct task_key key;
    int rc;

    do
        rc = take_least(k, &key, err);
    while (rc == 1 && k->last.id &&
           compare_keys(k->f, &key, &k->last) <= 0); /* it moved to another range meanwhile */
    if (rc != 1)
        return rc;
    k->last = key;
    *ret_id = key.id;
    return 1;
}
