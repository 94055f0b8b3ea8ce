/*
 * tag_late.c - see tag_late.h.
 *
 * Tasks that come later in the index are late from their expected time or later: if the last one
 * that was read was due no earlier than the minimum, it is the minimum of all.
 */
#include "store/ask/tag_late.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <stdlib.h>
#include <sys/param.h>

#define TAGS_AT_ONCE 100 /* in one statement */
/* Tasks of a tag that are read if the first one was given a time in the past: so many times more
 * again and again, while there is time. A row costs up to 50 us, and so few of all tags are always
 * read. */
#define MORE 8
#define TAG_MOST (MORE * MORE * MORE * MORE)
/* To look at one tag costs the server as much as reading about this many tasks. */
#define TASKS_A_LOOK 4

struct reading {
    struct db *db;
    struct tag_info *infos; /* sorted */
    size_t count;
    uint64_t limit; /* tasks of a tag and level */
    size_t last;    /* the tag of the last row */
};

/* ---- the first due tasks of each tag */

/* With a placeholder of printf. */
/* clang-format off */
#define FIRST_COLUMNS(X)                \
    X(FIRST_TAG, "%zu")                 \
    X(FIRST_FROM, "MIN(late_from)")     \
    X(FIRST_LAST, "MAX(expected_time)") \
    X(FIRST_REFUSED, "MAX(refused)")    \
    X(FIRST_TASKS, "COUNT(*)")
/* clang-format on */
enum { FIRST_COLUMNS(COLUMNS_NAME) FIRST_COUNT };

static void take_first(const struct db_rows *r, void *arg)
{
    struct reading *w = arg;
    uint64_t at = db_u64(r, FIRST_TAG);
    int64_t from_at = sql_due(r, FIRST_FROM);
    bool more = at == w->last; /* of its levels */

    if (at >= w->count)
        db_refuse_row(r);
    if (at >= w->count || db_is_null(r, FIRST_FROM))
        return;
    struct tag_info *t = &w->infos[at];
    bool sampled = db_u64(r, FIRST_TASKS) >= w->limit && sql_due(r, FIRST_LAST) < from_at;
    t->late_from_at = more ? MIN(t->late_from_at, from_at) : from_at;
    t->refused = db_u64(r, FIRST_REFUSED) || (more && t->refused);
    t->late_sampled = sampled || (more && t->late_sampled);
    w->last = at;
}

static void put_first(struct buf *sql, const struct reading *w, size_t i, int level)
{
    buf_str(sql, "SELECT ");
    buf_printf(sql, COLUMNS_SELECT(FIRST_COLUMNS), i);
    sql_put(sql,
            " FROM (SELECT expected_time, " SQL_LATE_FROM(
                "") " AS late_from, " SQL_REFUSED
                    " AS refused FROM dq_task FORCE INDEX (due) WHERE status = ? AND tag = ?"
                    " AND expected_time <= UTC_TIMESTAMP(3) ORDER BY " SQL_DUE_ORDER(
                        "", "") " LIMIT ?) x",
            SQL_INT(sql_pending(level)), SQL_TAG(w->infos[i].tag), SQL_ID(w->limit));
}

static int run_first(struct reading *w, struct buf *sql, struct err *err)
{
    int rc = db_all(w->db, sql, FIRST_COUNT, take_first, w, err);

    buf_reset(sql);
    return rc;
}

static bool has_late(const struct tag_info *t)
{
    return t->late_from_at != TASK_TIME_NONE;
}

static bool is_unclear(const struct tag_info *t)
{
    return t->late_sampled;
}

static size_t count_tags(const struct reading *w, bool (*is_wanted)(const struct tag_info *))
{
    size_t n = 0;

    for (size_t i = 0; i < w->count; i++)
        n += is_wanted(&w->infos[i]);
    return n;
}

/* Reads the first `limit` tasks of each of these tags. */
static int read_first(struct reading *w, uint64_t limit, bool (*is_wanted)(const struct tag_info *),
                      struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    size_t parts = 0;
    int rc = 0;

    w->limit = limit;
    w->last = SIZE_MAX;
    for (size_t i = 0; rc == 0 && i < w->count; i++) {
        if (!is_wanted(&w->infos[i]))
            continue;
        for (int level = 0; level < TASK_LEVELS; level++) {
            if (!(w->infos[i].due_levels & TASK_LEVEL_BIT(level)))
                continue;
            buf_str(&sql, parts++ ? " UNION ALL " : "");
            put_first(&sql, w, i, level);
        }
        if (parts >= TAGS_AT_ONCE) {
            rc = run_first(w, &sql, err);
            parts = 0;
        }
    }
    if (rc == 0 && parts)
        rc = run_first(w, &sql, err);
    return rc;
}

/* ---- all due tasks in one statement */

/* clang-format off */
#define ALL_COLUMNS(X)     \
    X(ALL_TAG, "tag")      \
    X(ALL_FROM, "MIN(" SQL_LATE_FROM("") ")") \
    X(ALL_REFUSED, "MAX" SQL_REFUSED)
/* clang-format on */
enum { ALL_COLUMNS(COLUMNS_NAME) ALL_COUNT };

static void take_all(const struct db_rows *r, void *arg)
{
    const struct reading *w = arg;
    MEM_LOCAL char *tag = sql_dup_tag(r, ALL_TAG);
    struct tag_info *t = bsearch(&tag, w->infos, w->count, sizeof *t, order_names);

    if (t) {
        t->late_from_at = sql_due(r, ALL_FROM);
        t->refused = db_u64(r, ALL_REFUSED);
    }
}

/* Tags added since are left out. */
static int read_all(struct reading *w, struct err *err)
{
    return sql_all(w->db, ALL_COUNT, take_all, w, err,
                   "SELECT ? FROM dq_task FORCE INDEX (due) WHERE status " SQL_PENDING
                   " AND expected_time <= UTC_TIMESTAMP(3) GROUP BY tag",
                   SQL_PART(COLUMNS_SELECT(ALL_COLUMNS)));
}

int tag_late_read(struct db *db, struct tag_info *infos, size_t count, bool whole, int64_t most_ms,
                  struct err *err)
{
    struct reading w = {.db = db, .infos = infos, .count = count};
    size_t late = count_tags(&w, has_late);
    uint64_t due = 0;

    for (size_t i = 0; i < count; i++)
        due += infos[i].due;
    if (!late)
        return 0;
    if (whole && due <= late * TASKS_A_LOOK)
        return read_all(&w, err);

    const int64_t until_at = when_steady() + most_ms;
    bool (*wanted)(const struct tag_info *) = has_late;
    for (uint64_t limit = 1;; limit *= MORE) {
        int64_t begun_at = when_steady();
        int rc = read_first(&w, limit, wanted, err);
        int64_t now_at = when_steady();
        wanted = is_unclear;
        size_t unclear = count_tags(&w, wanted);
        if (rc < 0 || !unclear || limit == TAG_MOST ||
            (limit * MORE * unclear > TAG_MOST && now_at + (now_at - begun_at) * MORE > until_at))
            return rc;
    }
}
