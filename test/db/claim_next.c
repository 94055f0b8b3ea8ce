/* A claim also finds out when the next task is due: without another statement, and without touching
 * it. */
#include "harness.h"
#include "store/db/db_handle.h"
#include "store/row/sql.h"

#include <inttypes.h>

static int64_t due_of(uint64_t id)
{
    return number(db,
                  "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expected_time) DIV 1000"
                  " FROM dq_task WHERE id = %" PRIu64,
                  id);
}

static int64_t statements(void)
{
    return session_status(db, "IN ('Com_select', 'Com_update')");
}

/* It is left alone, even if another session has it locked. */
static void claim_says_when_the_next_one_is_due(void **state)
{
    static const struct {
        bool wary;
        uint32_t running;
    } kinds[] = {{false, 0}, {true, 0}, {false, 100}};
    struct claim_owner a = owner('a');
    struct db *other = harness_db();
    struct claim_seen saw;
    (void)state;
    add("t", NULL, 90000);
    uint64_t next = add("t", NULL, 60000);
    add("other", NULL, 30000);
    run(other, "START TRANSACTION");
    assert_int_equal(
        number(other, "SELECT id FROM dq_task WHERE id = %" PRIu64 " FOR UPDATE", next), next);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct claim_ask ask = plain_ask;
        struct task_array won = {0};
        struct rows_faults faults = {0};
        ask.next = true;
        ask.limit = 5;
        db->wary_until = kinds[i].wary ? INT64_MAX : 0;
        ask.tag_limit.running = kinds[i].running;
        uint64_t due = add("t", NULL, -1000);
        int64_t before = statements(), cost = statements() - before;
        before = statements();
        ok(claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err));
        if (i == 0)
            assert_int_equal(statements() - before - cost, 2);
        assert_int_equal(won.count, 1);
        assert_int_equal(won.items[0].id, due);
        assert_memory_equal(won.items[0].body, "body", 4);
        assert_int_equal(saw.found, 1);
        assert_int_equal(saw.lost + faults.count, 0);
        assert_true(saw.next_known);
        assert_int_equal(saw.next_at, due_of(next));
        assert_true(saw.now_us / 1000 < saw.next_at && saw.now_us / 1000 > saw.next_at - 61000);
        assert_true(saw.sent_us && saw.answered_us >= saw.sent_us);
        task_array_done(&won);
    }
    db->wary_until = 0;
    run(other, "ROLLBACK");
    db_free(other);
}

static void claim_says_nothing_of_the_next_one_if_it_cannot_know(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    for (int i = 0; i < 3; i++)
        add("t", NULL, -1000);
    add("t", NULL, 60000);
    ask.limit = 1;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    assert_false(saw.next_known); /* it was not asked for */
    ask.next = true;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 2);
    assert_false(saw.next_known); /* another one is due */
    ask.limit = 10;
    ask.tag_limit.running = 3;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 3);
    assert_false(saw.next_known); /* there was room for one */
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(saw.found, 0);
    assert_false(saw.next_known);
    ask.tag_limit.running = 0;
    ask.skip_locked = true;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_false(saw.next_known);
    task_array_done(&won);
}

static void next_one_is_of_our_share_and_not_of_a_paused_tag(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    struct buf sql = BUF_INIT;
    int64_t first[2];
    (void)state;
    ask.next = true;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_true(saw.next_known && saw.next_at == TASK_TIME_NONE);
    assert_true(saw.now_us > INT64_C(1500000000000000));
    assert_in_range(saw.late_us - saw.now_us, 1, saw.answered_us - saw.sent_us);
    for (int i = 0; i < 20; i++)
        add("t", NULL, 60000 + 1000 * i);
    sql_put_share(&sql, "", 2);
    for (unsigned i = 0; i < 2; i++) {
        first[i] = number(db,
                          "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MIN(expected_time))"
                          " DIV 1000 FROM dq_task WHERE %s = %u",
                          sql.data, i);
        ask.shares = 2;
        ask.share = i;
        ask.steal_share = 1 - i;
        ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
        assert_true(saw.next_known);
        assert_int_equal(saw.next_at, first[i]);
    }
    assert_int_not_equal(first[0], first[1]);
    ask.early_ms = 60000 + 21000; /* all are due, but some are not ours */
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_true(saw.next_known && saw.next_at == TASK_TIME_NONE);
    assert_in_range(won.count, 1, 19);
    ask.early_ms = 0;
    ask.share = 0;
    run(db, "INSERT INTO dq_limit (name, paused_until) VALUES ('t', '9999-12-31 23:59:59.999')");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_true(saw.next_known && saw.next_at == TASK_TIME_NONE);
    buf_done(&sql);
    task_array_done(&won);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(claim_says_when_the_next_one_is_due, harness_setup),
        cmocka_unit_test_setup(claim_says_nothing_of_the_next_one_if_it_cannot_know, harness_setup),
        cmocka_unit_test_setup(next_one_is_of_our_share_and_not_of_a_paused_tag, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
