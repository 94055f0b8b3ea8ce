/* What was decided while the server's clock was ahead, and is right again. */
#include "harness.h"
#include "store/db/db_connect.h"
#include "store/fleet/ahead_store.h"
#include "store/fleet/limit_store.h"
#include "store/fleet/poller_store.h"

#include <string.h>

#define SLOTS_AHEAD "SELECT COUNT(*) FROM dq_slot WHERE slot > UTC_TIMESTAMP(3)"
#define IS_AHEAD(what) what " > UTC_TIMESTAMP(3) + INTERVAL 300 DAY"

/* A session whose clock is a year ahead decides what is due by it. */
static void decide_ahead(void)
{
    struct db *other = harness_db();
    struct event_act act = {.token = "b", .actor = "a", .verb = "breaker-open", .tag = "b"};

    run(other, "SET timestamp = UNIX_TIMESTAMP() + 31536000");
    while (decide(other).more)
        ;
    run(other,
        "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, update_time = UTC_TIMESTAMP(3)"
        " WHERE name = 'set'");
    ok(limit_store_hold(other, "h", 2000, "busy", &err));
    ok(limit_store_break(other, &act, &(struct limit_break){.rest_ms = 2000, .reason = "no"},
                         &err));
    db_free(other);
    ok(limit_store_hold(db, "h", 2000, "busy", &err));
}

static bool decided_ahead(void)
{
    struct claim_owner o = owner('a');
    struct poller_say say = {.mode = "resident", .slots = 1, .stale_after_ms = 1000};
    struct poller_share share;

    ok(poller_store_beat(db, &o, &say, &share, &err));
    return share.decided_ahead;
}

static void what_a_clock_ahead_has_decided_holds_nothing_up(void **state)
{
    struct ahead_store_done done;
    (void)state;
    hourly("ran", "5 SECOND", "");
    hourly("first", "-1 MINUTE", "");
    hourly("missed", "-1 MINUTE", "catch_up = 0, last_slot = '2020-01-01'");
    hourly("gap", "5 SECOND", "");
    hourly("lives", "5 SECOND", "");
    run(db, "UPDATE dq_schedule SET kind = 2 WHERE name IN ('gap', 'lives')");
    hourly("set", "-20 MINUTE", "");
    hourly("paused", "-20 MINUTE", "paused_time = '2020-01-01'");
    assert_int_equal(decide(db).decided, 3);
    run(db,
        "UPDATE dq_task SET status = 1, live = NULL, finish_time = UTC_TIMESTAMP(3) WHERE task_key NOT LIKE 'lives%%'");
    run(db, "UPDATE dq_schedule SET next_slot = next_slot + INTERVAL 1 HOUR WHERE name = 'paused'");
    run(db, "UPDATE dq_schedule SET pause_reason = last_slot");
    assert_false(decided_ahead());
    decide_ahead();
    /* a run of before that is retried meanwhile, and one by hand */
    run(db,
        "UPDATE dq_slot SET is_open = 1, decide_time = decide_time + INTERVAL 1 YEAR WHERE name = 'gap'");
    run(db, "INSERT INTO dq_slot (name, slot, decision, decide_time) SELECT 'first', at, 6, at"
            " FROM (SELECT UTC_TIMESTAMP(3) + INTERVAL 100 DAY AS at) a");
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_schedule WHERE " IS_AHEAD("next_slot")),
                     7);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_limit WHERE " IS_AHEAD("held_until")), 2);
    assert_true(decided_ahead());
    const int64_t ahead = number(db, SLOTS_AHEAD);

    ok(ahead_store_correct(db, &done, &err));
    assert_int_equal(done.limits, 2);
    assert_true(done.schedules >= 7);
    assert_false(decided_ahead());
    assert_true(strchr(done.names, ' '));
    assert_int_equal(number(db, SLOTS_AHEAD), ahead);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_schedule WHERE " IS_AHEAD("last_slot")),
                     0);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_schedule WHERE kind = 1 AND last_slot <> pause_reason"),
        0);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_limit WHERE held_until > UTC_TIMESTAMP(3)"), 0);
    assert_one("dq_limit WHERE name = 'b' AND breaker = 1 AND update_time <= UTC_TIMESTAMP(3)");
    ok(ahead_store_correct(db, &done, &err));
    assert_int_equal(done.schedules + done.limits, 0);
    decide(db);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_schedule WHERE kind = 1"
                                " AND MINUTE(next_slot) = 0 AND zone_version <> '?'"
                                " AND next_slot <= UTC_TIMESTAMP(3) + INTERVAL 3 HOUR"),
                     5);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_schedule WHERE kind = 2"
                                " AND next_slot BETWEEN UTC_TIMESTAMP(3) + INTERVAL 50 MINUTE"
                                " AND UTC_TIMESTAMP(3) + INTERVAL 61 MINUTE"),
                     2);
}

static void a_correction_that_meets_a_lock_changes_nothing_and_is_made_later(void **state)
{
    struct db *other = harness_db();
    struct ahead_store_done done;
    (void)state;
    hourly("first", "-1 MINUTE", "");
    decide_ahead();
    run(other, "BEGIN");
    number(other, "SELECT breaker FROM dq_limit WHERE name = 'h' FOR UPDATE");
    assert_int_equal(ahead_store_correct(db, &done, &err), ERR_LOCKED);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_schedule WHERE " IS_AHEAD("next_slot")),
                     1);
    assert_true(decided_ahead());
    run(other, "ROLLBACK");
    ok(ahead_store_correct(db, &done, &err));
    assert_string_equal(done.names, "first");
    assert_false(decided_ahead());
    db_free(other);
}

static void decide_at(int seconds)
{
    struct db *other = harness_db();

    run(other, "SET timestamp = UNIX_TIMESTAMP() + %d", seconds);
    while (decide(other).more)
        ;
    db_free(other);
}

/* One has been set within that hour, too, so that its next slot is computed anew. */
static void a_clock_set_back_an_hour_repeats_no_slot(void **state)
{
    struct ahead_store_done done;
    (void)state;
    hourly("hour", "-1 SECOND", "");
    hourly("minute", "-1 SECOND", "catch_up = 2");
    hourly("set", "-1 SECOND", "catch_up = 2");
    run(db, "UPDATE dq_schedule SET expression = '1m' WHERE catch_up = 2");
    decide_at(3600);
    const int64_t tasks = number(db, "SELECT COUNT(*) FROM dq_task");
    assert_in_range(tasks, 100, 130);
    run(db, "UPDATE dq_task SET status = 1, live = NULL, finish_time = UTC_TIMESTAMP(3)");
    run(db, "UPDATE dq_schedule SET update_time = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR"
            " WHERE name = 'set'");
    ok(ahead_store_correct(db, &done, &err));
    assert_string_equal(done.names, "set");
    for (int minutes = 0; minutes < 60; minutes += 7)
        decide_at(minutes * 60);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), tasks);
    decide_at(3600 + 90);
    assert_in_range(number(db, "SELECT COUNT(*) FROM dq_task"), tasks + 2, tasks + 7);
    assert_int_equal(number(db, "SELECT COUNT(*) - COUNT(DISTINCT task_key) FROM dq_task"), 0);
}

static void a_gap_that_rests_is_left_alone(void **state)
{
    struct ahead_store_done done;
    (void)state;
    hourly("gap", "5 SECOND", "");
    hourly("from", "-3 HOUR", "from_time = next_slot");
    hourly("alive", "-3 HOUR", "");
    hourly("later", "-3 HOUR", "from_time = next_slot - INTERVAL 1 HOUR");
    run(db, "UPDATE dq_schedule SET kind = 2, last_slot = IF(name = 'gap', NULL, '2020-01-01')");
    assert_int_equal(decide(db).added, 1);
    ok(ahead_store_correct(db, &done, &err));
    assert_string_equal(done.names, "alive later");
    assert_one("dq_schedule WHERE name = 'later' AND next_slot = from_time");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_a_clock_ahead_has_decided_holds_nothing_up, harness_setup),
        cmocka_unit_test_setup(a_correction_that_meets_a_lock_changes_nothing_and_is_made_later,
                               harness_setup),
        cmocka_unit_test_setup(a_clock_set_back_an_hour_repeats_no_slot, harness_setup),
        cmocka_unit_test_setup(a_gap_that_rests_is_left_alone, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
