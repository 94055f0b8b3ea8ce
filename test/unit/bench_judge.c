/*
 * bench_judge.c - what `dq bench` makes of its figures: which setting it blames.
 */
#include "bench/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct conf conf;
static struct figure figures[FIGURE_COUNT];
static struct judge_facts facts;

static void set(enum figure_id id, double value)
{
    figures[id] = (struct figure){.known = true, .value = value};
}

/* A server near by with a good disk, and two cores. */
static int setup(void **state)
{
    static char empty[] = "", database[] = "shop";
    (void)state;
    conf = (struct conf){
        .mysql = {.host = empty, .database = database, .tls = CONF_TLS_PREFERRED},
        .dqd = {.slots = 32, .claim_batch = 500, .poll_interval_ms = 200, .wake_dir = empty}};
    memset(figures, 0, sizeof figures);
    facts = (struct judge_facts){.conf = &conf, .figures = figures, .cores = 2};
    facts.server = (struct scratch_server){.flush_log = 1,
                                           .buffer_pool = INT64_C(4) << 30,
                                           .max_connections = 151,
                                           .connections = 11,
                                           .table_size = INT64_C(300) << 20};
    set(FIGURE_ROUND_TRIP, 0.1);
    set(FIGURE_COMMIT, 0.5);
    set(FIGURE_CONNECT, 1);
    set(FIGURE_ADD_COMMAND, 4);
    set(FIGURE_ADD, 1500);
    set(FIGURE_ADD_BULK, 50000);
    set(FIGURE_PEEK, 0.1);
    set(FIGURE_CLAIM, 50000);
    set(FIGURE_SETTLE, 50000);
    set(FIGURE_SPAWN, 1200);
    set(FIGURE_SPAWN_PARALLEL, 2400);
    set(FIGURE_RUN, 2000);
    set(FIGURE_RUN_BATCH, 25000);
    set(FIGURE_LATENESS, 2);
    return 0;
}

static struct judge_row find(const char *kind, const char *name)
{
    struct judge_rows rows = judge(&facts);
    struct judge_row found = {.kind = NULL};

    for (size_t i = 0; i < rows.count; i++)
        if (strcmp(rows.items[i].kind, kind) == 0 && strcmp(rows.items[i].name, name) == 0)
            found = rows.items[i];
    free(rows.items);
    assert_non_null(found.kind);
    return found;
}

static void blames(const char *name, const char *setting, const char *now)
{
    struct judge_row row = find("bottleneck", name);
    assert_string_equal(row.setting, setting);
    assert_string_equal(row.now, now);
    assert_true(strlen(row.about) > 0);
}

static double capacity(const char *name)
{
    struct judge_row row = find("capacity", name);
    assert_true(row.known);
    return row.value;
}

static void test_a_good_server_leaves_the_processes_as_the_bottleneck(void **state)
{
    (void)state;
    blames("process", "cores", "2");
    blames("process-1s", "slots in [dqd]", "32");
    blames("batch", "the server's processor", "0.040 ms a task");
    blames("server", "innodb_buffer_pool_size", "4.0 GiB");
    blames("add", "innodb_flush_log_at_trx_commit", "1");
    blames("add-command", "start of a program", "3.0 ms");
    blames("lateness", "poll_interval in [dqd]", "200ms");
    blames("hosts", "max_connections", "151, 11 in use");
    assert_false(find("bottleneck", "server").warn);
}

static void test_days_follow_from_seconds(void **state)
{
    (void)state;
    assert_float_equal(capacity("process"), 2000.0 * 86400, 1);
    assert_float_equal(capacity("process-1s"), 32.0 * 86400, 1);
    assert_non_null(strstr(find("capacity", "process-1s").about,
                           "one tag alone: 86,400 times its max_running"));
    assert_null(strstr(find("capacity", "batch").about, "a guess"));
    assert_non_null(strstr(find("bottleneck", "lateness").about, "as measured"));
    assert_float_equal(capacity("add"), 1500.0 * 86400, 1);
    assert_float_equal(capacity("add-command"), 250.0 * 86400, 1);
    assert_float_equal(capacity("server"), 50000.0 / 3 * 86400, 1);
    assert_float_equal(capacity("hosts"), 8, 0.001);
}

static void test_a_far_server_is_blamed(void **state)
{
    (void)state;
    set(FIGURE_ROUND_TRIP, 20);
    set(FIGURE_COMMIT, 22);
    set(FIGURE_RUN, 700);
    set(FIGURE_CLAIM, 7500);
    set(FIGURE_LATENESS, 90);
    blames("process", "round trip", "20.00 ms");
    blames("batch", "round trip", "20.00 ms");
    blames("add", "round trip", "20.00 ms");
    blames("lateness", "round trip", "20.00 ms");
}

static void test_a_slow_disk_is_blamed(void **state)
{
    (void)state;
    facts.server.binlog = true;
    facts.server.sync_binlog = 1;
    set(FIGURE_COMMIT, 30);
    set(FIGURE_CLAIM, 12000);
    set(FIGURE_LATENESS, 70);
    blames("add", "innodb_flush_log_at_trx_commit, sync_binlog", "1, 1");
    blames("batch", "innodb_flush_log_at_trx_commit, sync_binlog", "1, 1");
    blames("lateness", "innodb_flush_log_at_trx_commit, sync_binlog", "1, 1");
}

static void test_settings_that_are_too_small_are_blamed(void **state)
{
    (void)state;
    conf.dqd.slots = 2;
    conf.dqd.claim_batch = 50;
    facts.server.table_size = INT64_C(9) << 30;
    facts.server.connections = 147;
    set(FIGURE_RUN, 1000);
    set(FIGURE_CONNECT, 3);
    blames("process", "slots in [dqd]", "2");
    blames("batch", "claim_batch in [dqd]", "50");
    blames("add-command", "new connection", "3.0 ms");
    assert_true(find("bottleneck", "server").warn);
    assert_true(find("bottleneck", "hosts").warn);
    assert_float_equal(capacity("hosts"), 4, 0.001);
}

static void test_unknown_figures_are_not_made_up(void **state)
{
    (void)state;
    figure_set_unknown(&figures[FIGURE_RUN], "no dqd");
    figure_set_unknown(&figures[FIGURE_RUN_BATCH], "no dqd");
    figure_set_unknown(&figures[FIGURE_LATENESS], "no dqd");
    assert_false(find("measure", "run").known);
    assert_string_equal(find("measure", "run").about, "no dqd");
    assert_float_equal(capacity("process"), 2400.0 * 86400, 1);
    for (size_t i = 0; i < 4; i++)
        assert_non_null(strstr(
            find("capacity", (const char *[]){"process", "process-1s", "batch", "hosts"}[i]).about,
            "a guess"));
    assert_null(strstr(find("bottleneck", "lateness").about, "as measured"));
    memset(figures, 0, sizeof figures);
    facts.server = (struct scratch_server){.flush_log = -1,
                                           .buffer_pool = -1,
                                           .max_connections = -1,
                                           .connections = -1,
                                           .table_size = -1};
    assert_false(find("capacity", "process").known);
    assert_false(find("capacity", "server").known);
    assert_false(find("capacity", "hosts").known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_good_server_leaves_the_processes_as_the_bottleneck, setup),
        cmocka_unit_test_setup(test_days_follow_from_seconds, setup),
        cmocka_unit_test_setup(test_a_far_server_is_blamed, setup),
        cmocka_unit_test_setup(test_a_slow_disk_is_blamed, setup),
        cmocka_unit_test_setup(test_settings_that_are_too_small_are_blamed, setup),
        cmocka_unit_test_setup(test_unknown_figures_are_not_made_up, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
