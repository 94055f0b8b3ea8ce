/*
 * claim_find.c - see claim_find.h. Invariant: candidates are read through the index `due`, and
 * without locks unless locked rows are skipped.
 */
#include "store/work/claim_find.h"
#include "base/company.h"
#include "base/text.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_latest.h"
#include "store/row/limit_row.h"
#include "store/row/rows.h"
#include "store/row/sql.h"
#include "store/row/task_read.h"

#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

#define SMALL_BODY 16384 /* loaded by the claim */

#define CLAIM_COLUMNS                                                                              \
    (TASK_READ_BIT(TASK_READ_ID) | TASK_READ_BIT(TASK_READ_VERSION) |                              \
     TASK_READ_BIT(TASK_READ_TAG) | TASK_READ_BIT(TASK_READ_KEY) |                                 \
     TASK_READ_BIT(TASK_READ_BODY_SIZE) | TASK_READ_BIT(TASK_READ_RUN) |                           \
     TASK_READ_BIT(TASK_READ_ATTEMPT) | TASK_READ_BIT(TASK_READ_MAX_ATTEMPTS) |                    \
     TASK_READ_BIT(TASK_READ_DELAY) | TASK_READ_BIT(TASK_READ_EXPECTED) |                          \
     TASK_READ_BIT(TASK_READ_EXPIRES) | TASK_READ_BIT(TASK_READ_MISSED) |                          \
     TASK_READ_BIT(TASK_READ_CREATE))
/* after the others */
#define SMALL_BODY_COLUMN                                                                          \
    ", IF(LENGTH(b.message_body) <= " TEXT_OF(SMALL_BODY) ", b.message_body, NULL)"
/* A small body is read by a join with the same row, which is skipped for a long one or one of
 * unknown size: NULL as a key reads nothing. body_size may be wrong: a body that is longer after
 * all is not loaded. */
#define SMALL_BODY_JOIN                                                                            \
    " LEFT JOIN dq_task b FORCE INDEX (PRIMARY) ON b.id = IF(c.body_size <= ?, c.id, NULL)"
#define NO_BODY (-1) /* instead of SMALL_BODY: no row is read again */
/* For a batch: whether the last attempt ended with a verdict on this task, or was its producer's.
 * If it ended with its process, there is an exit code or a signal; if with its dqd, no token; and
 * if it was claimed and given back since, that is not known any more. */
#define OWN_VERDICT                                                                                \
    "(c.claim_token IS NULL) = (c.execution_time IS NULL)"                                         \
    " AND c.exit_code IS NULL AND c.`signal` IS NULL"
/* The columns of read_claimed: a task, its body, and when it was moved (if it is pending), and its
 * own verdict. If the statement also finds out when the next task is due, it returns one more row,
 * and more columns, which are NULL in the other rows, as all others are in this one. */
/* clang-format off */
#define NOW_COLUMNS(X)   \
    SQL_NOW(X, NEXT_NOW) \
    X(NEXT_SPENT, "TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))")
/* clang-format on */
enum {
    BODY_COLUMN = __builtin_popcount(CLAIM_COLUMNS),
    MOVED_COLUMN,
    OWN_COLUMN,
    EXPIRED_COLUMN,
    NEXT_AT,
    NEXT_GUARDED,
    NOW_COLUMNS(COLUMNS_NAME) COLUMN_COUNT
};
#define NO_NEXT_COLUMNS ", NULL, NULL, NULL, NULL, NULL"

/* Appends the SELECT of what read_claimed reads, for tasks with that value of status. Ends with
 * "AND ". */
static void put_select(struct buf *sql, const struct claim_ask *ask, bool next, unsigned status)
{
    buf_str(sql, "SELECT ");
    task_read_put_columns(sql, "c.", CLAIM_COLUMNS);
    sql_put(sql,
            SMALL_BODY_COLUMN
            ", ?, ?, ? <= UTC_TIMESTAMP(3)? FROM dq_task c FORCE INDEX (due)" SMALL_BODY_JOIN
            " WHERE c.status = ? AND ",
            SQL_PART(status != TASK_RUNNING ? SQL_MOVED("c.") : "NULL"),
            SQL_PART(ask->batch > 1 ? OWN_VERDICT : "NULL"), SQL_EXPIRES("c.", ask->expires_ms),
            SQL_PART(next ? NO_NEXT_COLUMNS : NULL),
            SQL_INT(ask->without_bodies ? NO_BODY : SMALL_BODY), SQL_INT(status));
}

bool claim_find_expire(struct claim_expired *e, const struct claim_ask *ask,
                       const struct claim_ref *ref, size_t body_size)
{
    if (e->count == ROWS_STEP || !rows_take(&e->bytes, rows_weight(body_size, ask->row_us)))
        return false;
    e->refs[e->count++] = *ref;
    return true;
}

/* saw NULL: tasks that run, whose time has come. next: the statement returns the row about the next
 * task, too. */
struct claimed {
    struct task_array *to;
    const struct claim_ask *ask;
    struct claim_seen *saw;
    bool next;
    enum task_level level;
    struct peek_floor *last; /* becomes that of the last task; NULL: not asked for */
};

static void read_claimed(const struct db_rows *r, void *arg)
{
    const struct claimed *x = arg;

    if (x->next && !db_is_null(r, NEXT_NOW)) {
        x->saw->next_known = true;
        x->saw->next_at = db_time(r, NEXT_AT);
        x->saw->guarded = db_u64(r, NEXT_GUARDED) == 1;
        x->saw->now_us = sql_now_us(r, NEXT_NOW);
        x->saw->late_us = x->saw->now_us + db_i64(r, NEXT_SPENT, 0);
        return;
    }
    struct task *t = task_array_add(x->to);
    task_read(r, CLAIM_COLUMNS, t);
    t->level = x->level;
    if (x->last)
        *x->last = (struct peek_floor){MAX(t->expected_at, 1), t->id};
    if (x->saw && db_u64(r, EXPIRED_COLUMN) == 1) {
        x->saw->expired++;
        if (x->ask->expired)
            claim_find_expire(x->ask->expired, x->ask, &(struct claim_ref){t->id, t->version},
                              t->body_size);
        task_done(t);
        x->to->count--;
        return;
    }
    t->update_at = db_time(r, MOVED_COLUMN);
    t->late_from_at = task_late_from(t);
    if (t->expires_at == TASK_TIME_NONE && x->ask->expires_ms)
        t->expires_at = t->late_from_at + x->ask->expires_ms;
    t->company = company_most(x->ask->batch, t->attempt,
                              t->max_attempts ? t->max_attempts : x->ask->max_attempts,
                              db_u64(r, OWN_COLUMN) == 1);
    task_read_body(r, BODY_COLUMN, t);
    if (!x->ask->without_bodies && !t->body && t->body_size <= SMALL_BODY) {
        t->body_size = SIZE_MAX;
        x->to->lies = true;
    }
}

static int read_list(struct db *db, const struct buf *sql, const struct claimed *x, struct err *err)
{
    struct claimed arg = *x;

    return db_all(db, sql, x->next ? COLUMN_COUNT : NEXT_AT, read_claimed, &arg, err);
}

/* A value: the name. */
#define STRICT "(SELECT 1 FROM dq_limit g WHERE " LIMIT_ROW_STRICT("g.") " AND g.name = ?)"

static const char *limit_of(const struct claim_ask *ask)
{
    return ask->limit_name ? ask->limit_name : ask->tag;
}

/* Appends the condition for tasks of a share that have been due for at least overdue_ms (is "<=";
 * negative: or will be due within that time), or have not (">"); false if the tag is paused, or its
 * limit, unless that has been asked, keeps any task from starting. The server evaluates each once.
 */
static void put_share(struct buf *sql, const struct claim_ask *ask, unsigned share, const char *is,
                      int64_t overdue_ms)
{
    sql_put(sql,
            "c.tag = ? AND c.expected_time ? UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND"
            " AND NOT EXISTS " SQL_PAUSE_OF_GLOB "?" SQL_LIKE_GLOB ")",
            SQL_TEXT(ask->tag), SQL_PART(is), SQL_INT(overdue_ms * 1000), SQL_TEXT(ask->tag));
    if (ask->limit_name)
        sql_put(sql, " AND NOT EXISTS " SQL_PAUSE_OF_NAME "?)", SQL_TEXT(ask->tag));
    if (!ask->guarded && !ask->tag_limit.running)
        sql_put(sql, " AND NOT EXISTS " STRICT, SQL_TEXT(limit_of(ask)));
    if (ask->shares > 1)
        sql_put(sql, " AND ? = ?", SQL_SHARE("c.", ask->shares), SQL_INT(share));
}

/* Appends the SELECT of the row that has the time of the next task. It is the last row, so that it
 * also reads the clock when the statement is nearly done. (Reading one candidate more than wanted,
 * without a limit on the time, would find the next task too; but a claim that finds a single due
 * task would then fill up with rows that are not due.) */
static void put_next(struct buf *sql, const struct claim_ask *ask, unsigned status, unsigned share,
                     int64_t overdue_ms)
{
    buf_str(sql, ") UNION ALL SELECT ");
    for (int i = 0; i < NEXT_AT; i++)
        buf_str(sql, "NULL, ");
    sql_put(sql, "(SELECT c.expected_time FROM dq_task c FORCE INDEX (due) WHERE c.status = ? AND ",
            SQL_INT(status));
    put_share(sql, ask, share, ">", overdue_ms);
    sql_put(sql, " ORDER BY " SQL_DUE_ORDER("c.", "") " LIMIT 1), EXISTS " STRICT ", ?",
            SQL_TEXT(limit_of(ask)), SQL_PART(COLUMNS_SELECT(NOW_COLUMNS)));
}

/* What to read: tasks of a share that have been due for at least overdue_ms (as put_share), the
 * earliest first or, with far_end, the latest. next: finds out when the next one is due, too. */
struct search {
    unsigned share;
    int64_t overdue_ms;
    bool far_end, next;
    struct peek_floor *floor; /* begins there, and moves it behind the last one; NULL: not */
};

static int find_candidates(struct db *db, const struct claim_ask *ask, const struct search *s,
                           enum task_level level, size_t limit, struct task_array *ret,
                           struct claim_seen *saw, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    const char *order = s->far_end ? SQL_DUE_ORDER("c.", " DESC") : SQL_DUE_ORDER("c.", "");
    bool skip_locked = ask->skip_locked && db_skips_locked(db);

    buf_str(&sql, skip_locked ? rows_before_skip(db) : "");
    if (s->next)
        buf_str(&sql, "(");
    put_select(&sql, ask, s->next, sql_pending(level));
    put_share(&sql, ask, s->share, "<=", s->overdue_ms);
    if (s->floor)
        peek_store_put_floor(&sql, s->floor);
    if (ask->aside_count)
        sql_put(&sql, " AND NOT c.id IN ?", SQL_IDS(ask->aside, ask->aside_count));
    sql_put(&sql, " ORDER BY ? LIMIT ??", SQL_PART(order), SQL_ID(limit),
            SQL_PART(skip_locked ? " FOR UPDATE SKIP LOCKED" : NULL));
    if (s->next)
        put_next(&sql, ask, sql_pending(level), s->share, s->overdue_ms);
    return read_list(db, &sql, &(struct claimed){ret, ask, saw, s->next, level, s->floor}, err);
}

void claim_find_put(struct buf *sql, const char *tag, size_t limit)
{
    const struct claim_ask ask = {.tag = tag};

    put_select(sql, &ask, false, TASK_PENDING);
    put_share(sql, &ask, 0, "<=", 0);
    sql_put(sql, " ORDER BY " SQL_DUE_ORDER("c.", "") " LIMIT ?", SQL_ID(limit));
}

static bool has_level(const struct claim_ask *ask, enum task_level level)
{
    return ask->levels ? ask->levels & TASK_LEVEL_BIT(level) : level == TASK_NORMAL;
}

/* Candidates of our own share: due, or due within early_ms. floors: one for each level. */
struct own {
    struct search search;
    struct peek_floor floors[TASK_LEVELS];
    size_t seen; /* of all levels */
};

/* Reads up to n of a level. */
static int find_level(struct db *db, const struct claim_ask *ask, struct own *w,
                      enum task_level level, size_t n, struct task_array *found,
                      struct claim_seen *saw, struct err *err)
{
    w->search.floor = &w->floors[level];
    saw->sent_us = when_steady_us();
    int rc = find_candidates(db, ask, &w->search, level, n, found, saw, err);
    saw->answered_us = when_steady_us();
    saw->drained[level] = found->count + saw->expired < w->seen + n;
    w->seen = found->count + saw->expired;
    return rc;
}

/* The levels whose turn it is, then the highest ones as far as they leave the others what these are
 * owed, then whatever is left. What is next is known if it is known of each level. */
static int find_own(struct db *db, const struct claim_ask *ask, size_t limit,
                    struct task_array *found, struct claim_seen *saw, struct err *err)
{
    struct own w = {.search = {.share = ask->share,
                               .overdue_ms = -ask->early_ms,
                               .next = ask->next && !ask->skip_locked}};
    enum { TURNS, OWED, REST, ROUNDS };
    int64_t next_at = TASK_TIME_NONE;
    size_t turn[TASK_LEVELS], owed[TASK_LEVELS];
    int rc = 0;

    task_levels_owed(ask->levels, ask->passed, 1, turn);
    task_levels_owed(ask->levels, ask->passed, limit, owed);
    memcpy(w.floors, ask->floor, sizeof w.floors);
    for (int i = 0; rc == 0 && i < ROUNDS * TASK_LEVELS && w.seen < limit; i++) {
        enum task_level level = task_levels[i % TASK_LEVELS];
        size_t n = limit - w.seen, kept = 0;

        for (int k = i + 1; i / TASK_LEVELS == OWED && k % TASK_LEVELS; k++)
            kept += owed[task_levels[k % TASK_LEVELS]];
        n = i < TASK_LEVELS ? MIN(n, turn[level]) : n - MIN(n, kept);
        if (!n || !has_level(ask, level) || saw->drained[level])
            continue;
        rc = find_level(db, ask, &w, level, n, found, saw, err);
        owed[level] -= MIN(owed[level], saw->drained[level] ? owed[level] : n);
        if (next_at == TASK_TIME_NONE || (saw->next_at != TASK_TIME_NONE && saw->next_at < next_at))
            next_at = saw->next_at;
    }
    saw->next_at = next_at;
    saw->next_known &= w.seen < limit;
    return rc;
}

int claim_find_due(struct db *db, const struct claim_ask *ask, size_t limit,
                   struct task_array *found, struct claim_seen *ret, struct err *err)
{
    const struct search other = {ask->steal_share, ask->steal_after_ms, ask->steal_far_end, false,
                                 NULL};

    if (ask->expired)
        ask->expired->count = ask->expired->bytes = 0;
    int rc = find_own(db, ask, limit, found, ret, err);

    /* leave other shares alone while our own has enough */
    for (int i = 0; rc == 0 && i < TASK_LEVELS && ask->shares > 1 && found->count < limit; i++)
        if (has_level(ask, task_levels[i]))
            rc = find_candidates(db, ask, &other, task_levels[i], limit - found->count, found, ret,
                                 err);
    ret->found = found->count;
    return rc;
}

int claim_find_running(struct db *db, const unsigned char token[TASK_TOKEN_SIZE],
                       struct task_array *found, struct err *err)
{
    const struct claim_ask ask = {0};
    BUF_LOCAL struct buf sql = BUF_INIT;

    put_select(&sql, &ask, false, TASK_RUNNING);
    sql_put(&sql, "c.claim_token = ?", SQL_TOKEN(token));
    int rc = db_latest_begin(db, err);
    if (rc == 0)
        rc = read_list(db, &sql, &(struct claimed){.to = found, .ask = &ask}, err);
    db_latest_end(db);
    return rc;
}
