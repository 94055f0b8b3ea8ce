/* What pollers look at: the next time of each tag, new rows, and from where on. */
#define claim claim_step
#include "poller/claim.c"
#undef claim

#include "harness.h"

#include <inttypes.h>

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

static void floor_spares_what_is_older(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    int64_t now_us, next[TASK_LEVELS];
    struct peek_floor floors[TASK_LEVELS] = {{0}};
    (void)state;
    add("t", NULL, -60000);
    uint64_t young = add("t", NULL, -1000);
    add("t", NULL, 60000);
    add("other", NULL, -2000);
    ok(peek_store_next(db, "t", floors, &now_us, next, &err));
    assert_in_range(now_us / 1000 - next[TASK_NORMAL], 60000, 90000);
    floors[TASK_NORMAL].at = now_us / 1000 - 30000;
    ok(peek_store_next(db, "t", floors, &now_us, next, &err));
    assert_in_range(now_us / 1000 - next[TASK_NORMAL], 1000, 30000);
    ask.floor[TASK_NORMAL].at = next[TASK_NORMAL];
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    assert_int_equal(won.items[0].id, young);
    task_array_done(&won);
    ok(peek_store_next(db, "t", ask.floor, &now_us, next, &err));
    assert_in_range(next[TASK_NORMAL] - now_us / 1000, 1, 60000);
    ok(peek_store_next(db, "none", floors, &now_us, next, &err));
    assert_true(next[TASK_NORMAL] == TASK_TIME_NONE);
    assert_int_equal(now_us, 0);
}

static void floor_within_an_instant(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    uint64_t ids[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        ids[i] = add("t", NULL, -5000);
    run(db, "UPDATE dq_task SET expected_time = '2026-11-20 10:00:00.250'");
    run(db, "UPDATE dq_task SET expected_time = '2026-11-20 10:00:00.251' WHERE id = %" PRIu64,
        ids[0]);
    ask.floor[TASK_NORMAL] = (struct peek_floor){INT64_C(1795168800250), ids[2]};
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 2);
    assert_int_equal(won.items[0].id, ids[3]);
    assert_int_equal(won.items[1].id, ids[0]);
    task_array_done(&won);
}

static void a_look_at_one_tag_is_not_forgotten(void **state)
{
    static char name[] = "t";
    struct context ctx = {.db = db};
    struct look look = {.clock = &ctx.clock};
    struct claims claims = {.ctx = &ctx, .look = &look};
    struct tag_state tag = {.name = name, .look = {.next_at = TASK_TIME_NONE, .ask = true}};
    (void)state;
    add("t", NULL, 60000);
    ok(look_at_tag(&claims, &tag, &err));
    assert_true(tag.look.next_at != TASK_TIME_NONE);
    assert_false(tag.look.ask);
    run(db, "DELETE FROM dq_task");
    ok(look_at_tag(&claims, &tag, &err));
    assert_true(tag.look.next_at == TASK_TIME_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(peek_tells_next_time_and_clock, harness_setup),
        cmocka_unit_test_setup(news_are_what_was_inserted_since, harness_setup),
        cmocka_unit_test_setup(peek_is_given_up_in_time, harness_setup),
        cmocka_unit_test_setup(floor_spares_what_is_older, harness_setup),
        cmocka_unit_test_setup(floor_within_an_instant, harness_setup),
        cmocka_unit_test_setup(a_look_at_one_tag_is_not_forgotten, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
