/* Connections: what a session is like, what each failure becomes, what a broken one leaves
 * behind. */
#include "harness.h"
#include "store/db_connect.h"
#include "store/db_latest.h"
#include "store/db_put.h"
#include "store/db_session.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static int exec(struct db *d, const char *text)
{
    struct buf sql = BUF_INIT;

    buf_str(&sql, text);
    int rc = db_exec(d, &sql, NULL, &err);
    buf_done(&sql);
    return rc;
}

/* What a server's files, init_connect or init_command may have made of a session. */
static const char *const spoilt[] = {
    "SET autocommit = 0",
    "SET autocommit = 0, completion_type = 1",
    "START TRANSACTION",
    "SET NAMES latin1",
    "SET NAMES gbk",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI'",
    "SET sql_mode = ''",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET SESSION TRANSACTION READ ONLY",
    "SET sql_safe_updates = 1, sql_select_limit = 1, max_join_size = 1, sql_big_selects = 0",
    "SET timestamp = 1000000000",
    "SET innodb_lock_wait_timeout = 3600, lock_wait_timeout = 1, wait_timeout = 1, net_write_timeout = 1, net_read_timeout = 1",
    "SET /*M!100100 max_statement_time = 1, */ /*!50720 max_execution_time = 1, */ @dq = 1",
    "SET sql_auto_is_null = 1, unique_checks = 0, group_concat_max_len = 4",
    "SET lc_messages = 'de_DE'",
    "USE information_schema",
    "SELECT 1",
};

static void expect_session(struct db *d)
{
    static const char *const wanted[][2] = {
        {"autocommit", "ON"},
        {"character_set_client", "utf8mb4"},
        {"character_set_connection", "utf8mb4"},
        {"character_set_results", "utf8mb4"},
        {"completion_type", "NO_CHAIN"},
        {"group_concat_max_len", "1048576"},
        {"innodb_lock_wait_timeout", "2"},
        {"lc_messages", "en_US"},
        {"lock_wait_timeout", "20"},
        {"max_execution_time", "0"},
        {"max_join_size", "18446744073709551615"},
        {"max_statement_time", "0.000000"},
        {"net_read_timeout", "30"},
        {"net_write_timeout", "3600"},
        {"sql_auto_is_null", "OFF"},
        {"sql_big_selects", "ON"},
        {"sql_mode", "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"},
        {"sql_safe_updates", "OFF"},
        {"sql_select_limit", "18446744073709551615"},
        {"transaction_isolation", "READ-COMMITTED"},
        {"transaction_read_only", "OFF"},
        {"tx_isolation", "READ-COMMITTED"},
        {"tx_read_only", "OFF"},
        {"unique_checks", "ON"},
        {"wait_timeout", "3600"},
    };
    struct buf sql = BUF_INIT;
    struct db_rows *rows;
    size_t seen = 0;

    buf_str(&sql, "SHOW SESSION VARIABLES");
    ok(db_query(d, &sql, 2, false, &rows, &err));
    while (ok(db_rows_next(rows, &err)) == 1) {
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            if (!strcmp(db_string(rows, 0), wanted[i][0])) {
                assert_string_equal(db_string(rows, 1), wanted[i][1]);
                seen++;
            }
        }
    }
    db_rows_free(rows);
    buf_done(&sql);
    assert_true(seen >= sizeof wanted / sizeof *wanted - 3); /* names of some servers only */
    assert_int_equal(
        number(
            d,
            "SELECT ABS(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), CONVERT_TZ(SYSDATE(), @@session.time_zone, '+00:00'))) < 60"
            " AND DATABASE() = '%s'",
            harness_conf->database),
        1);
}

/* One task, whose tag, key and body come out as they went in, and which others see. */
static void expect_stored(struct db *d)
{
    static const char body[] = "\xbf', '1'); -- \\ \0\x1a\xf0\x9f\x90\x8c";
    struct task_new t = {.tag = "\xc3\xa9t\xc3\xa9",
                         .key = "k",
                         .body = body,
                         .body_size = sizeof body,
                         .expected_at = TASK_TIME_NONE};
    struct task_added added;
    struct task got;

    assert_int_equal(task_add(d, &t, KEY_ERROR, &added, &err), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 1);
    ok(task_get(db, added.id, &got, &err));
    assert_string_equal(got.tag, t.tag);
    assert_string_equal(got.key, t.key);
    assert_int_equal(got.body_size, t.body_size);
    assert_memory_equal(got.body, t.body, t.body_size);
    task_done(&got);
}

static void a_session_is_as_the_store_expects(void **state)
{
    (void)state;
    expect_session(db);
    add("t", NULL, 0);
    assert_int_equal(run(db, "UPDATE dq_task SET tag = 't'"), 1); /* matched, not changed */
    assert_int_not_equal(exec(db, "SELECT 1; SELECT 2"), 0);
}

static void init_command_does_not_change_what_the_store_expects(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        struct conf_mysql conf = *harness_conf;
        char *init = mem_strdup(spoilt[i]);
        struct db *d = db_new(&conf);
        conf.init_command = init;
        harness_setup(NULL);
        int rc = db_connect(d, &err);
        /* not every server has German messages */
        if (rc != ERR_CONFIG || !strstr(err.text, "lc_messages")) {
            print_message("# %s\n", init);
            ok(rc);
            expect_session(d);
            expect_stored(d);
        }
        db_free(d);
        free(init);
    }
}

static void a_session_waits_as_long_as_its_owner_says(void **state)
{
    static const struct db_session short_waits = {.lock_wait_s = 0, .table_wait_s = 3, .idle_s = 7};
    struct db *d = db_new(harness_conf);
    (void)state;
    db_session_set(d, &short_waits);
    ok(db_connect(d, &err));
    assert_int_equal(number(d, "SELECT @@innodb_lock_wait_timeout"), db_is_mariadb(d) ? 0 : 1);
    assert_int_equal(number(d, "SELECT @@lock_wait_timeout"), 3);
    assert_int_equal(number(d, "SELECT @@wait_timeout"), 7);
    assert_int_equal(number(d, "SELECT @@net_write_timeout"), 7);
    if (db_is_mariadb(d))
        assert_int_equal(number(d, "SELECT @@idle_transaction_timeout"), 7);
    db_free(d);
}

static void an_option_file_does_not_change_the_character_set(void **state)
{
    char path[] = "/tmp/dq-cnf.XXXXXX";
    struct conf_mysql conf = *harness_conf;
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    dprintf(fd, "[client]\ndefault-character-set=latin1\n");
    conf.defaults_file = path;
    struct db *d = db_new(&conf);
    expect_session(d);
    expect_stored(d);
    db_free(d);
    unlink(path);
    d = db_new(&conf);
    assert_int_equal(db_connect(d, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, path));
    db_free(d);
    close(fd);
}

static void literals_hold_any_bytes(void **state)
{
    struct buf sql = BUF_INIT;
    struct db_rows *rows;
    size_t len;
    (void)state;
    buf_str(&sql, "SELECT ");
    db_put_bytes(&sql, "\\'\"\0\n\x1a%_\xc3", 9);
    buf_chr(&sql, ',');
    db_put_text(&sql, "\\' OR 1=1 -- \xc3(\xa9\xc3\xa9");
    buf_chr(&sql, ',');
    db_put_text(&sql, "plain \"text\" ?");
    buf_chr(&sql, ',');
    db_put_bytes(&sql, "", 0);
    ok(db_query(db, &sql, 4, false, &rows, &err));
    assert_int_equal(db_rows_next(rows, &err), 1);
    assert_memory_equal(db_text(rows, 0, &len), "\\'\"\0\n\x1a%_\xc3", 9);
    assert_int_equal(len, 9);
    assert_string_equal(db_text(rows, 1, NULL), "\\' OR 1=1 -- ?(?\xc3\xa9");
    assert_string_equal(db_text(rows, 2, NULL), "plain \"text\" ?");
    assert_string_equal(db_text(rows, 3, &len), "");
    assert_int_equal(len, 0);
    db_rows_free(rows);
    buf_done(&sql);
}

static void a_wrong_init_command_is_a_fault_of_the_settings(void **state)
{
    struct conf_mysql conf = *harness_conf;
    char init[] = "SELEC 1";
    (void)state;
    conf.init_command = init;
    struct db *d = db_new(&conf);
    assert_int_equal(db_connect(d, &err), ERR_CONFIG);
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "init_command in [mysql]"));
    assert_false(db_connected(d));
    db_free(d);
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
        {"INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after)"
         " VALUES (1, 'secret', 'secret', 1, 1, 1, 1, 1, 1)",
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
        {"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'secret'", ERR_UNAVAILABLE,
         false},
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

static void refused_accounts_and_databases_are_told_apart(void **state)
{
    struct conf_mysql conf = *harness_conf;
    char nobody[] = "dq_nobody", absent[] = "dq_absent", nowhere[] = "/tmp/dq-no-such.sock";
    struct db *d = db_new(&conf);
    (void)state;
    conf.user = nobody;
    assert_int_equal(db_connect(d, &err), ERR_DENIED);
    conf = *harness_conf;
    conf.database = absent;
    assert_int_equal(db_connect(d, &err), ERR_CONFIG);
    conf = *harness_conf;
    conf.socket = nowhere;
    assert_int_equal(db_connect(d, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, nowhere));
    assert_false(db_connected(d));
    assert_string_equal(db_server(d), "not connected");
    char two[] = "127.0.0.1:1, [::1]:1";
    conf = *harness_conf;
    conf.host = two;
    assert_int_equal(db_connect(d, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "::1:1"));
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
    struct other o = {harness_db(), 0};
    pthread_t thread;
    (void)state;
    uint64_t a = add("a", NULL, 0), b = add("b", NULL, 0);
    ok(db_begin(db, &err));
    ok(db_begin(o.d, &err));
    run(db, "UPDATE dq_task SET pid = 2 WHERE id = %" PRIu64, a);
    run(o.d, "UPDATE dq_task SET pid = 1 WHERE id = %" PRIu64, b);
    assert_int_equal(pthread_create(&thread, NULL, lock_both, &o), 0);
    int rc = exec(db, "UPDATE dq_task SET pid = 2 WHERE tag = 'b'");
    if (rc == 0)
        ok(db_commit(db, &err)); /* the other one was the victim, or waits for us */
    pthread_join(thread, NULL);
    if (o.rc == 0)
        ok(db_commit(o.d, &err));
    assert_true(rc == ERR_TRANSIENT || o.rc == ERR_TRANSIENT);
    struct db *victim = rc == ERR_TRANSIENT ? db : o.d;
    run(victim, "UPDATE dq_task SET pid = 3");
    /* committed by itself */
    assert_int_equal(number(victim == db ? o.d : db, "SELECT COUNT(*) FROM dq_task WHERE pid = 3"),
                     2);
    db_free(o.d);
}

static void a_transaction_does_not_go_on_elsewhere(void **state)
{
    struct proxy *p = proxy_new();
    struct db *d = proxy_db(p);
    (void)state;
    ok(db_begin(d, &err));
    run(d, "INSERT INTO dq_tag (tag) VALUES ('first')");
    proxy_cut(p, "SELECT 'cut'", true);
    assert_int_equal(query(d, "SELECT 'cut'"), ERR_LOST);
    assert_int_equal(exec(d, "INSERT INTO dq_tag (tag) VALUES ('second')"), ERR_LOST);
    assert_int_equal(db_commit(d, &err), ERR_LOST);
    db_rollback(d);
    run(d, "INSERT INTO dq_tag (tag) VALUES ('third')");
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_tag WHERE tag = 'third'"), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_tag"), 1);
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
    conf.read_timeout_ms = 1000;
    db_close(d);
    ok(db_connect(d, &err)); /* gives up after a second, long before the server does */
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
    ok(db_commit(blocker, &err));
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

/* What another server of a cluster has committed is seen by a look-up, which waits for it; other
 * reads do not. */
static void a_look_up_waits_for_the_cluster(void **state)
{
    static const char *const exists =
        "SELECT COUNT(*) FROM information_schema.session_variables WHERE variable_name = 'WSREP_SYNC_WAIT'";
    struct db *d = harness_db();
    (void)state;
    if (!db_is_mariadb(d) || number(d, "%s", exists) == 0) {
        db_free(d);
        skip();
    }
    run(d, "SET SESSION wsrep_sync_wait = 4");
    ok(db_latest_begin(d, &err));
    assert_int_equal(number(d, "SELECT @@SESSION.wsrep_sync_wait"), 5);
    db_latest_end(d);
    assert_int_equal(number(d, "SELECT @@SESSION.wsrep_sync_wait"), 4);
    db_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_session_is_as_the_store_expects, harness_setup),
        cmocka_unit_test_setup(init_command_does_not_change_what_the_store_expects, harness_setup),
        cmocka_unit_test_setup(a_session_waits_as_long_as_its_owner_says, harness_setup),
        cmocka_unit_test_setup(an_option_file_does_not_change_the_character_set, harness_setup),
        cmocka_unit_test_setup(literals_hold_any_bytes, harness_setup),
        cmocka_unit_test_setup(a_wrong_init_command_is_a_fault_of_the_settings, harness_setup),
        cmocka_unit_test_setup(errors_have_classes_and_say_no_data, harness_setup),
        cmocka_unit_test_setup(refused_accounts_and_databases_are_told_apart, harness_setup),
        cmocka_unit_test_setup(after_a_deadlock_no_transaction_is_open, harness_setup),
        cmocka_unit_test_setup(a_transaction_does_not_go_on_elsewhere, harness_setup),
        cmocka_unit_test_setup(what_a_broken_connection_left_running_is_killed, harness_setup),
        cmocka_unit_test_setup(a_streamed_result_that_breaks_is_an_error, harness_setup),
        cmocka_unit_test_setup(a_look_up_waits_for_the_cluster, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
