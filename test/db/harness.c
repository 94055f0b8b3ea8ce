/*
 * harness.c - see harness.h.
 */
#include "harness.h"

#include "base/when.h"
#include "conf/conf_load.h"
#include "store/db/db_connect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct err err;
struct db *db;
const struct conf_mysql *harness_conf;
static struct conf *conf;

int harness_ok(int rc, const char *what, const char *file, int line)
{
    if (rc < 0) {
        print_error("%s: %d: %s\n", what, rc, err.text);
        _fail(file, line);
    }
    return rc;
}

struct db *harness_db(void)
{
    struct db *d = db_new(harness_conf);
    ok(db_connect(d, &err));
    return d;
}

int harness_group(void **state)
{
    int from;

    (void)state;
    ok(conf_load(NULL, &conf, &err));
    /* A statement that fills a table takes more than half a minute on a slow machine. */
    conf->mysql.read_timeout_ms = 10 * WHEN_MINUTE;
    harness_conf = &conf->mysql;
    db = db_new(harness_conf);
    ok(schema_migrate(db, NULL, NULL, &from, &err));
    return 0;
}

int harness_group_end(void **state)
{
    (void)state;
    db_free(db);
    conf_free(conf);
    return 0;
}

int harness_setup(void **state)
{
    (void)state;
    /* many rows are deleted one by one */
    if (number(db, "SELECT COUNT(*) FROM (SELECT 1 FROM dq_task LIMIT 5001) some") > 5000)
        run(db, "TRUNCATE TABLE dq_task");
    run(db, "DELETE FROM dq_task");
    run(db, "DELETE FROM dq_attempt");
    run(db, "DELETE FROM dq_limit");
    run(db, "DELETE FROM dq_output");
    run(db, "DELETE FROM dq_poller");
    run(db, "DELETE FROM dq_minute");
    run(db, "DELETE FROM dq_handler");
    run(db, "DELETE FROM dq_rest");
    run(db, "DELETE FROM dq_event");
    run(db, "DELETE FROM dq_schedule");
    run(db, "DELETE FROM dq_slot");
    return 0;
}

uint64_t run(struct db *d, const char *fmt, ...)
{
    struct buf sql = BUF_INIT;
    uint64_t rows = 0;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&sql, fmt, ap);
    va_end(ap);
    int rc = db_exec(d, &sql, &rows, &err);
    buf_done(&sql);
    ok(rc);
    return rows;
}

int exec(struct db *d, const char *text)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, text);
    int rc = db_exec(d, &sql, NULL, &err);
    buf_done(&sql);
    return rc;
}

void as_root(const char *fmt, ...)
{
    char user[] = "root";
    struct conf_mysql root_conf = *harness_conf;
    struct buf sql = BUF_INIT;
    va_list ap;

    root_conf.user = user;
    struct db *root = db_new(&root_conf);
    va_start(ap, fmt);
    buf_vprintf(&sql, fmt, ap);
    va_end(ap);
    ok(db_exec(root, &sql, NULL, &err));
    buf_done(&sql);
    db_free(root);
}

int64_t number(struct db *d, const char *fmt, ...)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows;
    int64_t value = INT64_MIN;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&sql, fmt, ap);
    va_end(ap);
    ok(db_query(d, &sql, DB_ANY_COLUMNS, false, &rows, &err));
    buf_done(&sql);
    if (ok(db_rows_next(rows, &err)) == 1)
        value = db_i64(rows, 0, INT64_MIN);
    db_rows_free(rows);
    return value;
}

void assert_one(const char *what)
{
    if (number(db, "SELECT COUNT(*) FROM %s", what) != 1)
        fail_msg("not one: %s", what);
}

const char *numbers(unsigned n)
{
    static struct buf table = BUF_INIT;
    struct buf value = BUF_INIT, from = BUF_INIT;

    buf_str(&value, "1");
    for (unsigned at = 0, step = 1; step < n || at == 0; at++, step *= 10) {
        buf_printf(&value, " + d%u.d * %u", at, step);
        buf_printf(
            &from,
            "%s(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5"
            " UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) d%u",
            at ? ", " : "", at);
    }
    buf_reset(&table);
    buf_printf(&table, "(SELECT %s AS seq FROM %s WHERE %s <= %u) numbers", value.data, from.data,
               value.data, n);
    buf_done(&value);
    buf_done(&from);
    return table.data;
}

int64_t session_status(struct db *d, const char *where)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows;
    int64_t sum = 0;

    buf_printf(&sql, "SHOW SESSION STATUS WHERE variable_name %s", where);
    ok(db_query(d, &sql, 2, false, &rows, &err));
    buf_done(&sql);
    while (ok(db_rows_next(rows, &err)) == 1)
        sum += db_i64(rows, 1, 0);
    db_rows_free(rows);
    return sum;
}

int64_t reads(struct db *d)
{
    return session_status(d,
                          "LIKE 'Handler%read%' AND variable_name <> 'Handler_read_rnd_deleted'");
}

int change_all(struct db *d, const struct task_filter *f, const struct task_change *c,
               struct task_changed *ret, struct rows_faults *faults)
{
    const struct targets_steps plain = {NULL, NULL, NULL};
    struct targets x = {0};
    int rc = targets_list(d, f, task_transition(c->event)->from, NULL, NULL, &x, &err);
    if (rc == 0)
        rc = task_change(d, &x, c, &plain, ret, faults, &err);
    targets_done(&x);
    return rc;
}

int delete_all(struct db *d, const struct task_filter *f, struct task_changed *ret,
               struct rows_faults *faults)
{
    const struct targets_steps plain = {NULL, NULL, NULL};
    struct targets x = {0};
    int rc = targets_list(d, f, TASK_FINISHED, NULL, NULL, &x, &err);
    if (rc == 0)
        rc = task_change(d, &x, NULL, &plain, ret, faults, &err);
    targets_done(&x);
    return rc;
}

uint64_t add(const char *tag, const char *key, int64_t delay_ms)
{
    struct task_added added;
    struct task_new t = {
        .tag = tag, .key = key, .body = "body", .body_size = 4, .expected_at = TASK_TIME_NONE};

    if (delay_ms >= 0)
        t.delay_ms = delay_ms;
    ok(task_add(db, &t, KEY_ERROR, &added, &err));
    if (delay_ms < 0)
        run(db,
            "UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3) - INTERVAL %" PRId64
            " MICROSECOND WHERE id = %" PRIu64,
            -delay_ms * 1000, added.id);
    return added.id;
}

void hourly(const char *name, const char *ago, const char *more)
{
    run(db,
        "INSERT INTO dq_schedule SET name = '%s', tag = 't', message_body = x'00ff', kind = 1, expression = '1h',"
        " next_slot = UTC_TIMESTAMP(3) - INTERVAL %s, create_time = UTC_TIMESTAMP(3), update_time = UTC_TIMESTAMP(3),"
        " actor = 'a'%s%s",
        name, ago, *more ? ", " : "", more);
}

struct slot_store_done decide(struct db *d)
{
    struct slot_store_done done;

    ok(slot_store_decide(d, &done, &err));
    return done;
}

struct claim_owner owner(unsigned char seed)
{
    struct claim_owner o = {.host = "test.example", .pid = seed};
    memset(o.token, seed, sizeof o.token);
    return o;
}

const struct claim_ask plain_ask = {
    .tag = "t", .limit = 100, .shares = 1, .max_attempts = 7, .lease_ms = 60000};

struct task_array claim(struct db *d, const struct claim_owner *o, const char *tag, size_t limit)
{
    struct claim_ask ask = {
        .tag = tag, .limit = limit, .shares = 1, .max_attempts = 3, .lease_ms = 60000};
    struct task_array won = {0};
    struct claim_seen saw;

    ok(claim_store_claim(d, o, &ask, &won, &saw, NULL, &err));
    return won;
}

struct settlement result(const struct task *t, enum task_event event, enum task_outcome outcome)
{
    return (struct settlement){.id = t->id,
                               .version = t->version,
                               .event = event,
                               .outcome = outcome,
                               .start_at = INT64_C(1790000000123),
                               .finish_at = INT64_C(1790000001456),
                               .exit_code = event == TASK_SUCCEED ? 0 : 1};
}

struct task_array claimed(const struct claim_owner *o, int n)
{
    for (int i = 0; i < n; i++)
        add("t", NULL, -1000 - (n - i));
    struct task_array won = claim(db, o, "t", (size_t)n);
    assert_int_equal(won.count, n);
    return won;
}
