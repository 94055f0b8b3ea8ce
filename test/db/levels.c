/* Priorities: which of the due tasks of a tag are claimed first, and that a task keeps its own. */
#include "harness.h"
#include "store/db/db_handle.h"
#include "store/work/expire_store.h"

#include <inttypes.h>
#include <sys/param.h>

#define ALL (TASK_LEVEL_BIT(TASK_NORMAL) | TASK_LEVEL_BIT(TASK_HIGH) | TASK_LEVEL_BIT(TASK_LOW))

static uint64_t add_level(enum task_level level, int64_t delay_ms)
{
    struct task_new t = {.tag = "t",
                         .body = "body",
                         .body_size = 4,
                         .level = level,
                         .delay_ms = MAX(delay_ms, 0),
                         .expected_at = TASK_TIME_NONE};
    struct task_added added;

    ok(task_add(db, &t, KEY_ERROR, &added, &err));
    if (delay_ms < 0)
        run(db,
            "UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3) - INTERVAL %" PRId64
            " MICROSECOND WHERE id = %" PRIu64,
            -delay_ms * 1000, added.id);
    return added.id;
}

static int64_t status_of(uint64_t id)
{
    return number(db, "SELECT status FROM dq_task WHERE id = %" PRIu64, id);
}

static int64_t statements(void)
{
    return session_status(db, "IN ('Com_select', 'Com_update')");
}

/* Claims some, and returns how many statements that took. */
static int64_t claim_some(const struct claim_ask *ask, struct task_array *won,
                          struct claim_seen *saw)
{
    struct claim_owner a = owner('a');
    int64_t before = statements(), cost = statements() - before;

    *won = (struct task_array){0};
    before = statements();
    ok(claim_store_claim(db, &a, ask, won, saw, NULL, &err));
    return statements() - before - cost;
}

/* As two SELECTs of a claim find a task that is replaced, with another level, between them. */
static void find_twice(void *arg, struct task_array *found)
{
    struct task *t = task_array_add(found), *again = &found->items[0];

    t->id = again->id;
    t->version = again->version - *(const uint64_t *)arg;
    t->tag = mem_strdup(again->tag);
}

static void a_task_that_is_found_twice_is_claimed_once(void **state)
{
    struct claim_ask ask = plain_ask;
    struct task_array won;
    struct claim_seen saw;
    (void)state;
    ask.levels = ALL;
    ask.before = find_twice;
    for (uint64_t ago = 0; ago <= 1; ago++) {
        uint64_t id = add_level(TASK_HIGH, -1000);
        run(db, "UPDATE dq_task SET version = 7 WHERE id = %" PRIu64, id);
        ask.before_arg = &ago;
        claim_some(&ask, &won, &saw);
        assert_int_equal(won.count, 1);
        assert_int_equal(won.items[0].version, 8);
        task_array_done(&won);
    }
}

static void the_highest_level_is_first(void **state)
{
    struct claim_ask ask = plain_ask;
    struct task_array won;
    struct claim_seen saw;
    (void)state;
    add_level(TASK_LOW, -9000);
    add_level(TASK_NORMAL, -5000);
    add_level(TASK_HIGH, -1000);
    ask.levels = ALL;
    ask.limit = 2;
    claim_some(&ask, &won, &saw);
    assert_int_equal(won.count, 2);
    assert_int_equal(won.items[0].level, TASK_HIGH);
    assert_int_equal(won.items[1].level, TASK_NORMAL);
    task_array_done(&won);
    claim_some(&ask, &won, &saw);
    assert_int_equal(won.count, 1);
    assert_int_equal(won.items[0].level, TASK_LOW);
    task_array_done(&won);
}

static void a_tag_with_one_level_pays_no_statement_more(void **state)
{
    static const enum task_level levels[] = {TASK_NORMAL, TASK_HIGH};
    struct claim_ask ask = plain_ask;
    struct task_array won;
    struct claim_seen saw;
    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        add_level(levels[i], -1000);
        ask.levels = TASK_LEVEL_BIT(levels[i]);
        ask.next = true;
        assert_int_equal(claim_some(&ask, &won, &saw), 2);
        assert_int_equal(won.count, 1);
        assert_true(saw.next_known);
        task_array_done(&won);
    }
    add_level(TASK_NORMAL, -1000);
    add_level(TASK_HIGH, -1000);
    ask.levels = ALL;
    ask.limit = 1; /* the highest one has enough */
    assert_int_equal(claim_some(&ask, &won, &saw), 2);
    task_array_done(&won);
}

/* A level whose turn it is comes first, once; what it is owed of this claim beside that comes last,
 * behind it, so that a claim of which only the first ones start does not favour lower levels. */
static void what_is_owed_is_claimed_once_and_last_unless_it_is_its_turn(void **state)
{
    struct claim_ask ask = plain_ask;
    struct task_array won;
    struct claim_seen saw;
    (void)state;
    for (int i = 0; i < 10; i++) {
        add_level(TASK_NORMAL, -5000);
        add_level(TASK_HIGH, i < 4 ? -1000 : 60000);
    }
    run(db, "UPDATE dq_task SET expected_time = '0001-01-01' WHERE status = 0 LIMIT 5");
    ask.levels = ALL;
    ask.passed[TASK_NORMAL] = 12; /* of 9 it is owed 3 */
    ask.passed[TASK_LOW] = 5;
    ask.limit = 9;
    claim_some(&ask, &won, &saw);
    assert_int_equal(won.count, 9);
    assert_int_equal(saw.lost, 0);
    assert_true(saw.drained[TASK_LOW] && !saw.drained[TASK_NORMAL]);
    for (size_t i = 0; i < won.count; i++) {
        assert_int_equal(won.items[i].level, i >= 1 && i < 5 ? TASK_HIGH : TASK_NORMAL);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(won.items[i].id, won.items[k].id);
    }
    task_array_done(&won);
    run(db, "UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ask.passed[TASK_NORMAL] = 0;
    ask.levels = TASK_LEVEL_BIT(TASK_HIGH) | TASK_LEVEL_BIT(TASK_NORMAL);
    ask.limit = 7;
    claim_some(&ask, &won, &saw);
    assert_int_equal(won.count, 7);
    for (size_t i = 0; i < won.count; i++)
        assert_int_equal(won.items[i].level, i < 6 ? TASK_HIGH : TASK_NORMAL);
    task_array_done(&won);
}

static void what_is_next_is_the_first_of_all_levels(void **state)
{
    struct peek_floor floors[TASK_LEVELS] = {{0}};
    int64_t now_us, next_at[TASK_LEVELS];
    struct claim_ask ask = plain_ask;
    struct task_array won;
    struct claim_seen saw;
    struct peek p = {0};
    (void)state;
    add_level(TASK_LOW, 30000);
    add_level(TASK_NORMAL, 60000);
    add_level(TASK_NORMAL, -1000);
    ask.levels = ALL;
    ask.next = true;
    claim_some(&ask, &won, &saw);
    assert_int_equal(won.count, 1);
    assert_true(saw.next_known);
    assert_in_range(saw.next_at - saw.now_us / 1000, 1, 30000);
    task_array_done(&won);
    ok(peek_store_next(db, "t", floors, &now_us, next_at, &err));
    assert_int_equal(next_at[TASK_LOW], saw.next_at);
    assert_in_range(next_at[TASK_NORMAL] - now_us / 1000, 30001, 60000);
    assert_true(next_at[TASK_HIGH] == TASK_TIME_NONE);
    ok(peek_store_all(db, 0, &p, &err));
    assert_int_equal(p.count, 2);
    for (size_t i = 0; i < p.count; i++)
        assert_int_equal(p.tags[i].next_at, next_at[p.tags[i].level]);
    ok(peek_store_news(db, &(uint64_t){0}, &p, &err));
    assert_int_equal(p.count, 2);
    peek_store_done(&p);
}

static void other_shares_are_helped_at_each_level(void **state)
{
    struct claim_ask ask = plain_ask;
    struct task_array won;
    struct claim_seen saw;
    (void)state;
    for (int i = 0; i < 40; i++)
        add_level((enum task_level)(i % TASK_LEVELS), -60000);
    ask.levels = ALL;
    ask.shares = 2;
    ask.steal_share = 1;
    claim_some(&ask, &won, &saw);
    assert_int_equal(won.count, 40);
    task_array_done(&won);
}

/* Each way back to pending. */
static void a_task_keeps_its_priority(void **state)
{
    static const enum task_event events[] = {TASK_TRY_LATER, TASK_SNOOZE, TASK_GIVE_BACK};
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct claim_seen saw;
    struct task_array won;
    (void)state;
    uint64_t id = add_level(TASK_LOW, -1000);
    ask.levels = TASK_LEVEL_BIT(TASK_LOW);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        bool applied = false;
        run(db, "UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3)");
        claim_some(&ask, &won, &saw);
        assert_int_equal(won.count, 1);
        assert_int_equal(status_of(id), TASK_RUNNING);
        struct settlement s = result(&won.items[0], events[i], OUTCOME_EXIT);
        ok(settle_store_settle(db, &a, &s, 1, false, false, &applied, NULL, &err));
        assert_true(applied);
        assert_int_equal(status_of(id), 6);
        task_array_done(&won);
    }
}

static void tasks_of_each_level_expire(void **state)
{
    struct claim_ask ask = plain_ask;
    (void)state;
    for (int level = 0; level < TASK_LEVELS; level++) {
        struct peek_floor floor = {0};
        uint64_t count = 0, id = add_level((enum task_level)level, -1000);
        run(db, "UPDATE dq_task SET expires_time = expected_time WHERE id = %" PRIu64, id);
        ok(expire_store_cancel(db, &ask, (enum task_level)level, 5, &floor, &count, NULL, &err));
        assert_int_equal(count, 1);
        assert_int_equal(status_of(id), TASK_CANCELLED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_highest_level_is_first, harness_setup),
        cmocka_unit_test_setup(a_task_that_is_found_twice_is_claimed_once, harness_setup),
        cmocka_unit_test_setup(a_tag_with_one_level_pays_no_statement_more, harness_setup),
        cmocka_unit_test_setup(what_is_owed_is_claimed_once_and_last_unless_it_is_its_turn,
                               harness_setup),
        cmocka_unit_test_setup(what_is_next_is_the_first_of_all_levels, harness_setup),
        cmocka_unit_test_setup(other_shares_are_helped_at_each_level, harness_setup),
        cmocka_unit_test_setup(a_task_keeps_its_priority, harness_setup),
        cmocka_unit_test_setup(tasks_of_each_level_expire, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
