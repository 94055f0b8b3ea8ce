/* Claims under the row of a limit: starts of a rate are reserved with the tasks. */
#include "harness.h"

#include <sys/param.h>
#include "base/text.h"
#include "poller/hold.h"

#include <inttypes.h>

#define SLOT_MS 3000

static struct claim_ask ask;
static struct claim_seen saw;
static struct task_array won;
static struct rows_faults faults;

static int setup(void **state)
{
    int rc = harness_setup(state);

    ask = plain_ask;
    ask.guarded = true;
    ask.horizon_ms = 3 * SLOT_MS / 2;
    won = (struct task_array){0};
    faults = (struct rows_faults){0};
    run(db, "INSERT INTO dq_limit (name, rate, rate_period, burst) VALUES ('t', 1, " TEXT_OF(
                SLOT_MS) ", 2)");
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    task_array_done(&won);
    rows_faults_done(&faults);
    return 0;
}

static void add_due(int n)
{
    for (int i = 0; i < n; i++)
        add("t", NULL, -1000);
}

/* milliseconds; INT64_MIN: none was ever reserved */
static int64_t next_start(void)
{
    return number(
        db, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_at) DIV 1000 FROM dq_limit");
}

static void claim_some(void)
{
    struct claim_owner a = owner('a');

    task_array_done(&won);
    won = (struct task_array){0};
    ok(claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err));
    assert_int_equal(faults.count, 0);
}

static void each_task_has_its_start(void **state)
{
    (void)state;
    add_due(5);
    claim_some();
    assert_int_equal(won.count, 3); /* the burst of two, and one within the horizon */
    int64_t first_at = won.items[0].start_at;
    assert_true(won.items[1].start_at == first_at);
    assert_true(won.items[2].start_at == first_at + SLOT_MS);
    for (size_t i = 0; i < won.count; i++)
        assert_int_equal(won.items[i].late_us, SLOT_MS * 1000);
    assert_int_equal(next_start(), first_at + 3 * SLOT_MS);
    /* it wanted more, and is to come again before the next start, but not for each one */
    assert_int_equal(number(db, "SELECT rate_full FROM dq_limit"), 1);
    assert_int_equal(saw.held, LIMIT_RATE);
    assert_int_equal(saw.limit_at - first_at, ask.horizon_ms / 2);
    assert_true(saw.guarded && saw.paced);
    claim_some();
    assert_int_equal(won.count, 0);
    assert_int_equal(saw.held, LIMIT_RATE);
    assert_int_equal(next_start(), first_at + 3 * SLOT_MS);
}

/* The starts until then would be lost. */
static void no_start_is_reserved_before_the_claim_is_likely_to_be_over(void **state)
{
    (void)state;
    add_due(5);
    ask.lead_ms = 5000;
    int64_t now_at =
        number(db, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000");
    claim_some();
    ask.lead_ms = 0;
    assert_int_equal(won.count, 3);
    int64_t first_at = won.items[0].start_at;
    assert_true(first_at >= now_at + 5000);
    assert_int_equal(next_start(), first_at + 3 * SLOT_MS);
    assert_int_equal(saw.limit_at + 5000 - first_at, ask.horizon_ms - MIN(ask.horizon_ms / 2, 400));
    claim_some();
    assert_int_equal(won.count, 0);
}

static void what_gets_all_that_it_wants_does_not_fill_the_rate(void **state)
{
    (void)state;
    add_due(5);
    ask.limit = 3;
    claim_some();
    assert_int_equal(won.count, 3);
    assert_int_equal(number(db, "SELECT rate_full FROM dq_limit"), 0);
}

static void running_bounds_what_a_rate_lets_start(void **state)
{
    (void)state;
    run(db, "UPDATE dq_limit SET running = 2");
    add_due(5);
    claim_some();
    assert_int_equal(won.count, 2);
    assert_int_equal(next_start(), won.items[0].start_at + 2 * SLOT_MS);
    claim_some();
    assert_int_equal(won.count, 0);
    assert_int_equal(saw.held, LIMIT_RUNNING);
}

static void a_start_was_left_as_long_as_it_and_a_task_were_there(void **state)
{
    (void)state;
    ask.limit = 1;
    add_due(3);
    run(db, "UPDATE dq_limit SET next_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR");
    claim_some();
    assert_in_range(saw.left_ms, 0, 600000); /* the task is new */
    run(db, "UPDATE dq_task SET expected_time = '2026-01-01', create_time = '2026-01-01',"
            " update_time = '2026-01-01' WHERE status = 0");
    run(db, "UPDATE dq_limit SET next_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR");
    claim_some();
    assert_in_range(saw.left_ms, 3600000 + SLOT_MS, 4200000);
    run(db, "UPDATE dq_limit SET next_at = UTC_TIMESTAMP(6) + INTERVAL 12 SECOND");
    ask.horizon_ms = 10000;
    claim_some();
    assert_int_equal(won.count, 1);
    assert_int_equal(saw.left_ms, 0); /* it is still to come */
}

static bool is_t(void *arg, const char *tag)
{
    (void)arg;
    return strcmp(tag, "t") == 0;
}

static void what_runs_beside_a_breaker_is_counted_once(void **state)
{
    (void)state;
    run(db, "UPDATE dq_limit SET running = 2, rate = NULL, rate_period = NULL, burst = NULL");
    add_due(5);
    ask.limit = 1;
    ask.under = is_t;
    claim_some();
    assert_int_equal(won.count, 1);
    /* its rest ended after that */
    run(db, "UPDATE dq_limit SET breaker = 1, held_until = UTC_TIMESTAMP(3)");
    run(db,
        "UPDATE dq_task SET execution_time = execution_time - INTERVAL 1 SECOND WHERE status = 3");
    claim_some();
    assert_int_equal(won.count, 1);
    claim_some();
    assert_int_equal(won.count, 0);
    assert_int_equal(saw.held, LIMIT_PROBED);
}

/* Nothing that runs is without a start, and no task is to blame. */
static void a_start_that_cannot_be_reserved_costs_no_task(void **state)
{
    struct claim_owner a = owner('a');
    (void)state;
    add_due(3);
    as_root("CREATE TRIGGER dq_refuses BEFORE UPDATE ON dq_limit FOR EACH ROW"
            " IF NOT (NEW.next_at <=> OLD.next_at) THEN"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF");
    assert_true(claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err) < 0);
    as_root("DROP TRIGGER dq_refuses");
    assert_int_equal(won.count + faults.count, 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3"), 0);
    claim_some();
    assert_int_equal(won.count, 3);
}

static void locked_tasks_that_are_skipped_use_no_start(void **state)
{
    struct db *stranger = harness_db();
    (void)state;
    if (!db_skips_locked(db)) {
        db_free(stranger);
        skip();
    }
    add_due(2);
    run(stranger, "START TRANSACTION");
    run(stranger, "UPDATE dq_task SET pid = 1");
    add_due(5);
    ask.skip_locked = true;
    claim_some();
    run(stranger, "ROLLBACK");
    db_free(stranger);
    assert_int_equal(won.count, 3);
    assert_int_equal(next_start(), won.items[0].start_at + 3 * SLOT_MS);
    assert_true(won.items[2].start_at == won.items[0].start_at + SLOT_MS);
}

static void a_limit_that_was_not_known_is_seen_if_one_asks(void **state)
{
    (void)state;
    add_due(1);
    ask.guarded = false;
    claim_some();
    assert_true(won.count == 0 && !saw.guarded);
    ask.unsure = true;
    claim_some();
    assert_true(won.count == 0 && saw.guarded);
    run(db, "DELETE FROM dq_limit");
    claim_some();
    assert_true(won.count == 1 && !saw.guarded);
}

/* Each try waits for the lock, and nothing else happens meanwhile. */
static void a_hold_of_a_locked_limit_is_left_alone_for_longer_than_a_try_takes(void **state)
{
    const struct context ctx = {.db = db};
    struct holds holds = {.ctx = &ctx};
    struct db *other = harness_db();
    (void)state;
    run(other, "BEGIN");
    assert_int_equal(number(other, "SELECT 1 FROM dq_limit FOR UPDATE"), 1);
    hold_queue(&holds, "t", WHEN_MINUTE, "503");
    hold_queue(&holds, "t", WHEN_HOUR, "429"); /* takes its place */
    int64_t sent_us = when_steady_us();
    ok(hold_flush(&holds, &err));
    assert_true(hold_has(&holds, "t"));
    assert_true(hold_next(&holds) - sent_us > 4 * WHEN_SECOND * 1000);
    run(other, "ROLLBACK");
    db_free(other);
    holds.items[0].again_us = 0;
    ok(hold_flush(&holds, &err));
    assert_false(hold_has(&holds, "t"));
    assert_one("dq_limit WHERE hold_reason = '429'");
    hold_free(&holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_task_has_its_start, setup, teardown),
        cmocka_unit_test_setup_teardown(no_start_is_reserved_before_the_claim_is_likely_to_be_over,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_gets_all_that_it_wants_does_not_fill_the_rate, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(running_bounds_what_a_rate_lets_start, setup, teardown),
        cmocka_unit_test_setup_teardown(a_start_was_left_as_long_as_it_and_a_task_were_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_runs_beside_a_breaker_is_counted_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_start_that_cannot_be_reserved_costs_no_task, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(locked_tasks_that_are_skipped_use_no_start, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_limit_that_was_not_known_is_seen_if_one_asks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_hold_of_a_locked_limit_is_left_alone_for_longer_than_a_try_takes, setup, teardown),
    };
    return cmocka_run_group_tests_name("claims under a limit", tests, harness_group,
                                       harness_group_end);
}
