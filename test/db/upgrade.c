/* Migrations of a next release (test/upgrade/sql, linked before the library's): from anywhere they
 * may have broken off, beside the work on the tables, and never on tables of others. */
#include "harness.h"
#include "store/db/db_session.h"

#include <pthread.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#define NEXT 2 /* migrations of the next release */
#define INSERT                                                                                     \
    "INSERT INTO dq_task (tag, message_body, expected_time, create_time)"                          \
    " VALUES ('t', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"

static const struct conf_mysql *conf_for(const char *database)
{
    static struct conf_mysql c;
    c = *harness_conf;
    c.database = (char *)(uintptr_t)database;
    return &c;
}

/* Runs a script's statements until *left of them have been run. */
static void run_some(struct db *d, const struct schema_migration *m, int *left)
{
    struct buf script = BUF_INIT, sql = BUF_INIT;

    schema_put_script(&script, m);
    const char *text = script.data;
    while (*left > 0 && schema_next_statement(&text, &sql)) {
        ok(db_exec(d, &sql, NULL, &err));
        --*left;
    }
    buf_done(&script);
    buf_done(&sql);
}

/* A database as the present release makes it, after so many statements of the next one; *left: how
 * many there were too few. */
static struct db *upgraded_by(const char *name, int *left)
{
    int all = INT_MAX;

    run(db, "DROP DATABASE IF EXISTS %s", name);
    run(db, "CREATE DATABASE %s", name);
    struct db *d = db_new(conf_for(name));
    for (int i = 0; i < schema_latest; i++)
        run_some(d, &schema_migrations[i], i < schema_latest - NEXT ? &all : left);
    return d;
}

static struct db *released(const char *name)
{
    int none = 0;
    return upgraded_by(name, &none);
}

static void a_migration_is_taken_up_from_each_of_its_statements(void **state)
{
    int statements = 0, from, left;
    (void)state;
    do {
        left = statements++;
        struct db *d = upgraded_by("dq_broken_off", &left);
        int rc = schema_migrate(d, NULL, NULL, &from, &err);
        if (rc < 0)
            print_error("after %d statements: %s\n", statements - 1, err.text);
        assert_int_equal(rc, 0);
        ok(schema_check(d, &err));
        assert_int_equal(number(d, "SELECT COUNT(*) FROM dq_extra"), 0);
        db_free(d);
    } while (left == 0);
    assert_true(statements > 2 * NEXT + 10);
}

static void an_alter_whose_answer_was_lost_is_found_done(void **state)
{
    struct proxy *p = proxy_new();
    struct db *d = released("dq"), *cut = proxy_db(p);
    int from;
    (void)state;
    proxy_cut(p, "ADD KEY made", true);
    assert_int_equal(schema_migrate(cut, NULL, NULL, &from, &err), ERR_LOST);
    assert_int_equal(proxy_cuts(p), 1);
    assert_non_null(strstr(err.text, "migration next_indexes: "));
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    assert_int_equal(from, schema_latest - 1);
    db_free(d);
    proxy_free(p);
}

static bool is_galera(struct db *d)
{
    return session_status(d, "= 'wsrep_cluster_size'") > 0;
}

struct plan {
    int count, instant, waits;
    char tables[400];
};

static void note(const struct schema_migrate_step *s, void *arg)
{
    struct plan *p = arg;

    p->count++;
    p->instant += s->touched == 0;
    p->waits += s->writers_wait;
    if (s->table)
        snprintf(p->tables + strlen(p->tables), sizeof p->tables - strlen(p->tables), "%s ",
                 s->table);
}

static void a_plan_lists_what_is_left_and_changes_nothing(void **state)
{
    struct plan before = {0}, after = {0};
    int left = 3, from;
    struct db *d = upgraded_by("dq_plan", &left); /* the compat, and the first two of 5 */
    (void)state;
    bool galera = is_galera(d);
    int64_t columns = number(d, "SELECT COUNT(*) FROM information_schema.columns");
    ok(schema_migrate_plan(d, note, &before, &from, &err));
    assert_int_equal(from, schema_latest - NEXT);
    assert_int_equal(before.count, 3 + 7);
    assert_int_equal(before.waits, galera ? 5 : 0); /* those that are INPLACE */
    assert_string_equal(before.tables, "dq_limit dq_attempt dq_extra "
                                       "dq_task dq_extra dq_extra dq_attempt dq_limit dq_attempt ");
    assert_int_equal(number(d, "SELECT COUNT(*) FROM information_schema.columns"), columns);
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    ok(schema_migrate_plan(d, note, &after, &from, &err));
    assert_int_equal(after.count, 0);
    assert_int_equal(from, schema_latest);
    db_free(d);
}

static void a_part_of_others_by_a_name_of_the_next_release_is_refused(void **state)
{
    static const struct {
        const char *statement, *said;
    } cases[] = {
        {"ALTER TABLE dq_task ADD trace int NULL", "column dq_task.trace is int, not varchar(64) "},
        {"ALTER TABLE dq_attempt ADD UNIQUE KEY ended (finish_time)",
         "index dq_attempt.ended is unique (finish_time), not (finish_time)"},
        {"CREATE TABLE dq_extra (id int PRIMARY KEY)",
         "column dq_extra.id is int NOT NULL, not bigint unsigned NOT NULL"},
        {"CREATE TABLE dq_extra (k int)", "column dq_extra.id is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct db *d = released("dq_theirs");
        int from;
        run(d, "%s", cases[i].statement);
        assert_int_equal(schema_migrate(d, NULL, NULL, &from, &err), ERR_CONFIG);
        if (!strstr(err.text, cases[i].said))
            print_error("%s: %s\n", cases[i].statement, err.text);
        assert_non_null(strstr(err.text, cases[i].said));
        assert_int_equal(number(d, "SELECT value FROM dq_meta WHERE name = 'schema_version'"),
                         schema_latest - NEXT);
        db_free(d);
    }
}

/* Such a table knows no instant change. */
static void a_table_that_cannot_be_changed_instantly_is_rebuilt_online(void **state)
{
    struct db *d = released("dq_compressed");
    int from;
    (void)state;
    run(d, "ALTER TABLE dq_task ROW_FORMAT=COMPRESSED");
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    assert_int_equal(from, schema_latest - NEXT);
    db_free(d);
}

static void what_would_make_writers_wait_is_not_done(void **state)
{
    struct db *d = released("dq_offline");
    int from;
    (void)state;
    run(d, "ALTER TABLE dq_task ROW_FORMAT=COMPRESSED");
    run(d, "ALTER TABLE dq_task ADD FULLTEXT KEY words (error_stack)");
    assert_int_equal(schema_migrate(d, NULL, NULL, &from, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "migration next_columns: "));
    assert_non_null(strstr(err.text, "only while nobody writes to it: see doc/upgrading"));
    assert_int_equal(number(d, "SELECT @@SESSION.lock_wait_timeout"),
                     (int)((const struct db_session)DB_SESSION_DEFAULT).table_wait_s);
    run(d, "ALTER TABLE dq_task DROP KEY words");
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    db_free(d);
}

struct migrating {
    pthread_t thread;
    struct db *db;
    int rc;
    struct err err;
};

static void *migrate(void *arg)
{
    struct migrating *m = arg;
    int from;

    m->rc = schema_migrate(m->db, NULL, NULL, &from, &m->err);
    return NULL;
}

static bool alter_waits(void)
{
    return number(db, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'dq_busy'"
                      " AND state LIKE 'Waiting for table metadata lock%%'") > 0;
}

/* The ALTER waits for the transaction, and everybody else for the ALTER: not for long. On Galera it
 * does not wait: the server rolls the transaction back. */
static void an_open_transaction_delays_the_migration_not_the_producers(void **state)
{
    struct migrating m = {.db = released("dq_busy")};
    struct db *holder = db_new(conf_for("dq_busy")), *producer = db_new(conf_for("dq_busy"));
    int64_t longest = 0;
    (void)state;
    ok(db_begin(holder, &err));
    run(holder, INSERT);
    if (is_galera(holder)) {
        migrate(&m);
        assert_int_equal(m.rc, 0);
        assert_int_equal(db_end(holder, 0, &err), ERR_TRANSIENT);
        run(producer, INSERT);
        assert_int_equal(number(producer, "SELECT COUNT(*) FROM dq_task"), 1);
        goto out;
    }
    assert_int_equal(pthread_create(&m.thread, NULL, migrate, &m), 0);
    for (int waits = 0; waits < 2; waits++) {
        while (!alter_waits())
            ;
        int64_t since = when_steady();
        run(producer, INSERT);
        longest = MAX(longest, when_steady() - since);
        while (alter_waits())
            ;
    }
    ok(db_end(holder, 0, &err));
    pthread_join(m.thread, NULL);
    if (m.rc < 0)
        print_error("%s\n", m.err.text);
    assert_int_equal(m.rc, 0);
    assert_true(longest < 10000);
out:
    db_free(holder);
    db_free(producer);
    db_free(m.db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_migration_is_taken_up_from_each_of_its_statements),
        cmocka_unit_test(an_alter_whose_answer_was_lost_is_found_done),
        cmocka_unit_test(a_plan_lists_what_is_left_and_changes_nothing),
        cmocka_unit_test(a_part_of_others_by_a_name_of_the_next_release_is_refused),
        cmocka_unit_test(a_table_that_cannot_be_changed_instantly_is_rebuilt_online),
        cmocka_unit_test(what_would_make_writers_wait_is_not_done),
        cmocka_unit_test(an_open_transaction_delays_the_migration_not_the_producers),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
