/* Long bodies have few neighbours in a statement; a body may be longer than its row says. */
#include "harness.h"
#include "store/row/rows.h"

#include <inttypes.h>

static void a_body_that_is_longer_than_it_says_stays_behind(void **state)
{
    struct claim_owner a = owner('a');
    (void)state;
    uint64_t id = add("t", NULL, -1000);
    run(db,
        "UPDATE dq_task SET message_body = REPEAT('x', 16385), body_size = 1 WHERE id = %" PRIu64,
        id);
    struct task_array won = claim(db, &a, "t", 1);
    assert_null(won.items[0].body);
    assert_int_equal(won.items[0].body_size, SIZE_MAX);
    assert_true(won.lies);
    struct task *t = &won.items[0];
    ok(body_store_measure(db, &t, 1, &err));
    assert_int_equal(t->body_size, 16385);
    task_array_done(&won);
    id = add("t", NULL, -1000);
    run(db,
        "UPDATE dq_task SET message_body = REPEAT('x', 16384), body_size = 1 WHERE id = %" PRIu64,
        id);
    won = claim(db, &a, "t", 1);
    assert_int_equal(won.items[0].body_size, 16384);
    assert_false(won.lies);
    task_array_done(&won);
}

/* Bodies of which two are too long for one statement, by their body_size. */
static void long_bodies_are_changed_one_at_a_time(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = {
        .tag = "t", .limit = 100, .shares = 1, .max_attempts = 7, .lease_ms = 60000, .next = true};
    struct retention_place place = {0};
    struct task_filter f = {0};
    struct task_array won = {0};
    struct targets x = {0};
    struct claim_seen saw;
    size_t deleted;
    (void)state;
    add("t", NULL, -9000);
    for (int i = 1; i < 3; i++)
        add("t", NULL, -1000);
    run(db, "UPDATE dq_task SET body_size = 9000000");
    add("t", NULL, -500);

    ok(targets_list(db, &f, TASK_ANY, NULL, NULL, &x, &err));
    assert_int_equal(x.count, 4);
    assert_int_equal(targets_step(&x, 0), 1);
    assert_int_equal(targets_step(&x, 2), 2);
    targets_done(&x);

    ask.without_long = true;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1); /* the short one */
    assert_int_equal(saw.left, 3);
    ask.without_long = false;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 2);
    assert_int_equal(saw.left, 2);
    assert_int_equal(saw.lost, 0);
    ask.without_bodies = true; /* no size is believed; several of unknown size go together */
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 4);
    assert_int_equal(saw.left, 0);
    task_array_done(&won);

    run(db,
        "UPDATE dq_task SET status = 4, finish_time = '2020-01-01', expected_time = '2020-01-01'");
    for (int left = 2; left >= 1; left--) {
        ok(retention_store_expire(db, TASK_CANCELLED, 1000, 100, &place, &deleted, NULL, &err));
        assert_int_equal(deleted, 1);
        assert_true(place.cut);
    }
    ok(retention_store_expire(db, TASK_CANCELLED, 1000, 100, &place, &deleted, NULL, &err));
    assert_int_equal(deleted, 2);
    assert_false(place.cut);
}

static void bodies_have_room_in_a_statement(void **state)
{
    size_t bytes = 0, n = 0;
    (void)state;
    assert_true(rows_take(&bytes, (size_t)1 << 30)); /* the first one always */
    assert_false(rows_take(&bytes, 10000));
    assert_true(rows_take(&bytes, 1000)); /* one that is stored in the row itself costs nothing */
    for (bytes = 0; n < 5 * ROWS_STEP && rows_take(&bytes, 16384);)
        n++;
    assert_in_range(n, ROWS_STEP, 4 * ROWS_STEP);
    for (bytes = n = 0; n < ROWS_STEP && rows_take(&bytes, SIZE_MAX);)
        n++;
    assert_in_range(n, 2, 10);
}

static void a_plain_insert_knows_the_size_of_its_body(void **state)
{
    (void)state;
    run(db, "INSERT INTO dq_task (tag, expected_time, create_time, message_body)"
            " VALUES ('t', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), X'c3a900')");
    assert_int_equal(number(db, "SELECT body_size FROM dq_task"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_body_that_is_longer_than_it_says_stays_behind, harness_setup),
        cmocka_unit_test_setup(long_bodies_are_changed_one_at_a_time, harness_setup),
        cmocka_unit_test_setup(bodies_have_room_in_a_statement, harness_setup),
        cmocka_unit_test_setup(a_plain_insert_knows_the_size_of_its_body, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
