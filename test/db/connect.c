/* Connections: what a session is like, whatever the settings, and which accounts and databases are
 * refused. */
#include "harness.h"
#include "store/db/db_connect.h"
#include "store/db/db_handle.h"
#include "store/db/db_latest.h"
#include "store/db/db_put.h"
#include "store/db/db_session.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

static unsigned tcp[TCP_USER_TIMEOUT + 1], keepalive; /* the values set */

/* Stands before the C library's. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    unsigned number = 0;

    memcpy(&number, value, MIN(size, sizeof number));
    if (level == IPPROTO_TCP && name <= TCP_USER_TIMEOUT)
        tcp[name] = number;
    if (level == SOL_SOCKET && name == SO_KEEPALIVE)
        keepalive = number;
    return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}

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

/* On the same connection: a session that cannot be set back is closed. */
static void a_session_that_has_not_waited_waits_again(void **state)
{
    static const struct db_session patient = {.lock_wait_s = 7, .table_wait_s = 9, .idle_s = 3600};
    struct db *d = db_new(harness_conf);
    (void)state;
    db_session_set(d, &patient);
    ok(db_connect(d, &err));
    int64_t session = number(d, "SELECT CONNECTION_ID()");
    ok(db_session_wait_not(d, &err));
    assert_int_equal(number(d, "SELECT @@innodb_lock_wait_timeout"), db_is_mariadb(d) ? 0 : 7);
    db_session_wait(d);
    assert_true(db_connected(d));
    assert_int_equal(number(d, "SELECT @@innodb_lock_wait_timeout"), 7);
    db_session_brief(d, true);
    assert_int_equal(number(d, "SELECT @@lock_wait_timeout"), 1);
    db_session_brief(d, false);
    assert_int_equal(number(d, "SELECT @@lock_wait_timeout"), 9);
    assert_int_equal(number(d, "SELECT CONNECTION_ID()"), session);
    run(db, "KILL %" PRId64, session);
    db_session_wait(d);
    assert_int_equal(db_connected(d), !db_is_mariadb(d));
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
    fchmod(fd, 0620); /* it could name a library */
    d = db_new(&conf);
    assert_int_equal(db_connect(d, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "others can write to the MySQL option file"));
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

/* A statement after the one that found the connection broken would be committed alone. */
static void the_rest_of_a_transaction_does_not_run_on_a_new_connection(void **state)
{
    static const char *const insert = "INSERT INTO dq_meta (name, value) VALUES ('connect', '1')";
    struct db *d = harness_db();
    (void)state;
    ok(db_begin(d, &err));
    run(db, "KILL %" PRId64, number(d, "SELECT CONNECTION_ID()"));
    assert_int_equal(exec(d, insert), ERR_LOST);
    assert_int_equal(exec(d, insert), ERR_LOST);
    assert_false(db_connected(d));
    assert_int_equal(db_end(d, 0, &err), ERR_LOST);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_meta WHERE name = 'connect'"), 0);
    ok(db_begin(d, &err));
    ok(db_end(d, exec(d, "DO 0"), &err));
    db_free(d);
}

static int times_away;
static void away(const struct err *why, void *arg)
{
    (void)why;
    (void)arg;
    times_away++;
}

/* The pauses begin with 50 ms and double up to a second. Each lasts from half of that to one and a
 * half: the shortest six take 1.275 s. */
static void a_lost_server_is_asked_less_and_less_often_and_not_for_ever(void **state)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct db *d = db_new(harness_conf);
    int64_t began = when_steady();
    int tries = 0;
    (void)state;
    db_connect_patiently(d, 1200, away, NULL);
    assert_false(db_connect_again(d, ERR_DENIED, &err));
    for (; db_connect_again(d, ERR_UNAVAILABLE, &err); tries++)
        nanosleep(&moment, NULL);
    assert_in_range(tries, 1, 6);
    assert_true(when_steady() - began >= 1200);
    assert_non_null(strstr(err.text, "; tried for 1.2s"));
    assert_int_equal(times_away, 1);
    assert_false(db_connect_again(d, ERR_UNAVAILABLE, &err));
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

/* A statement that is in a trigger when its connection breaks is not taken for gone: to the server
 * the connection then belongs to the trigger's definer. Nothing is stored a second time. */
static void a_statement_in_a_trigger_is_waited_for(void **state)
{
    const struct task_new t = {
        .tag = "t", .body = "b", .body_size = 1, .expected_at = TASK_TIME_NONE};
    (void)state;
    for (int sees_all = 0; sees_all < 2; sees_all++) {
        struct conf_mysql conf = *harness_conf;
        struct db *d = db_new(&conf);
        struct task_added added;
        harness_setup(NULL);
        as_root("%s PROCESS ON *.* %s '%s'@'localhost'", sees_all ? "GRANT" : "REVOKE",
                sees_all ? "TO" : "FROM", conf.user);
        assert_int_equal(number(db, "SELECT GET_LOCK('dq_trigger', 0)"), 1);
        as_root("CREATE TRIGGER dq_waits BEFORE INSERT ON dq_task FOR EACH ROW "
                "WHILE IS_USED_LOCK('dq_trigger') IS NOT NULL DO DO SLEEP(0.01); END WHILE");
        conf.read_timeout_ms = 1000;
        assert_int_equal(task_add(d, &t, KEY_ERROR, &added, &err), ERR_LOST);
        assert_non_null(strstr(err.text, "it is not known"));
        assert_non_null(strstr(err.text, "still running a statement"));
        number(db, "SELECT RELEASE_LOCK('dq_trigger')");
        while (!number(db, "SELECT COUNT(*) FROM dq_task")) /* Galera's DROP would roll it back */
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        as_root("DROP TRIGGER dq_waits");
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 1);
        db_free(d);
    }
    as_root("REVOKE PROCESS ON *.* FROM '%s'@'localhost'", harness_conf->user);
}

/* A server that was restarted soon may have given the id of the broken connection to that of an
 * account which this one may not kill. Only if it is the same start as before, it may be ours, in a
 * trigger. */
static void a_connection_of_another_account_is_not_waited_for_after_a_restart(void **state)
{
    struct conf_mysql conf = *harness_conf;
    char root[] = "root";
    (void)state;
    conf.user = root;
    for (int sees_all = 0; sees_all < 2; sees_all++) {
        struct db *d = db_new(harness_conf), *other = db_new(&conf);
        db_session_set(d, &(struct db_session){.table_wait_s = 1, .idle_s = 3600, .lasts = true});
        as_root("%s PROCESS ON *.* %s '%s'@'localhost'", sees_all ? "GRANT" : "REVOKE",
                sees_all ? "TO" : "FROM", harness_conf->user);
        ok(db_connect(d, &err));
        const int64_t start_s = d->start_s;
        assert_in_range(number(d, "SELECT UNIX_TIMESTAMP()") - start_s, 0, 86400);
        d->orphan = (unsigned long)number(other, "SELECT CONNECTION_ID()");
        d->orphan_identity = d->identity;
        for (int restarted = 0; restarted < 2; restarted++) {
            d->orphan_since = when_steady();
            d->orphan_start_s = start_s - restarted;
            db_close(d);
            assert_int_equal(db_connect(d, &err), restarted || sees_all ? 0 : ERR_UNAVAILABLE);
        }
        assert_int_equal(number(other, "SELECT 1"), 1);
        db_free(other);
        db_free(d);
    }
    as_root("REVOKE PROCESS ON *.* FROM '%s'@'localhost'", harness_conf->user);
}

/* The kernel's own values are hours, and a minute between two questions. */
static void a_silent_host_is_asked_in_time(void **state)
{
    const unsigned most_ms = (unsigned)harness_conf->unacknowledged_ms;
    (void)state;
    memset(tcp, 0, sizeof tcp);
    keepalive = 0;
    db_free(harness_db());
    assert_int_equal(keepalive, 1);
    assert_int_equal(tcp[TCP_USER_TIMEOUT], most_ms);
    assert_in_range(tcp[TCP_KEEPIDLE], 1, MAX(1, most_ms / 2000));
    assert_in_range(tcp[TCP_KEEPINTVL], 1, MAX(1, most_ms / 2000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_session_is_as_the_store_expects, harness_setup),
        cmocka_unit_test_setup(init_command_does_not_change_what_the_store_expects, harness_setup),
        cmocka_unit_test_setup(a_session_waits_as_long_as_its_owner_says, harness_setup),
        cmocka_unit_test_setup(a_session_that_has_not_waited_waits_again, harness_setup),
        cmocka_unit_test_setup(an_option_file_does_not_change_the_character_set, harness_setup),
        cmocka_unit_test_setup(literals_hold_any_bytes, harness_setup),
        cmocka_unit_test_setup(a_wrong_init_command_is_a_fault_of_the_settings, harness_setup),
        cmocka_unit_test_setup(refused_accounts_and_databases_are_told_apart, harness_setup),
        cmocka_unit_test_setup(the_rest_of_a_transaction_does_not_run_on_a_new_connection,
                               harness_setup),
        cmocka_unit_test(a_lost_server_is_asked_less_and_less_often_and_not_for_ever),
        cmocka_unit_test_setup(a_silent_host_is_asked_in_time, harness_setup),
        cmocka_unit_test_setup(a_connection_of_another_account_is_not_waited_for_after_a_restart,
                               harness_setup),
        cmocka_unit_test_setup(a_look_up_waits_for_the_cluster, harness_setup),
        cmocka_unit_test_setup(a_statement_in_a_trigger_is_waited_for, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
