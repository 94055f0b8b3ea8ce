/* Migrations: once, by many at a time, never backwards. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

static const struct conf_mysql *conf_for(const char *database)
{
    static struct conf_mysql c;
    c = *harness_conf;
    c.database = (char *)(uintptr_t)database;
    return &c;
}

static void count(const struct schema_migration *m, void *arg)
{
    assert_int_equal(m->number, ++*(int *)arg);
}

static void init_creates_the_database_and_does_nothing_twice(void **state)
{
    struct db *d = db_new(conf_for("dq_fresh"));
    int applied = 0, from = -1, version;
    (void)state;
    assert_int_equal(db_connect(d, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "dq init"));
    ok(schema_migrate(d, count, &applied, &from, &err));
    assert_int_equal(from, 0);
    assert_int_equal(applied, schema_latest);
    ok(schema_check(d, &err));
    run(d,
        "INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES ('t', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))");
    ok(schema_migrate(d, count, NULL, &from, &err));
    assert_int_equal(from, schema_latest);
    ok(schema_version(d, &version, &err));
    assert_int_equal(version, schema_latest);
    assert_int_equal(number(d, "SELECT COUNT(*) FROM dq_task"), 1);
    db_free(d);
}

static void a_missing_schema_says_what_to_do(void **state)
{
    struct db *d = db_new(conf_for("dq_bare"));
    int version = -1;
    (void)state;
    run(db, "CREATE DATABASE dq_bare");
    assert_int_equal(schema_check(d, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "run dq init"));
    ok(schema_version(d, &version, &err));
    assert_int_equal(version, 0);
    db_free(d);
}

static void a_newer_schema_is_refused(void **state)
{
    struct db *d = db_new(conf_for("dq_newer"));
    int from, version;
    (void)state;
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    run(d, "UPDATE dq_meta SET value = '%d'", schema_latest + 1);
    assert_int_equal(schema_check(d, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "newer dq"));
    assert_int_equal(schema_version(d, &version, &err), ERR_CONFIG);
    assert_int_equal(schema_migrate(d, NULL, NULL, &from, &err), ERR_CONFIG);
    assert_int_equal(number(d, "SELECT value FROM dq_meta"), schema_latest + 1);
    db_free(d);
}

static void a_broken_off_migration_is_taken_up_again(void **state)
{
    struct db *d = db_new(conf_for("dq_half"));
    int from = -1;
    (void)state;
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    run(d, "DELETE FROM dq_meta");
    run(d, "DROP TABLE dq_poller");
    assert_int_equal(schema_check(d, &err), ERR_CONFIG);
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    assert_int_equal(from, 0);
    assert_int_equal(number(d, "SELECT COUNT(*) FROM dq_poller"), 0);
    ok(schema_check(d, &err));
    db_free(d);
}

struct caller {
    pthread_t thread;
    int rc, applied;
    struct err err;
};

static void add_one(const struct schema_migration *m, void *arg)
{
    (void)m;
    ++*(int *)arg;
}

static void *migrate(void *arg)
{
    struct caller *c = arg;
    struct conf_mysql conf = *harness_conf;
    char name[] = "dq_many";
    int from;

    conf.database = name;
    struct db *d = db_new(&conf);
    c->rc = schema_migrate(d, add_one, &c->applied, &from, &c->err);
    db_free(d);
    return NULL;
}

static void concurrent_inits_apply_each_migration_once(void **state)
{
    struct caller callers[8] = {{0}};
    int applied = 0;
    (void)state;
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&callers[i].thread, NULL, migrate, &callers[i]), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(callers[i].thread, NULL);
        if (callers[i].rc)
            print_error("%s\n", callers[i].err.text);
        assert_int_equal(callers[i].rc, 0);
        applied += callers[i].applied;
    }
    assert_int_equal(applied, schema_latest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_creates_the_database_and_does_nothing_twice),
        cmocka_unit_test(a_missing_schema_says_what_to_do),
        cmocka_unit_test(a_newer_schema_is_refused),
        cmocka_unit_test(a_broken_off_migration_is_taken_up_again),
        cmocka_unit_test(concurrent_inits_apply_each_migration_once),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
