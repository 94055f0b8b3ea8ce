/* How pollers divide the tasks among them. */
#include "harness.h"
#include "store/fleet/event_store.h"
#include "store/fleet/poller_store.h"
#include "store/row/sql.h"
#include "store/work/expire_store.h"

#include <inttypes.h>

static void shares_are_preferred_and_overdue_ones_stolen(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    int64_t of[4];
    (void)state;
    for (int i = 0; i < 40; i++)
        add("t", NULL, -1000);
    for (unsigned i = 0; i < 4; i++) {
        struct buf sql = BUF_INIT;
        sql_put_share(&sql, "", 4);
        of[i] = number(db, "SELECT COUNT(*) FROM dq_task WHERE %s = %u", sql.data, i);
        buf_done(&sql);
    }
    assert_int_equal(of[0] + of[1] + of[2] + of[3], 40);
    ask.shares = 4;
    ask.share = 1;
    ask.steal_after_ms = 3600000;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, of[1]);
    ask.steal_after_ms = 500;
    ask.steal_share = 3;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, of[1] + of[3]);
    ask.share = 2;
    ask.steal_share = 0;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 40);
    task_array_done(&won);
}

/* A cluster hands out ids in steps of its size: nobody may get all of them, or none. */
/* However many live tasks of another share are before it. */
static void an_expired_task_that_a_claim_has_met_is_cancelled(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct claim_expired expired;
    struct peek_floor floor = {0};
    struct task_array won = {0};
    struct buf share = BUF_INIT;
    struct claim_seen saw;
    uint64_t count = 0;
    (void)state;
    for (int i = 0; i < 40; i++)
        add("t", NULL, -1000);
    sql_put_share(&share, "", 2);
    int64_t id = number(db, "SELECT MAX(id) FROM dq_task WHERE %s = 0", share.data);
    run(db, "DELETE FROM dq_task WHERE %s = 0 AND id <> %" PRId64, share.data, id);
    run(db, "UPDATE dq_task SET expires_time = expected_time WHERE id = %" PRId64, id);
    ask.shares = 2;
    ask.steal_after_ms = 3600000;
    ask.expired = &expired;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(saw.expired, 1);
    ok(expire_store_cancel(db, &ask, TASK_NORMAL, 5, &floor, &count, NULL, &err));
    assert_int_equal(count, 1);
    assert_int_equal(number(db, "SELECT id FROM dq_task WHERE status = 4"), id);
    buf_done(&share);
    task_array_done(&won);
}

static void shares_are_even_whatever_the_step_of_ids(void **state)
{
    static const unsigned steps[] = {1, 2, 3, 4, 8, 10};
    enum { N = 2000 };
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (unsigned shares = 2; shares <= 20; shares++) {
            struct buf sql = BUF_INIT;
            sql_put_share(&sql, "", shares);
            buf_printf(
                &sql,
                " AS share, COUNT(*) AS n FROM (SELECT 1000003 + seq * %u AS id FROM %s) ids GROUP BY share",
                steps[i], numbers(N));
            int64_t low = number(db, "SELECT IF(COUNT(*) = %u, MIN(n), 0) FROM (SELECT %s) s",
                                 shares, sql.data);
            int64_t high = number(db, "SELECT MAX(n) FROM (SELECT %s) s", sql.data);
            if (low * shares * 10 < N * 8 || high * shares * 10 > N * 12)
                fail_msg("ids in steps of %u, %u shares: from %" PRId64 " to %" PRId64 " ids each",
                         steps[i], shares, low, high);
            buf_done(&sql);
        }
    }
}

static void every_id_has_a_share(void **state)
{
    static const uint64_t ids[] = {
        0, 1, UINT32_MAX, UINT64_C(1) << 32, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct buf sql = BUF_INIT;
        sql_put_share(&sql, "", 7);
        assert_in_range(number(db, "SELECT %s FROM (SELECT CAST(%" PRIu64 " AS UNSIGNED) AS id) t",
                               sql.data, ids[i]),
                        0, 6);
        buf_done(&sql);
    }
}

static void pollers_know_their_share(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct poller_say say = {.mode = "once", .slots = 8, .stale_after_ms = 5000};
    struct poller_info *list;
    size_t count;
    struct poller_share s;
    (void)state;
    ok(poller_store_beat(db, &a, &say, &s, &err));
    assert_int_equal(s.share, 0);
    assert_int_equal(s.shares, 1);
    assert_true(s.now_us > INT64_C(1500000000000000));
    ok(poller_store_beat(db, &b, &say, &s, &err));
    assert_int_equal(s.share, 1);
    assert_int_equal(s.shares, 2);
    run(db, "UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3) - INTERVAL 6 SECOND WHERE pid = 97");
    say.running = 3;
    ok(poller_store_beat(db, &b, &say, &s, &err));
    assert_int_equal(s.share, 0);
    assert_int_equal(s.shares, 1);
    ok(poller_store_list(db, &list, &count, &err));
    assert_int_equal(count, 2);
    assert_false(list[0].alive);
    assert_true(list[1].alive);
    assert_string_equal(list[1].mode, "once");
    assert_int_equal(list[1].running, 3);
    poller_store_free(list, count);
    ok(poller_store_leave(db, &b, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"), 1);
}

/* It has no share, so that others do not leave it tasks that it does not take. */
static void a_quiet_poller_has_no_share(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct poller_say say = {.mode = "resident", .slots = 8, .stale_after_ms = 5000};
    struct poller_share s;
    (void)state;
    ok(poller_store_beat(db, &a, &say, &s, &err));
    ok(poller_store_beat(db, &b, &say, &s, &err));
    assert_int_equal(s.shares, 2);
    run(db, "INSERT INTO dq_limit (name, paused_until) SELECT CONCAT('dqd ', host, ':', pid),"
            " UTC_TIMESTAMP(3) + INTERVAL 1 HOUR FROM dq_poller WHERE pid = 97");
    ok(poller_store_beat(db, &b, &say, &s, &err));
    assert_int_equal(s.shares, 1);
    assert_int_equal(s.share, 0);
    assert_false(s.quiet);
    ok(poller_store_beat(db, &a, &say, &s, &err));
    assert_true(s.quiet);
    run(db, "UPDATE dq_limit SET paused_until = UTC_TIMESTAMP(3)");
    ok(poller_store_beat(db, &a, &say, &s, &err));
    assert_int_equal(s.shares, 2);
    assert_false(s.quiet);
}

#define SERVED (UINT64_C(1) << POLLER_SERVES_SHIFT)
/* Only those that serve the same tags share them: whoever else serves one would wait for dqds that
 * do not. The other settings of a handler may differ. */
static void only_pollers_that_take_the_same_tasks_share_them(void **state)
{
    static const struct {
        const char *tags;
        uint64_t handlers;
        int slots;
        unsigned shares;
    } others[] = {
        {NULL, SERVED + 7, 8, 2},     {NULL, SERVED + 8, 8, 2},
        {NULL, 2 * SERVED + 7, 8, 1}, {NULL, 0, 8, 2},          /* not known */
        {"mail", SERVED + 7, 8, 1},   {NULL, SERVED + 7, 0, 1}, /* it ends */
    };
    const struct claim_owner a = owner('a'), b = owner('b');
    const struct poller_say ours = {.mode = "resident",
                                    .slots = 8,
                                    .stale_after_ms = 5000,
                                    .handlers = SERVED + 7,
                                    .serves = SERVED + 7};
    struct poller_share s;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct poller_say say = ours;
        say.tags = others[i].tags;
        say.handlers = say.serves = others[i].handlers;
        say.slots = others[i].slots;
        ok(poller_store_beat(db, &b, &say, &s, &err));
        ok(poller_store_beat(db, &a, &ours, &s, &err));
        if (s.shares != others[i].shares || s.share != 0 || s.alive != 2)
            fail_msg("case %zu: share %u of %u, %u alive", i, s.share, s.shares, s.alive);
        ok(poller_store_leave(db, &b, &err));
    }
}

/* The server's clock was ahead when it was seen: it is not alive until the next heartbeat of
 * another one, which makes it one that has just been seen. */
static void a_poller_that_was_seen_in_the_future_is_not_alive(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct poller_say say = {
        .mode = "once", .slots = 8, .stale_after_ms = 5000, .lease_ms = 30000, .passes = true};
    struct poller_info *list;
    struct poller_share s;
    size_t count;
    (void)state;
    ok(poller_store_beat(db, &a, &say, &s, &err));
    ok(poller_store_pass_ended(db, &a, &say, 60000, &err));
    run(db, "UPDATE dq_poller SET last_seen = last_seen + INTERVAL 1 HOUR,"
            " start_time = start_time + INTERVAL 1 HOUR, next_pass = next_pass + INTERVAL 1 HOUR");
    ok(poller_store_list(db, &list, &count, &err));
    assert_int_equal(count, 1);
    assert_true(list[0].ahead && !list[0].alive && list[0].silent_ms == 0);
    assert_int_equal(list[0].lease_ms, 30000);
    poller_store_free(list, count);
    ok(poller_store_beat(db, &b, &say, &s, &err));
    assert_int_equal(s.shares, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller WHERE last_seen <= UTC_TIMESTAMP(3)"
                                " AND start_time <= UTC_TIMESTAMP(3)"),
                     2);
    assert_int_equal(
        number(db, "SELECT next_pass <= UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE FROM dq_poller"
                   " WHERE next_pass IS NOT NULL"),
        1);
    ok(poller_store_list(db, &list, &count, &err));
    assert_true(list[0].alive && !list[0].ahead);
    poller_store_free(list, count);
}

static void a_poller_whose_row_is_locked_counts_itself(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct poller_say say = {
        .mode = "resident", .slots = 8, .stale_after_ms = 60000, .careful = true};
    struct db *stranger = harness_db();
    struct poller_share s;
    (void)state;
    ok(poller_store_beat(db, &a, &say, &s, &err));
    ok(poller_store_beat(db, &b, &say, &s, &err));
    run(db, "UPDATE dq_poller SET last_seen = '2020-01-01' WHERE pid = %" PRIu32, b.pid);
    run(stranger, "START TRANSACTION");
    run(stranger, "UPDATE dq_poller SET running = 9 WHERE pid = %" PRIu32, b.pid);
    ok(poller_store_beat(db, &b, &say, &s, &err));
    run(stranger, "ROLLBACK");
    assert_true(s.unheard);
    assert_int_equal(s.share, 1);
    assert_int_equal(s.shares, 2);
    db_free(stranger);
}

static void a_poller_reports_the_loss_of_others_only(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct poller_say say = {.mode = "resident", .slots = 8, .stale_after_ms = 60000};
    struct poller_share s;
    uint64_t lost = 7;
    (void)state;
    run(db, "DELETE FROM dq_event");
    ok(poller_store_beat(db, &a, &say, &s, &err));
    ok(poller_store_beat(db, &b, &say, &s, &err));
    run(db, "UPDATE dq_poller SET last_seen = '2020-01-01'");
    ok(event_store_add_lost(db, &a, &lost, &err));
    assert_int_equal(lost, 1);
    assert_int_equal(number(db,
                            "SELECT COUNT(*) FROM dq_event WHERE verb = 'dqd-lost'"
                            " AND arguments LIKE 'pid %" PRIu32 ",%%'",
                            b.pid),
                     1);
    ok(event_store_add_lost(db, &b, &lost, &err));
    assert_int_equal(lost, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_expired_task_that_a_claim_has_met_is_cancelled, harness_setup),
        cmocka_unit_test_setup(shares_are_preferred_and_overdue_ones_stolen, harness_setup),
        cmocka_unit_test(shares_are_even_whatever_the_step_of_ids),
        cmocka_unit_test(every_id_has_a_share),
        cmocka_unit_test_setup(pollers_know_their_share, harness_setup),
        cmocka_unit_test_setup(only_pollers_that_take_the_same_tasks_share_them, harness_setup),
        cmocka_unit_test_setup(a_quiet_poller_has_no_share, harness_setup),
        cmocka_unit_test_setup(a_poller_that_was_seen_in_the_future_is_not_alive, harness_setup),
        cmocka_unit_test_setup(a_poller_whose_row_is_locked_counts_itself, harness_setup),
        cmocka_unit_test_setup(a_poller_reports_the_loss_of_others_only, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
