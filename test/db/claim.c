/* Taking due tasks: who wins, what a lost answer leaves, what limits and pauses do. */
#include "harness.h"
#include "store/db_connect.h"
#include "store/poller_store.h"
#include "store/sql.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct claim_ask plain = {
    .tag = "t", .limit = 100, .shares = 1, .max_attempts = 7, .lease_ms = 60000};

static void claim_takes_what_is_due_in_order(void **state)
{
    struct claim_owner a = owner('a');
    (void)state;
    uint64_t late = add("t", NULL, -1000), later = add("t", "k", -5000);
    add("t", NULL, 60000);
    add("other", NULL, -1000);

    struct task_array won = claim(db, &a, "t", 10);
    assert_int_equal(won.count, 2);
    assert_int_equal(won.items[0].id, later);
    assert_int_equal(won.items[1].id, late);
    struct task *t = &won.items[0];
    assert_string_equal(t->tag, "t");
    assert_string_equal(t->key, "k");
    assert_int_equal(t->body_size, 4);
    assert_memory_equal(t->body, "body", 4);
    assert_int_equal(t->attempt, 1);
    assert_int_equal(t->version,
                     number(db, "SELECT version FROM dq_task WHERE id = %" PRIu64, t->id));
    assert_int_equal(t->max_attempts, 3);
    assert_int_equal(
        number(
            db,
            "SELECT status = 3 AND attempt = 1 AND max_attempts = 3 AND host = 'test.example' AND pid = 97"
            " AND lease_until > UTC_TIMESTAMP(3) + INTERVAL 50 SECOND AND execution_time <= UTC_TIMESTAMP(3)"
            " FROM dq_task WHERE id = %" PRIu64,
            t->id),
        1);
    task_array_done(&won);
    won = claim(db, &a, "t", 10);
    assert_int_equal(won.count, 0);
    task_array_done(&won);
}

/* A rival takes some of the candidates between our two statements. A transaction that began before
 * the rival still sees them as pending, so it reads as candidates what is gone. */
static void claim_lost_race(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct db *other = harness_db();
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    for (int i = 0; i < 10; i++)
        add("t", NULL, -1000);
    run(other, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    /* With it, which is the default from 11.6 on, the rival is an error. */
    run(other, "SET /*M!110602 SESSION innodb_snapshot_isolation = 0, */ @dq = 1");
    run(other, "SET SESSION autocommit = 0");
    assert_int_equal(number(other, "SELECT COUNT(*) FROM dq_task"), 10);
    struct task_array first = claim(db, &a, "t", 4);
    assert_int_equal(first.count, 4);
    ok(claim_store_claim(other, &b, &plain, &won, &saw, NULL, &err));
    run(other, "COMMIT");
    assert_int_equal(saw.found, 10);
    assert_int_equal(saw.lost, 4);
    assert_int_equal(won.count, 6);
    for (size_t i = 0; i < won.count; i++)
        for (size_t k = 0; k < first.count; k++)
            assert_int_not_equal(won.items[i].id, first.items[k].id);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3 AND version = 1 AND attempt = 1"),
        10);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE claim_token = REPEAT('a', 16)"),
                     4);
    task_array_done(&first);
    task_array_done(&won);
    db_free(other);
}

static void claim_recovers_after_lost_answer(void **state)
{
    struct claim_owner a = owner('a');
    struct proxy *p = proxy_new();
    struct task_array won = {0}, found = {0};
    struct claim_seen saw;
    (void)state;
    uint64_t mine = add("t", NULL, -1000);
    struct task_array had = claim(db, &a, "t", 1);
    for (int i = 0; i < 5; i++)
        add("t", NULL, -1000);
    proxy_cut(p, "UPDATE dq_task", true);
    assert_int_equal(claim_store_claim(proxy_db(p), &a, &plain, &won, &saw, NULL, &err), ERR_LOST);
    assert_int_equal(won.count, 0);
    assert_int_equal(proxy_cuts(p), 1);
    ok(db_connect(proxy_db(p), &err));
    ok(claim_store_recover(proxy_db(p), &a, &mine, 1, &found, &err));
    assert_int_equal(found.count, 5);
    for (size_t i = 0; i < found.count; i++) {
        assert_int_not_equal(found.items[i].id, mine);
        assert_int_equal(
            found.items[i].version,
            number(db, "SELECT version FROM dq_task WHERE id = %" PRIu64, found.items[i].id));
        assert_memory_equal(found.items[i].body, "body", 4);
    }
    task_array_done(&found);
    task_array_done(&had);
    /* And when the statement itself got lost, nothing was taken. */
    add("t", NULL, -1000);
    proxy_cut(p, "UPDATE dq_task", false);
    assert_int_equal(claim_store_claim(proxy_db(p), &a, &plain, &won, &saw, NULL, &err), ERR_LOST);
    ok(db_connect(proxy_db(p), &err));
    assert_int_equal(number(proxy_db(p), "SELECT COUNT(*) FROM dq_task WHERE status = 0"), 1);
    proxy_free(p);
}

static void long_bodies_stay_behind_until_asked_for(void **state)
{
    struct claim_owner a = owner('a');
    struct task *tasks[3];
    size_t loaded;
    (void)state;
    uint64_t small = add("t", NULL, -3000), big = add("t", NULL, -2000),
             unknown = add("t", NULL, -1000);
    run(db,
        "UPDATE dq_task SET message_body = REPEAT('x', 100000), body_size = 100000 WHERE id = %" PRIu64,
        big);
    run(db,
        "UPDATE dq_task SET message_body = REPEAT('y', 50000), body_size = NULL WHERE id = %" PRIu64,
        unknown);
    struct task_array won = claim(db, &a, "t", 10);
    assert_int_equal(won.count, 3);
    for (int i = 0; i < 3; i++)
        tasks[i] = &won.items[i];
    assert_int_equal(tasks[0]->id, small);
    assert_non_null(tasks[0]->body);
    assert_null(tasks[1]->body);
    assert_int_equal(tasks[1]->body_size, 100000);
    assert_null(tasks[2]->body);
    assert_int_equal(tasks[2]->body_size, SIZE_MAX);
    ok(body_store_measure(db, tasks + 1, 2, &err));
    assert_int_equal(tasks[1]->body_size, 100000);
    assert_int_equal(tasks[2]->body_size, 50000);
    ok(body_store_load(db, tasks + 1, 2, 120000, &loaded, &err));
    assert_int_equal(loaded, 1);
    assert_int_equal(((char *)tasks[1]->body)[99999], 'x');
    ok(body_store_load(db, tasks + 2, 1, 10, &loaded, &err)); /* at least one, however long */
    assert_int_equal(loaded, 1);
    assert_int_equal(((char *)tasks[2]->body)[0], 'y');
    for (int i = 1; i < 3; i++) {
        free(tasks[i]->body);
        tasks[i]->body = NULL;
    }
    tasks[1]->body_size = SIZE_MAX;
    tasks[2]->body_size = 10;
    ok(body_store_load(db, tasks + 1, 2, 20, &loaded, &err));
    assert_int_equal(loaded, 1);
    assert_null(tasks[2]->body); /* a first one of unknown size leaves no room */
    run(db, "DELETE FROM dq_task WHERE id = %" PRIu64, unknown);
    ok(body_store_measure(db, tasks + 2, 1, &err));
    assert_int_equal(tasks[2]->body_size, SIZE_MAX);
    ok(body_store_load(db, tasks + 2, 1, 10, &loaded, &err));
    assert_int_equal(loaded, 0);
    task_array_done(&won);
}

static void shares_are_preferred_and_overdue_ones_stolen(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain;
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

static void global_limit_holds(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct db *other = harness_db();
    struct claim_ask ask = plain;
    struct task_array won = {0}, more = {0};
    struct claim_seen saw;
    (void)state;
    for (int i = 0; i < 10; i++)
        add("t", NULL, -1000);
    ask.global_limit = 3;
    ask.limit = 2;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 2);
    ask.limit = 10;
    ok(claim_store_claim(other, &b, &ask, &more, &saw, NULL, &err));
    assert_int_equal(more.count, 1);
    ok(claim_store_claim(db, &a, &ask, &more, &saw, NULL, &err));
    assert_int_equal(more.count, 1);
    assert_int_equal(saw.found, 0);
    /* While one counts, the other waits: the tag's row is the lock. */
    run(db, "START TRANSACTION");
    run(db, "UPDATE dq_tag SET update_time = UTC_TIMESTAMP(3) WHERE tag = 't'");
    assert_int_equal(claim_store_claim(other, &b, &ask, &more, &saw, NULL, &err), ERR_LOCKED);
    run(db, "ROLLBACK");
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3"), 3);
    task_array_done(&won);
    task_array_done(&more);
    db_free(other);
}

static void peek_tells_next_time_and_clock(void **state)
{
    struct peek p = {0};
    (void)state;
    ok(peek_store_all(db, 0, &p, &err));
    assert_int_equal(p.count, 0);
    assert_int_equal(p.now_us, 0);
    add("a", NULL, -5000);
    add("a", NULL, -9000);
    add("b", NULL, 60000);
    add("gone", NULL, -1000);
    run(db, "UPDATE dq_task SET status = 1 WHERE tag = 'gone'");
    run(db, "SET timestamp = 1900000000.123456");
    ok(peek_store_all(db, 0, &p, &err));
    assert_true(p.now_us == INT64_C(1900000000123456));
    run(db, "SET timestamp = DEFAULT");
    ok(peek_store_all(db, 0, &p, &err));
    assert_int_equal(p.count, 2);
    for (size_t i = 0; i < p.count; i++) {
        const struct peek_tag *t = &p.tags[i];
        if (t->tag[0] == 'a')
            assert_in_range(p.now_us / 1000 - t->next_at, 9000, 60000);
        else
            assert_in_range(t->next_at - p.now_us / 1000, 1, 60000);
    }
    peek_store_done(&p);
}

static void news_are_what_was_inserted_since(void **state)
{
    struct peek p = {0};
    uint64_t id = 0, last;
    (void)state;
    add("a", NULL, -5000);
    add("b", NULL, 60000);
    ok(peek_store_news(db, &id, &p, &err));
    assert_int_equal(p.count, 2);
    last = id;
    ok(peek_store_news(db, &id, &p, &err));
    assert_int_equal(p.count, 0);
    assert_int_equal(id, last);
    add("a", NULL, -1000);
    add("gone", NULL, -1000);
    run(db, "UPDATE dq_task SET status = 1 WHERE tag = 'gone'");
    ok(peek_store_news(db, &id, &p, &err));
    assert_int_equal(p.count, 1);
    assert_string_equal(p.tags[0].tag, "a");
    assert_in_range(p.now_us / 1000 - p.tags[0].next_at, 1000, 60000);
    assert_int_equal(id, last + 1);
    peek_store_done(&p);
}

static void peek_is_given_up_in_time(void **state)
{
    struct peek p = {0};
    (void)state;
    run(db, "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time)"
            " WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900)"
            " SELECT CONCAT('t', a.i * 1000 + b.i), '', 0, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)"
            " FROM n a, n b WHERE b.i <= 60");
    assert_int_equal(peek_store_all(db, 1, &p, &err), ERR_TRANSIENT);
    ok(peek_store_all(db, 600000, &p, &err));
    assert_int_equal(p.count, 54000);
    peek_store_done(&p);
}

static void paused_tags_are_not_claimed(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain;
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    add("t", NULL, -1000);
    run(db, "INSERT INTO dq_tag (tag, paused_until) VALUES ('t', '9999-12-31 23:59:59.999')");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count + saw.found + saw.lost, 0);
    run(db, "UPDATE dq_tag SET paused_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    task_array_done(&won);
}

static void what_is_due_soon_is_claimed_when_asked(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain;
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    add("t", NULL, 60000);
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 0);
    ask.early_ms = 61000;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_task WHERE execution_time = expected_time"), 1);
    task_array_done(&won);
}

static void floor_spares_what_is_older(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain;
    struct task_array won = {0};
    struct claim_seen saw;
    int64_t now_us, next_at;
    (void)state;
    add("t", NULL, -60000);
    uint64_t young = add("t", NULL, -1000);
    add("t", NULL, 60000);
    add("other", NULL, -2000);
    ok(peek_store_next(db, "t", &(struct peek_floor){0}, &now_us, &next_at, &err));
    assert_in_range(now_us / 1000 - next_at, 60000, 90000);
    ok(peek_store_next(db, "t", &(struct peek_floor){.at = now_us / 1000 - 30000}, &now_us,
                       &next_at, &err));
    assert_in_range(now_us / 1000 - next_at, 1000, 30000);
    ask.floor.at = next_at;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    assert_int_equal(won.items[0].id, young);
    task_array_done(&won);
    ok(peek_store_next(db, "t", &ask.floor, &now_us, &next_at, &err));
    assert_in_range(next_at - now_us / 1000, 1, 60000);
    ok(peek_store_next(db, "none", &(struct peek_floor){0}, &now_us, &next_at, &err));
    assert_true(next_at == TASK_TIME_NONE);
    assert_int_equal(now_us, 0);
}

static void floor_within_an_instant(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain;
    struct task_array won = {0};
    struct claim_seen saw;
    uint64_t ids[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        ids[i] = add("t", NULL, -5000);
    run(db, "UPDATE dq_task SET expected_time = '2026-11-20 10:00:00.250'");
    run(db, "UPDATE dq_task SET expected_time = '2026-11-20 10:00:00.251' WHERE id = %" PRIu64,
        ids[0]);
    ask.floor = (struct peek_floor){INT64_C(1795168800250), ids[2]};
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 2);
    assert_int_equal(won.items[0].id, ids[3]);
    assert_int_equal(won.items[1].id, ids[0]);
    task_array_done(&won);
}

static void check_and_renew_tell_what_was_lost(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct claim_ref refs[4];
    bool lost[4], followed[4];
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
    ok(lease_store_check(db, &a, refs, 4, lost, followed, &err));
    assert_true(lost[0] && !lost[1] && lost[2] && !lost[3]);
    memset(lost, 0, sizeof lost);
    ok(lease_store_renew(db, &a, refs, 4, 1000, false, lost, NULL, &err));
    assert_true(lost[0] && !lost[1] && lost[2] && !lost[3]);
    ok(lease_store_check(db, &b, refs, 4, lost, followed, &err));
    assert_true(lost[0] && lost[1] && lost[2] && lost[3]);
    task_array_done(&won);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(claim_takes_what_is_due_in_order, harness_setup),
        cmocka_unit_test_setup(claim_lost_race, harness_setup),
        cmocka_unit_test_setup(claim_recovers_after_lost_answer, harness_setup),
        cmocka_unit_test_setup(long_bodies_stay_behind_until_asked_for, harness_setup),
        cmocka_unit_test_setup(shares_are_preferred_and_overdue_ones_stolen, harness_setup),
        cmocka_unit_test(shares_are_even_whatever_the_step_of_ids),
        cmocka_unit_test(every_id_has_a_share),
        cmocka_unit_test_setup(global_limit_holds, harness_setup),
        cmocka_unit_test_setup(peek_tells_next_time_and_clock, harness_setup),
        cmocka_unit_test_setup(news_are_what_was_inserted_since, harness_setup),
        cmocka_unit_test_setup(peek_is_given_up_in_time, harness_setup),
        cmocka_unit_test_setup(paused_tags_are_not_claimed, harness_setup),
        cmocka_unit_test_setup(what_is_due_soon_is_claimed_when_asked, harness_setup),
        cmocka_unit_test_setup(floor_spares_what_is_older, harness_setup),
        cmocka_unit_test_setup(floor_within_an_instant, harness_setup),
        cmocka_unit_test_setup(check_and_renew_tell_what_was_lost, harness_setup),
        cmocka_unit_test_setup(pollers_know_their_share, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
