/* Leases: renewed and checked by their owner, taken back when they have ended. */
#include "harness.h"
#include "store/fleet/poller_store.h"

#include <inttypes.h>

static void check_and_renew_tell_what_was_lost(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct claim_ref refs[4];
    bool lost[4], followed[4], again[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        add("t", NULL, -1000);
    struct task_array won = claim(db, &a, "t", 4);
    for (int i = 0; i < 4; i++)
        refs[3 - i] = (struct claim_ref){won.items[i].id, won.items[i].version};
    run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3)");
    ok(lease_store_renew(db, &a, refs, 4, 60000, false, lost, NULL, &err));
    for (int i = 0; i < 4; i++)
        assert_false(lost[i]);
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_task WHERE lease_until > UTC_TIMESTAMP(3) + INTERVAL 30 SECOND AND version = 1"),
        4);
    run(db, "UPDATE dq_task SET status = 4, version = 2 WHERE id = %" PRIu64, refs[0].id);
    run(db, "UPDATE dq_task SET claim_token = REPEAT('b', 16), version = 3 WHERE id = %" PRIu64,
        refs[2].id);
    run(db, "UPDATE dq_task SET again_time = UTC_TIMESTAMP(3) WHERE id = %" PRIu64, refs[3].id);
    ok(lease_store_check(db, &a, refs, 4, lost, followed, again, &err));
    assert_true(lost[0] && !lost[1] && lost[2] && !lost[3]);
    assert_true(!again[1] && again[3]);
    memset(lost, 0, sizeof lost);
    ok(lease_store_renew(db, &a, refs, 4, 1000, false, lost, NULL, &err));
    assert_true(lost[0] && !lost[1] && lost[2] && !lost[3]);
    ok(lease_store_check(db, &b, refs, 4, lost, followed, again, &err));
    assert_true(lost[0] && lost[1] && lost[2] && lost[3]);
    task_array_done(&won);
}

static void a_stale_owner_changes_nothing(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct task_array won = claimed(&a, 4), expired = {0};
    struct settlement s[4];
    bool applied[4], lost[4];
    enum lease_end ends[4] = {LEASE_TAKE_BACK};
    struct claim_ref refs[4];
    bool taken[4];
    (void)state;
    run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 4);
    ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, NULL, &err));
    assert_true(taken[0] && taken[1] && taken[2] && taken[3]);
    struct task_array again = claim(db, &b, "t", 3); /* one stays pending */
    assert_int_equal(again.count, 3);
    int64_t before = number(
        db,
        "SELECT SUM(CRC32(CONCAT_WS('/', id, version, status, attempt, host, pid, lease_until, HEX(claim_token)))) FROM dq_task");
    for (int i = 0; i < 4; i++) {
        s[i] = result(&won.items[i], i % 2 ? TASK_SUCCEED : TASK_TRY_LATER,
                      i % 2 ? OUTCOME_DONE : OUTCOME_EXIT);
        refs[i] = (struct claim_ref){won.items[i].id, won.items[i].version};
    }
    ok(settle_store_settle(db, &a, s, 4, false, false, applied, NULL, &err));
    ok(lease_store_renew(db, &a, refs, 4, 60000, false, lost, NULL, &err));
    for (int i = 0; i < 4; i++) {
        assert_false(applied[i]);
        assert_true(lost[i]);
    }
    assert_int_equal(
        number(
            db,
            "SELECT SUM(CRC32(CONCAT_WS('/', id, version, status, attempt, host, pid, lease_until, "
            "HEX(claim_token)))) FROM dq_task"),
        before);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 4);
    task_array_done(&won);
    task_array_done(&again);
    task_array_done(&expired);
}

/* Further than the longest lease of any dqd, a day if none says, and a minute. */
static void a_lease_that_is_too_far_ahead_is_cut(void **state)
{
    static const int64_t ahead_s[] = {85, 95, 3600, 87000};
    struct claim_owner a = owner('a');
    struct poller_say say = {
        .mode = "resident", .slots = 8, .stale_after_ms = 5000, .lease_ms = 30000};
    enum lease_end ends[4] = {LEASE_CUT, LEASE_CUT, LEASE_CUT, LEASE_CUT};
    struct task_array won = claimed(&a, 4), expired = {0};
    struct poller_share share;
    bool taken[4], lost;
    (void)state;
    for (int i = 0; i < 4; i++)
        run(db,
            "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) + INTERVAL %" PRId64
            " SECOND WHERE id = %" PRIu64,
            ahead_s[i], won.items[i].id);
    ok(lease_store_expired(db, NULL, NULL, 0, 86400000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 1);
    task_array_done(&expired);
    ok(poller_store_beat(db, &a, &say, &share, &err));
    assert_int_equal(share.longest_lease_ms, 30000);
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 3);
    ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, NULL, &err));
    assert_false(taken[0] || taken[1] || taken[2]);
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_task WHERE status = 3 AND version = 1"
            " AND lease_until BETWEEN UTC_TIMESTAMP(3) AND UTC_TIMESTAMP(3) + INTERVAL 30 SECOND"),
        3);
    task_array_done(&expired);
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 0);
    /* its owner lives: it has renewed the lease between the look and the cut */
    struct claim_ref ref = {won.items[1].id, won.items[1].version};
    run(db,
        "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR WHERE id = %" PRIu64,
        ref.id);
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 1);
    ok(lease_store_renew(db, &a, &ref, 1, 60000, false, &lost, NULL, &err));
    assert_false(lost);
    ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, NULL, &err));
    assert_true(number(db,
                       "SELECT lease_until > UTC_TIMESTAMP(3) + INTERVAL 31 SECOND FROM dq_task"
                       " WHERE id = %" PRIu64,
                       ref.id));
    task_array_done(&expired);
    task_array_done(&won);
}

/* Its lease may have been longer than those of the others: only one above a day is too far
 * ahead. */
static void what_an_ended_dqd_has_left_keeps_its_lease(void **state)
{
    static const struct {
        int64_t ahead_s, cut_s;
    } cases[] = {{600, 600}, {86400, 86400}, {87000, 86400}};
    const size_t count = sizeof cases / sizeof *cases;
    struct claim_owner a = owner('a'), b = owner('b');
    struct poller_say say = {
        .mode = "resident", .slots = 8, .stale_after_ms = 5000, .lease_ms = 30000};
    enum lease_end ends[] = {LEASE_CUT, LEASE_CUT, LEASE_CUT};
    struct task_array won = claimed(&a, (int)count), expired = {0};
    struct poller_share share;
    bool taken[3];
    (void)state;
    ok(poller_store_beat(db, &a, &say, &share, &err));
    ok(poller_store_beat(db, &b, &say, &share, &err));
    for (size_t i = 0; i < count; i++)
        run(db,
            "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) + INTERVAL %" PRId64
            " SECOND WHERE id = %" PRIu64,
            cases[i].ahead_s, won.items[i].id);
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 3); /* listed before it has ended, and to be cut after it */
    ok(poller_store_leave(db, &a, &err));
    ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, NULL, &err));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(number(db,
                                "SELECT lease_until BETWEEN UTC_TIMESTAMP(3) + INTERVAL %" PRId64
                                " - 60 SECOND AND UTC_TIMESTAMP(3) + INTERVAL %" PRId64
                                " SECOND FROM dq_task WHERE id = %" PRIu64,
                                cases[i].cut_s, cases[i].cut_s, won.items[i].id),
                         1);
    task_array_done(&expired);
    run(db,
        "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) + INTERVAL 87000 SECOND WHERE id = %" PRIu64,
        won.items[2].id);
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 1);
    assert_true(expired.items[0].id == won.items[2].id);
    task_array_done(&expired);
    task_array_done(&won);
}

static void expired_leases_are_taken_back(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, 4), expired = {0};
    struct settlement s = result(&won.items[3], TASK_SUCCEED, OUTCOME_DONE);
    enum lease_end ends[4] = {LEASE_TAKE_BACK};
    bool applied;
    struct claim_ref renewed = {won.items[2].id, won.items[2].version};
    bool taken[4];
    (void)state;
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 0);
    run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 4);
    assert_string_equal(expired.items[0].tag, "t");
    assert_string_equal(expired.items[0].host, "test.example");
    assert_int_equal(expired.items[0].max_attempts, 3);
    for (size_t i = 0; i < 4; i++) /* by what the list says, not by its order */
        ends[i] = expired.items[i].id == won.items[1].id ? LEASE_GIVE_UP : LEASE_TAKE_BACK;
    /* Between the look and the taking, one owner renews and one settles: neither is overwritten. */
    ok(lease_store_renew(db, &a, &renewed, 1, 60000, false, &applied, NULL, &err));
    ok(settle_store_settle(db, &a, &s, 1, false, false, &applied, NULL, &err));
    assert_true(applied);
    ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, NULL, &err));
    assert_int_equal(taken[0] + taken[1] + taken[2] + taken[3], 2);
    assert_int_equal(
        number(db,
               "SELECT status = 0 AND attempt = 1 AND version = 2 FROM dq_task WHERE id = %" PRIu64,
               won.items[0].id),
        1);
    assert_int_equal(
        number(db, "SELECT status = 2 AND finish_time IS NOT NULL FROM dq_task WHERE id = %" PRIu64,
               won.items[1].id),
        1);
    assert_int_equal(number(db,
                            "SELECT status = 3 AND version = 1 FROM dq_task WHERE id = %" PRIu64,
                            won.items[2].id),
                     1);
    assert_int_equal(
        number(db, "SELECT status = 1 FROM dq_task WHERE id = %" PRIu64, won.items[3].id), 1);
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'lease-expired' AND version = 1 AND start_time IS NOT NULL"),
        2);
    task_array_done(&won);
    task_array_done(&expired);
}

/* The next attempt, or the next run if there is none, begins after the add, and has its body. */
static void what_was_added_again_survives_its_dqd(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, 3), expired = {0};
    enum lease_end ends[3] = {LEASE_TAKE_BACK};
    bool taken[3];
    (void)state;
    run(db, "UPDATE dq_task SET task_key = CONCAT('key ', id), live = 1,"
            " lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    run(db,
        "UPDATE dq_task SET again_body = 'again', again_time = '2031-01-02 03:04:05.678'"
        " WHERE id <> %" PRIu64,
        won.items[2].id);
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 10, &expired, &err));
    assert_int_equal(expired.count, 3);
    for (size_t i = 0; i < 3; i++)
        ends[i] = expired.items[i].id == won.items[0].id ? LEASE_GIVE_UP : LEASE_TAKE_BACK;
    ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, NULL, &err));
    assert_true(taken[0] && taken[1] && taken[2]);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 0 AND live = 1 AND"
                                " again_time IS NULL AND again_body IS NULL AND claim_token IS NULL"
                                " AND version = 2 AND body_size = LENGTH(message_body)"),
                     3);
    static const char is[] = "SELECT %s FROM dq_task WHERE id = %" PRIu64;
    assert_int_equal(number(db, is,
                            "message_body = 'again' AND attempt = 0"
                            " AND expected_time = '2031-01-02 03:04:05.678'",
                            won.items[0].id),
                     1);
    assert_int_equal(number(db, is, "message_body = 'again' AND attempt = 1", won.items[1].id), 1);
    assert_int_equal(number(db, is, "message_body <> 'again' AND attempt = 1", won.items[2].id), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'lease-expired'"),
                     3);
    task_array_done(&won);
    task_array_done(&expired);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(check_and_renew_tell_what_was_lost, harness_setup),
        cmocka_unit_test_setup(a_stale_owner_changes_nothing, harness_setup),
        cmocka_unit_test_setup(a_lease_that_is_too_far_ahead_is_cut, harness_setup),
        cmocka_unit_test_setup(what_an_ended_dqd_has_left_keeps_its_lease, harness_setup),
        cmocka_unit_test_setup(expired_leases_are_taken_back, harness_setup),
        cmocka_unit_test_setup(what_was_added_again_survives_its_dqd, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
