/* Migrations: once, by many at a time, never backwards. */
#include "harness.h"
#include "store/db/db_connect.h"

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
    struct schema_range range;
    int applied = 0, from = -1;
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
    ok(schema_read(d, &range, &err));
    assert_int_equal(range.version, schema_latest);
    assert_int_equal(range.compat, schema_migrations[schema_latest - 1].compat);
    assert_int_equal(number(d, "SELECT COUNT(*) FROM dq_task"), 1);
    db_free(d);
}

static void the_row_format_of_the_server_does_not_matter(void **state)
{
    struct db *d = db_new(conf_for("dq_compact"));
    int from = -1;
    (void)state;
    as_root("SET GLOBAL innodb_default_row_format = compact");
    int rc = schema_migrate(d, NULL, NULL, &from, &err);
    as_root("SET GLOBAL innodb_default_row_format = dynamic");
    ok(rc);
    db_free(d);
}

static void a_missing_schema_says_what_to_do(void **state)
{
    struct db *d = db_new(conf_for("dq_bare"));
    (void)state;
    run(db, "CREATE DATABASE dq_bare");
    assert_int_equal(schema_check(d, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "run dq init"));
    db_free(d);
}

/* Records the range of another dq; what dq add in that database says: ERR_... or 1. */
static int add_with(struct db *d, int compat, int version)
{
    const struct task_new t = {.tag = "t", .body = "", .expected_at = TASK_TIME_NONE};
    struct task_added added;

    run(d, "UPDATE dq_meta SET value = IF(name = 'schema_version', '%d', '%d')", version, compat);
    int rc = schema_check(d, &err);
    assert_int_equal(task_add(d, &t, KEY_ERROR, &added, &err), rc < 0 ? rc : 1);
    return rc < 0 ? rc : 1;
}

static void programs_between_compat_and_version_work(void **state)
{
    struct db *d = db_new(conf_for("dq_range"));
    const int us = schema_latest;
    int from;
    (void)state;
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    assert_int_equal(add_with(d, us, us), 1);
    assert_int_equal(add_with(d, 1, us + 1), 1);
    assert_int_equal(add_with(d, us, us + 10), 1);
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    assert_int_equal(from, us + 10);
    assert_int_equal(add_with(d, us + 1, us + 10), ERR_CONFIG);
    assert_non_null(strstr(err.text, "made by a newer dq and compatible back to"));
    assert_non_null(strstr(err.text, "upgrade dq"));
    assert_int_equal(schema_migrate(d, NULL, NULL, &from, &err), ERR_CONFIG);
    assert_int_equal(add_with(d, 1, us - 1), ERR_CONFIG);
    assert_non_null(strstr(err.text, "run dq init"));
    assert_int_equal(number(d, "SELECT COUNT(*) FROM dq_task"), 3);
    db_free(d);
}

/* Written by a build from before there was one. */
static void a_missing_compat_is_put_in(void **state)
{
    struct db *d = db_new(conf_for("dq_early"));
    int from = -1;
    (void)state;
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    run(d, "DELETE FROM dq_meta WHERE name = 'schema_compat'");
    assert_int_equal(schema_check(d, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "run dq init"));
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    ok(schema_check(d, &err));
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
    assert_int_equal(schema_check(d, &err), ERR_UNAVAILABLE);
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    assert_int_equal(from, 0);
    assert_int_equal(number(d, "SELECT COUNT(*) FROM dq_poller"), 0);
    ok(schema_check(d, &err));
    db_free(d);
}

/* What a restore has not reached yet may come; what nobody has made does not. */
static void tables_that_are_being_restored_are_waited_for(void **state)
{
    struct db *d = db_new(conf_for("dq_restored"));
    int from = -1;
    (void)state;
    run(db, "CREATE DATABASE dq_restored");
    assert_int_equal(schema_check(d, &err), ERR_CONFIG);
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    run(d, "RENAME TABLE dq_meta TO meta");
    assert_int_equal(schema_check(d, &err), ERR_UNAVAILABLE);
    run(d, "DROP TABLE dq_attempt");
    assert_int_equal(schema_check(d, &err), ERR_CONFIG);
    run(d, "RENAME TABLE meta TO dq_meta");
    ok(schema_check(d, &err));
    db_free(d);
}

/* A database with the schema in which `statement` has been run; the message of the next dq init,
 * which changes nothing. */
static const char *verdict_after(const char *statement)
{
    struct db *d = db_new(conf_for("dq_changed"));
    int from, rc;

    ok(schema_migrate(d, NULL, NULL, &from, &err));
    run(d, "%s", statement);
    rc = schema_migrate(d, NULL, NULL, &from, &err);
    if (!rc)
        err.text[0] = '\0';
    else
        assert_int_equal(rc, ERR_CONFIG);
    run(d, "DROP DATABASE dq_changed");
    db_free(d);
    return err.text;
}

static void a_table_that_was_changed_is_named(void **state)
{
    static const struct {
        const char *statement, *said;
    } cases[] = {
        {"ALTER TABLE dq_task DROP COLUMN pid", "column dq_task.pid is missing (int unsigned)"},
        {"ALTER TABLE dq_task MODIFY status varchar(10) NOT NULL DEFAULT '0'",
         "column dq_task.status is varchar(10) "},
        {"ALTER TABLE dq_task MODIFY status tinyint unsigned NOT NULL DEFAULT 7",
         "column dq_task.status has the default 7, not 0"},
        {"ALTER TABLE dq_task MODIFY tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL",
         "column dq_task.tag is varchar(128) utf8mb4_general_ci NOT NULL, not varchar(128) utf8mb4_bin NOT NULL"},
        {"ALTER TABLE dq_task MODIFY body_size int unsigned NOT NULL",
         "column dq_task.body_size is int unsigned NOT NULL, not int unsigned"},
        {"ALTER TABLE dq_task MODIFY expected_time datetime NOT NULL",
         "column dq_task.expected_time is datetime NOT NULL, not datetime(3) NOT NULL"},
        {"ALTER TABLE dq_task MODIFY id bigint unsigned NOT NULL",
         "column dq_task.id is bigint unsigned NOT NULL, not bigint unsigned NOT NULL AUTO_INCREMENT"},
        {"ALTER TABLE dq_task ADD mine int NOT NULL",
         "column dq_task.mine is not one of dq's, and has no default"},
        {"ALTER TABLE dq_task DROP INDEX due",
         "index dq_task.due is missing: (status, tag, expected_time)"},
        {"ALTER TABLE dq_task DROP INDEX due, ADD INDEX due (status, tag(10), expected_time)",
         "index dq_task.due is (status, tag(10), expected_time), not (status, tag, expected_time)"},
        {"ALTER TABLE dq_task DROP INDEX live_key, ADD INDEX live_key (task_key, tag, live)",
         "index dq_task.live_key is (task_key, tag, live), not unique (task_key, tag, live)"},
        {"ALTER TABLE dq_task ADD UNIQUE INDEX mine (task_key)",
         "unique index dq_task.mine (task_key) is not one of dq's"},
        {"ALTER TABLE dq_attempt ENGINE = MyISAM",
         "the engine of dq_attempt is MyISAM, not InnoDB"},
        {"DROP TABLE dq_poller", "table dq_poller is missing"},
        {"DROP TABLE dq_limit, dq_attempt, dq_task, dq_poller",
         "table dq_task is missing; table dq_attempt is missing; table dq_limit is missing; and 1 more"},
        {"ALTER TABLE dq_task ADD mine int NOT NULL DEFAULT 3, ADD more int NULL, ADD INDEX mine (create_time)",
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = verdict_after(cases[i].statement);
        bool fine = cases[i].said ? !!strstr(said, cases[i].said) : !*said;
        if (!fine)
            print_error("%s: %s\n", cases[i].statement, said);
        assert_true(fine);
    }
}

/* CREATE TABLE IF NOT EXISTS says nothing when there is one. */
static void a_table_of_others_is_left_alone(void **state)
{
    static const char *const tables[] = {"dq_task (id int, name varchar(10))", "dq_meta (k int)",
                                         "dq_poller (name varchar(10)) ENGINE = MyISAM",
                                         "dq_event (id int, name varchar(10))"};
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct db *d = db_new(conf_for("dq_others"));
        int from = -1;
        run(db, "CREATE DATABASE dq_others");
        run(db, "CREATE TABLE dq_others.%s", tables[i]);
        assert_int_equal(schema_migrate(d, NULL, NULL, &from, &err), ERR_CONFIG);
        assert_non_null(strstr(err.text, "these are not the tables of dq: "));
        assert_int_equal(
            number(
                db,
                "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'dq_others'"),
            1);
        run(db, "DROP DATABASE dq_others");
        db_free(d);
    }
}

/* A migration that finds its column there takes it as added by an earlier try. A column of the next
 * version is verified before, as it may be from a migration that broke off; before a migration
 * further on, it is only one of somebody else's. */
static void a_column_of_a_later_version_is_verified_in_the_end(void **state)
{
    struct db *d = db_new(conf_for("dq_changed"));
    int from = -1, applied = 1;
    (void)state;
    ok(schema_migrate(d, NULL, NULL, &from, &err));
    run(d, "UPDATE dq_meta SET value = 1 WHERE name LIKE 'schema%%'");
    run(d, "ALTER TABLE dq_poller DROP COLUMN handlers, ADD COLUMN handlers int");
    assert_int_equal(schema_migrate(d, count, &applied, &from, &err), ERR_CONFIG);
    assert_int_equal(applied, schema_latest);
    assert_non_null(strstr(err.text, "column dq_poller.handlers is int, not "));
    run(d, "DROP DATABASE dq_changed");
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
        cmocka_unit_test(the_row_format_of_the_server_does_not_matter),
        cmocka_unit_test(a_missing_schema_says_what_to_do),
        cmocka_unit_test(programs_between_compat_and_version_work),
        cmocka_unit_test(a_missing_compat_is_put_in),
        cmocka_unit_test(a_broken_off_migration_is_taken_up_again),
        cmocka_unit_test(tables_that_are_being_restored_are_waited_for),
        cmocka_unit_test(a_table_that_was_changed_is_named),
        cmocka_unit_test(a_table_of_others_is_left_alone),
        cmocka_unit_test(a_column_of_a_later_version_is_verified_in_the_end),
        cmocka_unit_test(concurrent_inits_apply_each_migration_once),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
