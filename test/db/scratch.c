/* Scratch databases: what may be dropped, what is left alone, who holds one. */
#include "harness.h"

#include "store/schema/scratch_store.h"

#include <stdlib.h>

static bool is_listed(const char *name)
{
    char **names;
    size_t count;
    bool listed = false;

    ok(scratch_store_list(db, &names, &count, &err));
    for (size_t i = 0; i < count; i++)
        listed |= strcmp(names[i], name) == 0;
    scratch_store_free_names(names, count);
    return listed;
}

static void only_names_made_here_are_dropped(void **state)
{
    static const char *const others[] = {"dq",
                                         "dq_bench_",
                                         "dq_bench_0123456789a",
                                         "dq_bench_0123456789abc",
                                         "dq_bench_0123456789aB",
                                         "dq_bench_01234`789abc",
                                         "dq_bench_of_somebody"};
    char name[SCRATCH_NAME_SIZE], another[SCRATCH_NAME_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(scratch_store_drop(db, others[i], &err), ERR_FATAL);
    scratch_store_new_name(name);
    scratch_store_new_name(another);
    assert_string_not_equal(name, another);
    run(db, "CREATE DATABASE %s", name);
    ok(scratch_store_drop(db, name, &err));
    ok(scratch_store_drop(db, name, &err)); /* it is gone: fine */
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '%s'",
               name),
        0);
}

static void one_that_is_held_is_no_leftover(void **state)
{
    char name[SCRATCH_NAME_SIZE];
    struct db *other = harness_db();
    (void)state;
    scratch_store_new_name(name);
    run(db, "CREATE DATABASE %s", name);
    ok(scratch_store_hold(other, name, &err));
    assert_false(is_listed(name));
    assert_int_equal(scratch_store_hold(db, name, &err), ERR_BUSY);
    run(other, "DO RELEASE_ALL_LOCKS()");
    assert_true(is_listed(name));
    run(db, "CREATE TABLE %s.dq_task (a int)", name);
    assert_true(is_listed(name));
    run(db, "CREATE TABLE %s.orders (a int)", name);
    assert_false(is_listed(name));
    ok(scratch_store_drop(db, name, &err));
    db_free(other);
}

static void only_an_empty_database_is_taken_and_only_tables_of_dq_leave_it(void **state)
{
    struct conf_mysql conf = *harness_conf;
    char spare[] = "dq_spare";
    struct db *other;
    int from;
    (void)state;
    run(db, "CREATE DATABASE dq_spare");
    conf.database = spare;
    other = db_new(&conf);
    ok(scratch_store_check_empty(other, &err));
    ok(schema_migrate(other, NULL, NULL, &from, &err));
    assert_int_equal(scratch_store_check_empty(other, &err), ERR_STATE);
    run(other, "CREATE TABLE orders (a int)");
    ok(scratch_store_drop_tables(other, &err));
    assert_int_equal(
        number(db,
               "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'dq_spare'"),
        1);
    assert_int_equal(number(other, "SELECT COUNT(*) FROM orders"), 0);
    run(db, "DROP DATABASE dq_spare");
    db_free(other);
}

static void the_server_tells_its_settings(void **state)
{
    struct scratch_server s;
    char *account = NULL;
    (void)state;
    ok(scratch_store_server(db, "dq", &s, &err));
    assert_int_equal(s.flush_log, number(db, "SELECT @@innodb_flush_log_at_trx_commit"));
    assert_int_equal(s.buffer_pool, number(db, "SELECT @@innodb_buffer_pool_size"));
    assert_int_equal(s.max_connections, number(db, "SELECT @@max_connections"));
    assert_int_equal(s.binlog, number(db, "SELECT @@log_bin"));
    assert_true(s.connections > 0 && s.table_size > 0);
    ok(scratch_store_server(db, "nowhere", &s, &err));
    assert_int_equal(s.table_size, -1);
    ok(scratch_store_account(db, &account, &err));
    assert_string_equal(account, "'dq'@'localhost'");
    free(account);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_names_made_here_are_dropped, harness_setup),
        cmocka_unit_test_setup(one_that_is_held_is_no_leftover, harness_setup),
        cmocka_unit_test_setup(only_an_empty_database_is_taken_and_only_tables_of_dq_leave_it,
                               harness_setup),
        cmocka_unit_test_setup(the_server_tells_its_settings, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
