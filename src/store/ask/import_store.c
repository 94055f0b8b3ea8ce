/*
 * import_store.c - see import_store.h.
 *
 * Invariant: a chunk is stored whole or not at all, also if an answer was lost: its first row
 * carries a token by which it is looked up.
 */
#include "store/ask/import_store.h"
#include "store/db/columns.h"
#include "store/db/db_statement.h"
#include "store/fleet/poller_store.h"
#include "store/row/add_token.h"
#include "store/row/field.h"
#include "store/row/sql.h"
#include "store/row/task_read.h"

#include "base/mem.h"

#include <inttypes.h>
#include <sys/param.h>

#define STATEMENT_BYTES ((size_t)512 << 10) /* then it is sent */

void import_store_free(struct import_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        task_done(&items[i].task);
        attempt_store_free(items[i].attempts, items[i].attempt_count);
        items[i] = (struct import_item){.attempts = NULL};
    }
}

/* ---- conflicts */

static bool holds_key(const struct task *t)
{
    return t->key && TASK_LIVE & TASK_BIT(t->status);
}

static bool same_key(const struct task *a, const struct task *b)
{
    return holds_key(a) && holds_key(b) && task_same_name(a->key, b->key) &&
           task_same_name(a->tag, b->tag);
}

static int check_twins(const struct import_item *items, size_t n, bool keep_ids, size_t *ret_bad,
                       struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        *ret_bad = i;
        for (size_t j = 0; j < i; j++) {
            if (keep_ids && items[i].task.id == items[j].task.id)
                return err_set(err, ERR_DUPLICATE, "task %" PRIu64 " is there twice",
                               items[i].task.id);
            if (same_key(&items[i].task, &items[j].task))
                return err_set(err, ERR_DUPLICATE, "tag %s, key %s: two unfinished tasks have it",
                               items[i].task.tag, items[i].task.key);
        }
    }
    return 0;
}

#define TAKEN_COLUMNS                                                                              \
    (TASK_READ_BIT(TASK_READ_ID) | TASK_READ_BIT(TASK_READ_TAG) | TASK_READ_BIT(TASK_READ_KEY) |   \
     TASK_READ_BIT(TASK_READ_STATUS))

static void take_taken(const struct db_rows *r, void *arg)
{
    task_read(r, TAKEN_COLUMNS, arg);
}

/* Appends the condition for tasks of the table that have the id of one of these. */
static bool put_same_ids(struct buf *sql, const struct import_item *items, size_t n)
{
    sql_put(sql, "FORCE INDEX (PRIMARY) WHERE id IN ? ORDER BY id LIMIT 1", SQL_IDS(items, n));
    return true;
}

/* The same for keys. False: none has one. */
static bool put_same_keys(struct buf *sql, const struct import_item *items, size_t n)
{
    bool any = false;

    buf_str(sql, "FORCE INDEX (live_key) WHERE ");
    for (size_t i = 0; i < n; i++) {
        if (!holds_key(&items[i].task))
            continue;
        sql_put(sql, "?(task_key = ? AND tag = ? AND live = 1)", SQL_PART(any ? " OR " : ""),
                SQL_TEXT(items[i].task.key), SQL_TEXT(items[i].task.tag));
        any = true;
    }
    buf_str(sql, " LIMIT 1");
    return any;
}

static int check_table(struct db *db, const struct import_item *items, size_t n, bool by_id,
                       size_t *ret_bad, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    LOCAL_BY(task_done) struct task taken = {0};
    int rc = 0;

    task_init(&taken);
    buf_str(&sql, "SELECT ");
    unsigned count = task_read_put_columns(&sql, "", TAKEN_COLUMNS);
    buf_str(&sql, " FROM dq_task ");
    if (by_id ? put_same_ids(&sql, items, n) : put_same_keys(&sql, items, n))
        rc = db_first(db, &sql, count, take_taken, &taken, err);
    for (size_t i = 0; rc == 1 && i < n; i++) {
        const struct task *t = &items[i].task;
        *ret_bad = i;
        if (by_id && t->id == taken.id)
            rc = err_set(err, ERR_DUPLICATE,
                         "task %" PRIu64 " exists already; without --keep-ids it gets another id",
                         t->id);
        else if (!by_id && same_key(t, &taken))
            rc = err_set(err, ERR_DUPLICATE, "tag %s, key %s: task %" PRIu64 " has it and is %s",
                         t->tag, t->key, taken.id, task_status_name(taken.status));
    }
    return rc < 0 ? rc : 0;
}

int import_store_check(struct db *db, const struct import_item *items, size_t n, bool keep_ids,
                       size_t *ret_bad, struct err *err)
{
    int rc = check_twins(items, n, keep_ids, ret_bad, err);

    if (rc == 0 && keep_ids)
        rc = check_table(db, items, n, true, ret_bad, err);
    if (rc == 0)
        rc = check_table(db, items, n, false, ret_bad, err);
    return rc;
}

/* ---- ids */

int import_store_next_id(struct db *db, uint64_t *ret, struct err *err)
{
    uint64_t greatest = 0;

    *ret = 1;
    /* else MySQL may answer what it knew a day ago; MariaDB has no such setting */
    int rc = db_is_mariadb(db)
                 ? 0
                 : sql_exec(db, NULL, err, "SET SESSION information_schema_stats_expiry = 0");
    if (rc == 0)
        rc = sql_read(db, COLUMNS_ONE, sql_take_u64, ret, err,
                      "SELECT auto_increment FROM information_schema.tables"
                      " WHERE table_schema = DATABASE() AND table_name = 'dq_task'");
    if (rc == 0)
        rc = sql_read(db, COLUMNS_ONE, sql_take_u64, &greatest, err,
                      "SELECT id FROM dq_task ORDER BY id DESC LIMIT 1");
    *ret = MAX(*ret, greatest + 1);
    return rc;
}

/* A row with the id before it, which nobody sees: unlike ALTER TABLE, that needs no right to change
 * the table, and waits for nobody. */
int import_store_raise_ids(struct db *db, uint64_t next_id, struct err *err)
{
    uint64_t now_id;
    int rc = import_store_next_id(db, &now_id, err);

    if (rc < 0 || now_id >= next_id)
        return rc;
    rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    rc = sql_exec(db, NULL, err,
                  "INSERT INTO dq_task (id, tag, message_body, status, expected_time, create_time)"
                  " VALUES (?, '', '', 4, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                  SQL_ID(next_id - 1));
    if (rc == 0)
        rc = sql_exec(db, NULL, err, "DELETE FROM dq_task WHERE id = ?", SQL_ID(next_id - 1));
    rc = db_end(db, rc, err);
    return rc == ERR_DUPLICATE ? 0 : rc; /* it has been given meanwhile */
}

/* ---- rows as SQL */

/* The id goes first, and only if it is kept. live and add_token are no fields of a task: an import
 * sets them by what they mean. */
static const struct column *task_columns(bool keep_id, size_t *ret_count)
{
    *ret_count = TASK_READ_COUNT - !keep_id;
    return &task_read_columns[keep_id ? 0 : 1];
}

static void put_task(struct db_statement *st, const struct task *t, bool keep_id,
                     const unsigned char *token)
{
    size_t count;
    const struct column *columns = task_columns(keep_id, &count);
    struct task stored = *t;

    if (t->status == TASK_PENDING)
        stored.status = (int)sql_pending(t->level);
    buf_str(&st->sql, holds_key(t) ? "(1, " : "(NULL, ");
    if (token)
        sql_put_token(&st->sql, token);
    buf_str(&st->sql, token ? ", " : "NULL, ");
    field_put_values(st, columns, count, &stored);
    buf_chr(&st->sql, ')');
}

static void put_attempt(struct db_statement *st, uint64_t task, const struct task_attempt *a)
{
    struct task_attempt copy = *a;

    copy.task_id = task;
    buf_chr(&st->sql, '(');
    field_put_values(st, attempt_store_columns, attempt_store_column_count, &copy);
    buf_chr(&st->sql, ')');
}

/* ---- sending */

struct sending {
    struct db *db;
    struct buf head; /* INSERT INTO ... VALUES */
    struct db_statement st;
    size_t rows, most; /* most: bytes of a packet */
};

static int send_rows(struct sending *s, struct err *err)
{
    int rc = 0;

    if (s->rows && db_statement_packet(&s->st) > s->most)
        rc = err_set(err, ERR_DATA,
                     "a task with its output is larger than the server's max_allowed_packet (%zu)",
                     s->most);
    else if (s->rows)
        rc = db_statement_exec(s->db, &s->st, NULL, err);
    db_statement_cut(&s->st, 0, 0);
    s->rows = 0;
    return rc;
}

/* To be called before a row is put: sends what is there if that is enough, and begins or goes on.
 */
static int next_row(struct sending *s, struct err *err)
{
    int rc = s->rows && s->st.sql.len + 16 >= STATEMENT_BYTES ? send_rows(s, err) : 0;

    if (rc == 0 && s->rows && db_statement_packet(&s->st) >= STATEMENT_BYTES)
        rc = send_rows(s, err);
    buf_str(&s->st.sql, s->rows++ ? "," : s->head.data);
    return rc;
}

static int send_attempts(struct sending *s, const struct import_item *items, size_t n,
                         struct err *err)
{
    int rc = 0;

    buf_reset(&s->head);
    buf_str(&s->head, "REPLACE INTO dq_attempt (");
    field_put_names(&s->head, "", attempt_store_columns, attempt_store_column_count);
    buf_str(&s->head, ") VALUES ");
    for (size_t i = 0; i < n; i++) {
        for (size_t a = 0; a < items[i].attempt_count && rc == 0; a++) {
            rc = next_row(s, err);
            put_attempt(&s->st, items[i].task.id, &items[i].attempts[a]);
        }
    }
    return rc < 0 ? rc : send_rows(s, err);
}

/* A task that gets a new id and has attempts is sent alone: they need the id. */
static int send_tasks(struct sending *s, struct import_item *items, size_t n, bool keep_ids,
                      const unsigned char *token, struct err *err)
{
    size_t count;
    const struct column *columns = task_columns(keep_ids, &count);
    int rc = 0;

    buf_str(&s->head, "INSERT INTO dq_task (live, add_token, ");
    field_put_names(&s->head, "", columns, count);
    buf_str(&s->head, ") VALUES ");
    for (size_t i = 0; i < n && rc == 0; i++) {
        bool alone = !keep_ids && items[i].attempt_count;
        rc = alone ? send_rows(s, err) : 0;
        if (rc == 0)
            rc = next_row(s, err);
        put_task(&s->st, &items[i].task, keep_ids, i == 0 ? token : NULL);
        if (rc == 0 && alone)
            rc = send_rows(s, err);
        if (rc == 0 && alone)
            items[i].task.id = db_insert_id(s->db);
    }
    return rc < 0 ? rc : send_rows(s, err);
}

static int add_once(struct db *db, struct import_item *items, size_t n, bool keep_ids,
                    const unsigned char *token, struct event_act *act, struct err *err)
{
    struct sending s = {.db = db, .head = BUF_INIT, .st = DB_STATEMENT_INIT};

    int rc = db_max_packet(db, &s.most, err);
    if (rc == 0)
        rc = db_begin(db, err);
    if (rc < 0)
        return rc;
    rc = send_tasks(&s, items, n, keep_ids, token, err);
    if (rc == 0)
        rc = send_attempts(&s, items, n, err);
    if (rc == 0)
        rc = event_store_add(db, act, NULL, n, err);
    db_statement_done(&s.st);
    buf_done(&s.head);
    return db_end(db, rc, err);
}

int import_store_add(struct db *db, struct import_item *items, size_t n, bool keep_ids,
                     struct event_act *act, struct err *err)
{
    struct add_token token;
    bool levels = false;

    for (size_t i = 0; i < n; i++)
        levels |= items[i].task.level != TASK_NORMAL;
    int rc = levels ? poller_store_check_knows(db, POLLER_KNOWS_PRIORITY, err) : 0;
    add_token_init(db, &token);
    if (keep_ids)
        token.first_id = items[0].task.id;
    else if (rc == 0)
        rc = add_token_lower(db, &token, "", err);
    if (rc >= 0)
        rc = add_once(db, items, n, keep_ids, token.bytes, act, err);
    if (rc != ERR_LOST)
        return rc;
    struct err why = {0};
    int stored = add_token_find(db, &token, "id", COLUMNS_ONE, NULL, NULL, &why);
    if (stored < 0)
        return err_set(
            err, ERR_LOST,
            "the connection broke; it is not known whether these tasks were stored, because dq could not find out: %s",
            why.text);
    return stored ? 0 : err_set(err, ERR_TRANSIENT, "the connection broke, and nothing was stored");
}
