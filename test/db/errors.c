/* Errors of statements: their classes, and what a deadlock or a broken connection leaves behind. */
#include "harness.h"
#include "store/db/db_connect.h"

#include <inttypes.h>
#include <pthread.h>

static int query(struct db *d, const char *text)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows = NULL;

    buf_str(&sql, text);
    int rc = db_query(d, &sql, 1, false, &rows, &err);
    while (rc >= 0 && (rc = db_rows_next(rows, &err)) == 1)
        ;
    db_rows_free(rows);
    buf_done(&sql);
    return rc;
}

static void errors_have_classes_and_say_no_data(void **state)
{
    static const struct {
        const char *sql;
        int code;
        bool stays;
    } cases[] = {
        {"SELEC 'secret'", ERR_FATAL, true},
        {"SELECT secret_column FROM dq_task", ERR_CONFIG, true},
        {"SELECT 1 FROM dq_absent", ERR_CONFIG, true},
        {"INSERT INTO dq_meta VALUES ('schema_version', 'secret')", ERR_DUPLICATE, true},
        {"INSERT INTO dq_limit (name, pause_reason, update_time) VALUES ('t', 'secret', 'secret')",
         ERR_DATA, true},
        {"INSERT INTO dq_meta VALUES (REPEAT('secret', 100), 'x')", ERR_DATA, true},
        {"SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'secret'", ERR_TRANSIENT,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'secret'", ERR_LOCKED,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1020, MESSAGE_TEXT = 'secret'", ERR_TRANSIENT,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table ''a'' is full'",
         ERR_CONFIG, true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT ="
         " 'The table ''dq_task'' is full'",
         ERR_UNAVAILABLE, true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'secret --read-only'",
         ERR_UNAVAILABLE, false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1792, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1836, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1047, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1053, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1036, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1412, MESSAGE_TEXT = 'secret'", ERR_TRANSIENT,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1461, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1615, MESSAGE_TEXT = 'secret'", ERR_TRANSIENT,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1820, MESSAGE_TEXT = 'secret'", ERR_DENIED,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1862, MESSAGE_TEXT = 'secret'", ERR_DENIED,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1874, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 3032, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 3168, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 3169, MESSAGE_TEXT = 'secret'", ERR_LOST,
         false},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 3572, MESSAGE_TEXT = 'secret'", ERR_LOCKED,
         true},
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 6400, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct db *d = harness_db();
        int rc = exec(d, cases[i].sql);
        if (rc != cases[i].code)
            print_error("%s: %d, not %d\n", cases[i].sql, rc, cases[i].code);
        assert_int_equal(rc, cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_int_equal(db_connected(d), cases[i].stays);
        assert_null(strstr(err.text, cases[i].code == ERR_CONFIG ? "'secret'" : "secret"));
        assert_int_equal(query(d, "SELECT 1"), 0); /* usable again */
        db_free(d);
    }
    struct db *d = harness_db();
    run(db, "KILL %" PRId64, number(d, "SELECT CONNECTION_ID()"));
    assert_int_equal(query(d, "SELECT 1"), ERR_LOST);
    assert_int_equal(query(d, "SELECT 1"), 0);
    db_free(d);
}

/* Two sessions lock two rows in opposite orders. */
struct other {
    struct db *d;
    int rc;
};

static void *lock_both(void *arg)
{
    struct other *o = arg;
    struct buf sql = BUF_INIT;
    struct err why;

    buf_str(&sql, "UPDATE dq_task SET pid = 1 WHERE tag = 'a'");
    o->rc = db_exec(o->d, &sql, NULL, &why);
    buf_done(&sql);
    return NULL;
}

static void after_a_deadlock_no_transaction_is_open(void **state)
{
    struct db *mine = harness_db();
    struct other o = {harness_db(), 0};
    pthread_t thread;
    (void)state;
    uint64_t a = add("a", NULL, 0), b = add("b", NULL, 0);
    /* whichever comes first: the deadlock is found, nobody gives up before */
    run(mine, "SET SESSION innodb_lock_wait_timeout = 60");
    run(o.d, "SET SESSION innodb_lock_wait_timeout = 60");
    ok(db_begin(mine, &err));
    ok(db_begin(o.d, &err));
    run(mine, "UPDATE dq_task SET pid = 2 WHERE id = %" PRIu64, a);
    run(o.d, "UPDATE dq_task SET pid = 1 WHERE id = %" PRIu64, b);
    assert_int_equal(pthread_create(&thread, NULL, lock_both, &o), 0);
    int rc = exec(mine, "UPDATE dq_task SET pid = 2 WHERE tag = 'b'");
    if (rc == 0)
        ok(db_end(mine, 0, &err)); /* the other one was the victim, or waits for us */
    pthread_join(thread, NULL);
    if (o.rc == 0)
        ok(db_end(o.d, 0, &err));
    assert_true(rc == ERR_TRANSIENT || o.rc == ERR_TRANSIENT);
    struct db *victim = rc == ERR_TRANSIENT ? mine : o.d;
    run(victim, "UPDATE dq_task SET pid = 3");
    /* committed by itself */
    assert_int_equal(
        number(victim == mine ? o.d : db, "SELECT COUNT(*) FROM dq_task WHERE pid = 3"), 2);
    db_free(o.d);
    db_free(mine);
}

static void a_transaction_does_not_go_on_elsewhere(void **state)
{
    struct proxy *p = proxy_new();
    struct db *d = proxy_db(p);
    (void)state;
    ok(db_begin(d, &err));
    run(d, "INSERT INTO dq_limit (name) VALUES ('first')");
    proxy_cut(p, "SELECT 'cut'", true);
    assert_int_equal(query(d, "SELECT 'cut'"), ERR_LOST);
    assert_int_equal(exec(d, "INSERT INTO dq_limit (name) VALUES ('second')"), ERR_LOST);
    assert_int_equal(db_end(d, 0, &err), ERR_LOST);
    run(d, "INSERT INTO dq_limit (name) VALUES ('third')");
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_limit WHERE name = 'third'"), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_limit"), 1);
    proxy_free(p);
}

/* The statement waits for a row lock when its connection breaks. It must not take effect after the
 * new connection has looked. */
static void what_a_broken_connection_left_running_is_killed(void **state)
{
    struct conf_mysql conf = *harness_conf;
    struct db *d = db_new(&conf), *blocker = harness_db();
    (void)state;
    add("t", NULL, 0);
    ok(db_connect(d, &err));
    run(d, "SET SESSION innodb_lock_wait_timeout = 60");
    run(d, "SET SESSION net_read_timeout = 60");
    conf.read_timeout_ms = 3000;
    db_close(d);
    ok(db_connect(d, &err)); /* gives up after three seconds, long before the server does */
    run(d, "SET SESSION innodb_lock_wait_timeout = 60");
    ok(db_begin(blocker, &err));
    run(blocker, "UPDATE dq_task SET pid = 1");
    assert_int_equal(exec(d, "UPDATE dq_task SET pid = 99"), ERR_LOST);
    ok(db_connect(d, &err));
    assert_int_equal(
        number(
            d,
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'UPDATE dq_task SET pid = 99%%'"),
        0);
    ok(db_end(blocker, 0, &err));
    assert_int_equal(number(db, "SELECT pid FROM dq_task"), 1);
    db_free(blocker);
    db_free(d);
}

static void a_streamed_result_that_breaks_is_an_error(void **state)
{
    struct buf sql = BUF_INIT;
    struct db *d = harness_db();
    struct db_rows *rows;
    int rc;
    (void)state;
    buf_printf(&sql, "SELECT seq, REPEAT('x', 1000) FROM %s", numbers(200000));
    ok(db_query(d, &sql, 2, true, &rows, &err));
    assert_int_equal(db_rows_next(rows, &err), 1);
    run(db, "KILL %" PRId64,
        number(
            db,
            "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT seq, REPEAT%%'"));
    while ((rc = db_rows_next(rows, &err)) == 1)
        ;
    assert_int_equal(rc, ERR_LOST);
    assert_int_equal(db_rows_next(rows, &err), 0);
    db_rows_free(rows);
    assert_false(db_connected(d));
    buf_done(&sql);
    db_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(errors_have_classes_and_say_no_data, harness_setup),
        cmocka_unit_test_setup(after_a_deadlock_no_transaction_is_open, harness_setup),
        cmocka_unit_test_setup(a_transaction_does_not_go_on_elsewhere, harness_setup),
        cmocka_unit_test_setup(what_a_broken_connection_left_running_is_killed, harness_setup),
        cmocka_unit_test_setup(a_streamed_result_that_breaks_is_an_error, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
