/* What a poller does while another session has locked a table: it asks once, then others have their
 * turn, and nothing is lost. */
#include "harness.h"
#include "poller/hold.h"
#include "poller/schedule.h"
#include "poller/settle.h"
#include "poller/upkeep.h"
#include "store/db/db_connect.h"
#include "store/db/db_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/param.h>

static const struct conf conf = {
    .dqd = {.lease_ms = 10000, .heartbeat_ms = 1000},
    .retention = {.done_ms = WHEN_DAY, .failed_ms = WHEN_DAY, .cancelled_ms = WHEN_DAY}};
static struct context ctx = {.conf = &conf};

static int setup(void **state)
{
    ctx.db = db;
    const int rc = harness_setup(state);
    db_session_brief(db, true);
    return rc;
}

/* How often the session has tried that. */
static int64_t tries(const char *command)
{
    char where[80];

    snprintf(where, sizeof where, "= 'Com_%s'", command);
    return session_status(db, where);
}

static void outputs_of_cancelled_tasks_wait_for_a_locked_table(void **state)
{
    enum { N = 3 };
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, N);
    struct db *other = harness_db();
    struct settle_results q;
    (void)state;
    settle_init(&q, &ctx, NULL, NULL, NULL);
    for (size_t i = 0; i < N; i++) {
        struct claim_ref ref = {won.items[i].id, won.items[i].version};
        run(db,
            "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome) VALUES"
            " (%" PRIu64 ", %" PRIu64 ", 1, UTC_TIMESTAMP(3), 'cancelled')",
            ref.id, ref.version);
        settle_queue_output(&q, &ref, "text", 4);
    }
    run(other, "LOCK TABLES dq_attempt READ");
    for (int i = 1; i <= 2; i++) {
        const int64_t before = tries("update");
        assert_int_equal(settle_flush_output(&q, &err), ERR_LOCKED);
        assert_int_equal(tries("update") - before, 1);
        assert_int_equal(q.output_count, N);
    }
    run(other, "UNLOCK TABLES");
    while (settle_has_outputs(&q))
        ok(settle_flush_output(&q, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt WHERE output = 'text'"), N);
    settle_free(&q);
    db_free(other);
    task_array_done(&won);
}

static void holds_wait_for_a_locked_table(void **state)
{
    static const char *const limits[] = {"a", "b", "c"};
    struct db *other = harness_db();
    struct holds h = {.ctx = &ctx};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        hold_queue(&h, limits[i], WHEN_HOUR, "why");
    run(other, "LOCK TABLES dq_limit READ");
    const int64_t before = tries("insert");
    while (hold_next(&h) <= when_steady_us() && tries("insert") - before < 3)
        ok(hold_flush(&h, &err));
    assert_int_equal(tries("insert") - before, 1);
    run(other, "UNLOCK TABLES");
    while (h.count)
        ok(hold_flush(&h, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_limit WHERE hold_reason = 'why'"), 3);
    /* a row that is locked, for which the server need not wait, is one limit's affair */
    for (size_t i = 0; i < 3 && db_is_mariadb(db); i++)
        hold_queue(&h, limits[i], 2 * WHEN_HOUR, "again");
    run(other, "START TRANSACTION");
    run(other, "UPDATE dq_limit SET version = version + 1 WHERE name = 'a'");
    while (h.count > 1)
        ok(hold_flush(&h, &err));
    assert_true(!db_is_mariadb(db) || (h.count == 1 && hold_has(&h, "a") && hold_waits(&h)));
    if (h.count)
        h.items[0].queued_us -= conf.dqd.lease_ms * 1000;
    assert_false(hold_waits(&h)); /* a lease has passed */
    run(other, "ROLLBACK");
    hold_free(&h);
    db_free(other);
}

static void retention_waits_once_for_a_locked_table(void **state)
{
    static const enum task_status finished[] = {TASK_DONE, TASK_FAILED, TASK_CANCELLED};
    struct db *other = harness_db();
    struct tag_set tags = {0};
    struct upkeep u;
    (void)state;
    for (int i = 0; i < 6; i++) {
        const uint64_t id = add(i % 2 ? "a" : "b", NULL, -1000);
        run(db,
            "UPDATE dq_task SET status = %d, expected_time = UTC_TIMESTAMP(3) - INTERVAL 3 DAY"
            " WHERE id = %" PRIu64,
            (int)finished[i % 3], id);
    }
    upkeep_init(&u, &ctx, NULL, &tags, NULL, NULL);
    run(other, "LOCK TABLES dq_attempt READ");
    for (int i = 0; i < 3; i++) {
        const int64_t before = tries("delete") + tries("delete_multi") + tries("insert_select");
        assert_int_equal(upkeep_retention(&u, &err), ERR_LOCKED);
        assert_int_equal(tries("delete") + tries("delete_multi") + tries("insert_select") - before,
                         1);
    }
    run(other, "UNLOCK TABLES");
    ok(upkeep_retention(&u, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 0);
    upkeep_free(&u);
    db_free(other);
}

/* Schedules that are due. */
static void begin_two(struct schedules *s, struct context *here, const struct registry *registry)
{
    hourly("a", "1 SECOND", "");
    hourly("b", "1 SECOND", "");
    schedule_init(s, here, registry);
}

static void schedules_wait_for_a_locked_table(void **state)
{
    struct context here = ctx;
    struct registry registry = {.ctx = &here};
    struct db *other = harness_db();
    struct schedules s;
    bool added = false;
    (void)state;
    ok(db_now(db, &here.next_slot_at, &err));
    dbclock_sample(&here.clock, when_steady_us(), when_steady_us(), here.next_slot_at * 1000);
    here.next_slot_at -= WHEN_MINUTE;
    begin_two(&s, &here, &registry);
    schedule_heard(&s);
    run(other, "LOCK TABLES dq_slot READ");
    const int64_t from_us = when_steady_us();
    assert_true(schedule_next(&s) <= from_us);
    ok(schedule_run(&s, &added, &err));
    const int64_t took_us = when_steady_us() - from_us;
    assert_false(added);
    schedule_heard(&s); /* the heartbeat says that a slot is due */
    assert_true(schedule_next(&s) - from_us >= MIN(5 * took_us, 5 * INT64_C(1000000)));
    run(other, "UNLOCK TABLES");
    ok(schedule_run(&s, &added, &err));
    assert_true(added);
    db_free(other);
}

static void a_locked_schedule_keeps_no_other_waiting(void **state)
{
    struct context here = ctx;
    struct registry registry = {.ctx = &here};
    struct db *other = harness_db();
    struct schedules s;
    bool added = false;
    (void)state;
    begin_two(&s, &here, &registry);
    run(other, "START TRANSACTION");
    run(other, "UPDATE dq_schedule SET version = version + 1 WHERE name = 'a'");
    ok(schedule_run(&s, &added, &err));
    assert_true(added);
    assert_int_equal(s.not_before_us, 0);
    run(other, "ROLLBACK");
    db_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(outputs_of_cancelled_tasks_wait_for_a_locked_table, setup),
        cmocka_unit_test_setup(holds_wait_for_a_locked_table, setup),
        cmocka_unit_test_setup(retention_waits_once_for_a_locked_table, setup),
        cmocka_unit_test_setup(schedules_wait_for_a_locked_table, setup),
        cmocka_unit_test_setup(a_locked_schedule_keeps_no_other_waiting, setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
