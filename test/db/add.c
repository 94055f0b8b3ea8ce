/* Storing tasks: any bytes, keys, bulk, limits of the server, lost answers. */
#include "harness.h"
#include "store/db/db_connect.h"
#include "store/db/db_session.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct task_added added;

static int add_key(const char *key, const char *body, enum key_conflict conflict)
{
    struct task_new t = {.tag = "t",
                         .key = key,
                         .body = body,
                         .body_size = strlen(body),
                         .expected_at = TASK_TIME_NONE,
                         .delay_ms = 60000};
    return task_add(db, &t, conflict, &added, &err);
}

static void add_any_bytes(void **state)
{
    unsigned char body[1024];
    struct task got;
    (void)state;
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (unsigned char)(i < 512 ? i : i * 7919 >> 3);
    struct task_new t = {.tag = "it's\\ \"a\" `tag` \xf0\x9f\x90\x8c",
                         .key = "'; DROP TABLE dq_task; -- \\",
                         .body = body,
                         .body_size = sizeof body,
                         .expected_at = INT64_C(1795000000123),
                         .max_attempts = 4};
    assert_int_equal(task_add(db, &t, KEY_ERROR, &added, &err), 1);
    assert_true(added.expected_at == t.expected_at);
    ok(task_get(db, added.id, &got, &err));
    assert_string_equal(got.tag, t.tag);
    assert_string_equal(got.key, t.key);
    assert_int_equal(got.body_size, sizeof body);
    assert_memory_equal(got.body, body, sizeof body);
    assert_int_equal(got.max_attempts, 4);
    assert_int_equal(got.status, TASK_PENDING);
    assert_true(got.expected_at == t.expected_at);
    task_done(&got);
    t.body_size = 0;
    t.body = NULL;
    t.key = NULL;
    assert_int_equal(task_add(db, &t, KEY_ERROR, &added, &err), 1);
    ok(task_get(db, added.id, &got, &err));
    assert_int_equal(got.body_size, 0);
    assert_non_null(got.body);
    task_done(&got);
}

static void the_delay_counts_from_the_databases_clock(void **state)
{
    int64_t now_at;
    (void)state;
    ok(db_now(db, &now_at, &err));
    ok(add_key(NULL, "x", KEY_ERROR));
    assert_in_range(added.expected_at - now_at, 60000, 90000);
    assert_int_equal(number(db, "SELECT delay_time FROM dq_task"), 60000);
    assert_int_equal(
        number(db, "SELECT TIMESTAMPDIFF(MICROSECOND, create_time, expected_time) FROM dq_task"),
        60000000);
}

/* An application's own INSERT, which need not know of live. */
static void a_plain_insert_with_a_key_is_unique_while_it_lives(void **state)
{
    static const char insert[] =
        "INSERT INTO dq_task (tag, task_key, message_body, expected_time, create_time)"
        " VALUES ('t', %s, 'x', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))";
    const struct task_new t = {.tag = "t", .key = "k", .body = "", .expected_at = TASK_TIME_NONE};
    struct buf sql = BUF_INIT;
    (void)state;
    run(db, insert, "'k'");
    assert_int_equal(task_add(db, &t, KEY_ERROR, &added, &err), ERR_DUPLICATE);
    buf_printf(&sql, insert, "'k'");
    assert_int_equal(db_exec(db, &sql, NULL, &err), ERR_DUPLICATE);
    buf_done(&sql);
    run(db, insert, "NULL");
    run(db, insert, "NULL");
    assert_int_equal(number(db, "SELECT COUNT(live) FROM dq_task"), 1);
    run(db, "UPDATE dq_task SET status = 1, live = NULL WHERE task_key = 'k'");
    assert_int_equal(task_add(db, &t, KEY_ERROR, &added, &err), 1);
}

static void a_live_key_is_kept_refused_or_replaced(void **state)
{
    struct task got;
    (void)state;
    assert_int_equal(add_key("k", "one", KEY_ERROR), 1);
    uint64_t first = added.id;
    int64_t first_at = added.expected_at;
    assert_int_equal(add_key("k", "two", KEY_KEEP), 0);
    assert_int_equal(added.id, first);
    assert_true(added.expected_at == first_at);
    assert_false(added.replaced);
    assert_int_equal(add_key("k", "two", KEY_ERROR), ERR_DUPLICATE);
    char text[32];
    snprintf(text, sizeof text, "task %" PRIu64, first);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(add_key("k", "three", KEY_REPLACE), 0);
    assert_int_equal(added.id, first);
    assert_true(added.replaced);
    ok(task_get(db, first, &got, &err));
    assert_memory_equal(got.body, "three", 5);
    assert_int_equal(got.body_size, 5);
    assert_int_equal(got.version, 1);
    task_done(&got);
    run(db, "UPDATE dq_task SET status = 3, version = 2");
    assert_int_equal(add_key("k", "four", KEY_REPLACE), ERR_DUPLICATE);
    assert_int_equal(add_key("k", "four", KEY_KEEP), 0);
    run(db, "UPDATE dq_task SET status = 1, live = NULL, version = 3");
    assert_int_equal(add_key("k", "five", KEY_ERROR), 1);
    assert_int_not_equal(added.id, first);
    assert_int_equal(add_key("K", "case matters", KEY_ERROR), 1);
}

static struct task_new *many(size_t n)
{
    struct task_new *t = mem_zero(n, sizeof *t);
    for (size_t i = 0; i < n; i++)
        t[i] = (struct task_new){.tag = "t",
                                 .body = "0123456789",
                                 .body_size = i % 10,
                                 .expected_at = TASK_TIME_NONE,
                                 .delay_ms = (int64_t)i};
    return t;
}

static void many_are_added_all_or_none(void **state)
{
    size_t kept, bad, n = 5000;
    struct task_new *t = many(n);
    (void)state;
    ok(task_add_many(db, t, n, KEY_ERROR, &kept, &bad, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), n);
    assert_int_equal(number(db, "SELECT SUM(LENGTH(message_body) = body_size) FROM dq_task"), n);
    harness_setup(NULL);
    t[4000].key = "same";
    t[4321].key = "same";
    assert_int_equal(task_add_many(db, t, n, KEY_ERROR, &kept, &bad, &err), ERR_DUPLICATE);
    assert_int_equal(bad, 4321);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 0);
    ok(task_add_many(db, t, n, KEY_KEEP, &kept, &bad, &err));
    assert_int_equal(kept, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), n - 1);
    ok(task_add_many(db, &t[4000], 1, KEY_KEEP, &kept, &bad, &err));
    assert_int_equal(kept, 1);
    t[4321].body = "replaced";
    t[4321].body_size = 8;
    ok(task_add_many(db, &t[4321], 1, KEY_REPLACE, &kept, &bad, &err));
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_task WHERE task_key = 'same' AND message_body = 'replaced' AND version = 1"),
        1);
    /* A row that the server refuses is found in the middle of its statement. */
    harness_setup(NULL);
    t[4000].key = t[4321].key = NULL;
    t[77].delay_ms = INT64_C(400000000000000);
    assert_int_equal(task_add_many(db, t, n, KEY_ERROR, &kept, &bad, &err), ERR_DATA);
    assert_int_equal(bad, 77);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 0);
    free(t);
}

/* Three ways to store t: alone, in bulk, in place of another. */
static int store(struct db *d, int way, struct task_new *t)
{
    size_t kept, bad;
    struct task_new old = {
        .tag = t->tag, .key = "k", .body = "", .expected_at = TASK_TIME_NONE, .delay_ms = 60000};

    t->key = way == 2 ? "k" : NULL;
    if (way == 1)
        return task_add_many(d, t, 1, KEY_ERROR, &kept, &bad, &err);
    if (way == 2)
        ok(task_add(d, &old, KEY_KEEP, &added, &err));
    return task_add(d, t, KEY_REPLACE, &added, &err);
}

/* Bytes that would double as literals. */
static void the_packet_limit_is_that_of_the_body(void **state)
{
    static const size_t limits[] = {1 << 20, 16 << 20};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t max;
        as_root("SET GLOBAL max_allowed_packet = %zu", limits[i]);
        struct db *d = harness_db();
        ok(db_max_packet(d, &max, &err));
        assert_int_equal(max, limits[i]);
        int64_t connection = number(d, "SELECT CONNECTION_ID()");
        char *body = mem_zero(1, max + 1);
        struct task_new t = {
            .tag = "t", .body = body, .expected_at = TASK_TIME_NONE, .delay_ms = 60000};
        for (int way = 0; way < 3; way++) {
            harness_setup(NULL);
            t.body_size = max - 1024;
            ok(store(d, way, &t));
            assert_int_equal(number(db, "SELECT LENGTH(message_body) FROM dq_task"),
                             (int64_t)t.body_size);
            assert_int_equal(
                number(
                    db,
                    "SELECT COUNT(*) FROM dq_task WHERE message_body = REPEAT(CHAR(0), body_size)"),
                1);
            for (t.body_size = max - 1; t.body_size <= max + 1; t.body_size++) {
                assert_int_equal(store(d, way, &t), ERR_DATA);
                assert_non_null(strstr(err.text, "max_allowed_packet"));
            }
        }
        /* the server would have closed it */
        assert_int_equal(number(d, "SELECT CONNECTION_ID()"), connection);
        free(body);
        db_free(d);
    }
}

/* Short and long bodies of any bytes in one batch: as many statements as it takes. */
static void a_batch_fits_into_small_packets(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 8191, 16384, 16385, 60000, 200000, 300000, 500000};
    size_t n = 100, kept, bad;
    struct task_new *t = mem_zero(n, sizeof *t);
    unsigned char *bytes = mem_alloc(500000);
    (void)state;
    as_root("SET GLOBAL max_allowed_packet = 524288");
    struct db *d = harness_db();
    int64_t connection = number(d, "SELECT CONNECTION_ID()");
    for (size_t i = 0; i < 500000; i++)
        bytes[i] = (unsigned char)(i * 7919 >> 5);
    for (size_t i = 0; i < n; i++)
        t[i] = (struct task_new){.tag = i % 2 ? "t" : "\xc3\xa9",
                                 .body = bytes,
                                 .body_size = sizes[i % 10],
                                 .expected_at = TASK_TIME_NONE};
    t[50].key = "\xf0\x9f\x90\x8c";
    ok(task_add_many(d, t, n, KEY_ERROR, &kept, &bad, &err));
    ok(task_add_many(d, t, n, KEY_KEEP, &kept, &bad, &err));
    assert_int_equal(kept, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 2 * n - 1);
    assert_int_equal(number(db, "SELECT SUM(LENGTH(message_body) = body_size) FROM dq_task"),
                     2 * n - 1);
    for (size_t i = 0; i < 10; i++) {
        struct buf sql = BUF_INIT;
        struct db_rows *rows;
        size_t len;
        buf_printf(&sql, "SELECT message_body FROM dq_task WHERE body_size = %zu", sizes[i]);
        ok(db_query(db, &sql, 1, false, &rows, &err));
        buf_done(&sql);
        while (ok(db_rows_next(rows, &err)) == 1)
            assert_memory_equal(db_text(rows, 0, &len), bytes, sizes[i]);
        db_rows_free(rows);
    }
    assert_int_equal(number(d, "SELECT CONNECTION_ID()"), connection);
    as_root("SET GLOBAL max_allowed_packet = %d", 16 << 20);
    db_free(d);
    free(bytes);
    free(t);
}

static void long_bodies_need_no_prepared_statement(void **state)
{
    int64_t count = number(db, "SELECT @@global.max_prepared_stmt_count");
    char body[20000] = "? '\\";
    struct task_new t = {.tag = "what?",
                         .body = body,
                         .body_size = sizeof body,
                         .expected_at = TASK_TIME_NONE,
                         .delay_ms = 60000};
    (void)state;
    as_root("SET GLOBAL max_prepared_stmt_count = 0");
    for (int way = 0; way < 3; way++) {
        harness_setup(NULL);
        ok(store(db, way, &t));
        assert_int_equal(
            number(
                db,
                "SELECT COUNT(*) FROM dq_task WHERE message_body = CONCAT(X'3f20275c', REPEAT(CHAR(0), 19996))"),
            1);
    }
    as_root("SET GLOBAL max_prepared_stmt_count = %" PRId64, count);
}

/* A long body's statement is prepared, then executed: cut at either, before or after it reaches the
 * server. */
static void a_lost_answer_stores_one_long_task(void **state)
{
    static const struct {
        const char *pattern;
        bool deliver;
    } cuts[] = {{"INSERT INTO dq_task", true},
                {"INSERT INTO dq_task", false},
                {"long body", true},
                {"long body", false}};
    char body[20000] = "long body";
    struct task_new t = {
        .tag = "t", .body = body, .body_size = sizeof body, .expected_at = TASK_TIME_NONE};
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct proxy *p = proxy_new();
        harness_setup(NULL);
        proxy_cut(p, cuts[i].pattern, cuts[i].deliver);
        assert_int_equal(task_add(proxy_db(p), &t, KEY_ERROR, &added, &err), 1);
        assert_int_equal(proxy_cuts(p), 1);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 1);
        assert_int_equal(number(db, "SELECT id FROM dq_task"), (int64_t)added.id);
        proxy_free(p);
    }
}

static void a_lost_answer_stores_one_task(void **state)
{
    static const char *const cut[] = {"INSERT INTO dq_task", "INSERT INTO dq_task"};
    struct task_new t = {.tag = "t", .body = "x", .body_size = 1, .expected_at = TASK_TIME_NONE};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct proxy *p = proxy_new();
        harness_setup(NULL);
        proxy_cut(p, cut[i], i == 0);
        assert_int_equal(task_add(proxy_db(p), &t, KEY_ERROR, &added, &err), 1);
        assert_int_equal(proxy_cuts(p), 1);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 1);
        assert_int_equal(number(db, "SELECT id FROM dq_task"), (int64_t)added.id);
        proxy_free(p);
    }
}

static void a_lost_commit_stores_the_batch_once(void **state)
{
    static const char *const cut[] = {"COMMIT", "COMMIT", "INSERT INTO dq_task"};
    size_t kept, bad, n = 300;
    struct task_new *t = many(n);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct proxy *p = proxy_new();
        harness_setup(NULL);
        ok(db_connect(proxy_db(p), &err)); /* its set-up says READ COMMITTED */
        proxy_cut(p, cut[i], i != 1);
        ok(task_add_many(proxy_db(p), t, n, KEY_ERROR, &kept, &bad, &err));
        assert_int_equal(proxy_cuts(p), 1);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), n);
        proxy_free(p);
    }
    free(t);
}

/* What is told is what is so: stored nowhere, or not known. */
static void an_add_whose_every_try_is_lost(void **state)
{
    size_t kept, bad, n = 300;
    struct task_new *t = many(n);
    (void)state;
    for (int bulk = 0; bulk <= 1; bulk++) {
        struct proxy *p = proxy_new();
        harness_setup(NULL);
        proxy_cut_all(p, "INSERT INTO dq_task", false);
        int rc = bulk ? task_add_many(proxy_db(p), t, n, KEY_ERROR, &kept, &bad, &err)
                      : task_add(proxy_db(p), t, KEY_ERROR, &added, &err);
        assert_int_equal(rc, ERR_UNAVAILABLE);
        assert_non_null(strstr(err.text, "nothing was stored"));
        assert_in_range(proxy_cuts(p), 2, 5);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 0);
        proxy_cut_all(p, "add_token", true); /* the answers of the INSERT and of what looks it up */
        rc = bulk ? task_add_many(proxy_db(p), t, n, KEY_ERROR, &kept, &bad, &err)
                  : task_add(proxy_db(p), t, KEY_ERROR, &added, &err);
        assert_int_equal(rc, ERR_LOST);
        assert_non_null(strstr(err.text, "is not known"));
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), bulk ? 0 : 1);
        proxy_free(p);
    }
    free(t);
}

static const struct task_new keyed = {
    .tag = "x", .key = "k", .body = "", .expected_at = TASK_TIME_NONE};

static void *add_keyed(void *arg)
{
    struct err why = {0};
    struct task_added ret;
    return (void *)(intptr_t)task_add(arg, &keyed, KEY_ERROR, &ret, &why);
}

#define INSERTS                                                                                    \
    "SELECT variable_value FROM information_schema.global_status"                                  \
    " WHERE variable_name = 'com_insert'"

/* No key is between that one and the tasks without, so an INSERT that waits for it would keep them
 * waiting: by its place in the index and, if it were INSERT ... SELECT, by the lock on the next id.
 * MySQL has no choice. */
static void an_add_that_waits_for_a_key_keeps_no_other_waiting(void **state)
{
    static const struct db_session patient = {
        .lock_wait_s = 60, .table_wait_s = 60, .idle_s = 3600};
    struct task_new t = {.tag = "t", .body = "", .expected_at = TASK_TIME_NONE};
    struct db *application = harness_db(), *other = db_new(harness_conf);
    const struct timespec nap = {0, 10000000};
    pthread_t thread;
    void *rc;
    (void)state;
    if (!db_is_mariadb(db))
        skip();
    db_session_set(other, &patient);
    run(application, "START TRANSACTION");
    run(application, "INSERT INTO dq_task (tag, task_key, expected_time, create_time, message_body)"
                     " VALUES ('x', 'k', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), '')");
    const int64_t before = number(db, INSERTS);
    assert_int_equal(pthread_create(&thread, NULL, add_keyed, other), 0);
    while (number(db, INSERTS) == before)
        nanosleep(&nap, NULL);
    for (int i = 0; i < 20; i++)
        ok(task_add(db, &t, KEY_ERROR, &added, &err));
    const int64_t tried = number(db, INSERTS);
    while (number(db, INSERTS) == tried) /* it still does */
        nanosleep(&nap, NULL);
    run(application, "ROLLBACK");
    pthread_join(thread, &rc);
    assert_int_equal((intptr_t)rc, 1);
    db_free(application);
    db_free(other);
}

static void *hold_next_id(void *arg)
{
    run(arg, "INSERT INTO dq_task (tag, expected_time, create_time, message_body)"
             " SELECT 'x', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), '' FROM"
             " (SELECT 1 UNION SELECT 2 UNION SELECT 3) n WHERE SLEEP(0.3) = 0");
    return NULL;
}

/* MariaDB keeps its lock on the next id from the first row to the last. */
static void an_add_with_a_key_outlasts_a_lock_on_the_next_id(void **state)
{
    struct db *application = harness_db();
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, hold_next_id, application), 0);
    for (int i = 0; !number(db, "SELECT COUNT(*) FROM dq_task WHERE tag = 'x'"); i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        ok(add_key(key, "", KEY_ERROR));
    }
    pthread_join(thread, NULL);
    db_free(application);
}

static void *lock_table(void *arg)
{
    run(arg, "LOCK TABLES dq_task WRITE");
    return NULL;
}

static void await(const char *statement)
{
    while (!number(db, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%s%%'",
                   statement))
        nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static void *add_long(void *arg)
{
    static const char body[20000] = "long";
    const struct task_new t = {
        .tag = "t", .body = body, .body_size = sizeof body, .expected_at = TASK_TIME_NONE};
    struct err why = {0};
    return (void *)(intptr_t)task_add(arg, &t, KEY_ERROR, &added, &why);
}

/* The INSERT waits for a row, LOCK TABLES for it, and what reads the task for LOCK TABLES. */
static void an_add_that_cannot_be_read_is_stored(void **state)
{
    static const struct db_session brief = {.lock_wait_s = 60, .table_wait_s = 1, .idle_s = 3600};
    struct db *application = harness_db(), *dba = harness_db(), *other = db_new(harness_conf);
    pthread_t adds, locks;
    void *rc;
    (void)state;
    db_session_set(other, &brief);
    run(application, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    run(application, "START TRANSACTION");
    number(application, "SELECT COUNT(*) FROM dq_task WHERE id > 0 FOR UPDATE");
    assert_int_equal(pthread_create(&adds, NULL, add_long, other), 0);
    await("INSERT INTO dq_task");
    assert_int_equal(pthread_create(&locks, NULL, lock_table, dba), 0);
    await("LOCK TABLES");
    run(application, "ROLLBACK");
    pthread_join(adds, &rc);
    pthread_join(locks, NULL);
    run(dba, "UNLOCK TABLES");
    assert_int_equal((intptr_t)rc, 1);
    assert_int_equal(number(db, "SELECT id FROM dq_task"), (int64_t)added.id);
    assert_true(added.now_at == TASK_TIME_NONE);
    db_free(application);
    db_free(dba);
    db_free(other);
}

/* An answer that is lost before the commit: it is replaced once, with one record. */
static void a_replacement_that_cannot_be_read_is_none(void **state)
{
    struct event_act act = {.token = "t", .actor = "a", .verb = "replace", .tag = "t"};
    const struct task_new t = {
        .tag = "t", .key = "k", .body = "", .expected_at = TASK_TIME_NONE, .act = &act};
    struct proxy *p = proxy_new();
    (void)state;
    ok(add_key("k", "old", KEY_ERROR));
    proxy_cut(p, "FROM dq_task WHERE id = ", true);
    ok(task_add(proxy_db(p), &t, KEY_REPLACE, &added, &err));
    assert_int_equal(proxy_cuts(p), 1);
    assert_true(added.replaced);
    assert_one("dq_task WHERE version = 1");
    assert_one("dq_event");
    proxy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(add_any_bytes, harness_setup),
        cmocka_unit_test_setup(the_delay_counts_from_the_databases_clock, harness_setup),
        cmocka_unit_test_setup(a_plain_insert_with_a_key_is_unique_while_it_lives, harness_setup),
        cmocka_unit_test_setup(a_live_key_is_kept_refused_or_replaced, harness_setup),
        cmocka_unit_test_setup(many_are_added_all_or_none, harness_setup),
        cmocka_unit_test_setup(the_packet_limit_is_that_of_the_body, harness_setup),
        cmocka_unit_test_setup(a_batch_fits_into_small_packets, harness_setup),
        cmocka_unit_test_setup(long_bodies_need_no_prepared_statement, harness_setup),
        cmocka_unit_test_setup(a_lost_answer_stores_one_long_task, harness_setup),
        cmocka_unit_test_setup(a_lost_answer_stores_one_task, harness_setup),
        cmocka_unit_test_setup(a_lost_commit_stores_the_batch_once, harness_setup),
        cmocka_unit_test_setup(an_add_whose_every_try_is_lost, harness_setup),
        cmocka_unit_test_setup(an_add_that_waits_for_a_key_keeps_no_other_waiting, harness_setup),
        cmocka_unit_test_setup(an_add_with_a_key_outlasts_a_lock_on_the_next_id, harness_setup),
        cmocka_unit_test_setup(an_add_that_cannot_be_read_is_stored, harness_setup),
        cmocka_unit_test_setup(a_replacement_that_cannot_be_read_is_none, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
