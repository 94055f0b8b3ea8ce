/* What the live dqds serve: rows that dqds share, rests, and what is deleted when nobody refers to
 * it any more. */
#include "harness.h"
#include "store/fleet/event_store.h"
#include "store/fleet/handler_store.h"
#include "store/fleet/poller_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

static const struct poller_say resident = {
    .mode = "resident", .slots = 8, .stale_after_ms = 60000, .handlers = 5, .clock_ahead_ms = 250};

static void beat(const struct claim_owner *o, const struct poller_say *say)
{
    struct poller_share s;

    ok(poller_store_beat(db, o, say, &s, &err));
}

static int64_t handlers(void)
{
    return number(db, "SELECT COUNT(*) FROM dq_handler");
}

static bool known(uint64_t n)
{
    struct handler_seen seen;

    ok(handler_store_look(db, n, &seen, &err));
    return seen.known;
}

static void handlers_are_written_once_and_kept_while_a_dqd_has_them(void **state)
{
    struct handler_row rows[] = {
        {.pattern = (char *)"mail.*",
         .is_glob = true,
         .line = 3,
         .digest = UINT64_MAX,
         .batch = 50,
         .max_running = 2,
         .global_max_running = 5,
         .max_attempts = 9,
         .timeout_ms = 60000},
        {.pattern = (char *)"a",
         .line = 9,
         .batch = 1,
         .max_running = 8,
         .max_attempts = 1,
         .timeout_ms = 10},
    };
    struct handler_row *list;
    const uint64_t numbers_of[] = {7, 8};
    struct claim_owner a = owner('a'), b = owner('b');
    size_t count;

    (void)state;
    beat(&a, &resident);
    beat(&b, &resident);
    assert_false(known(7));
    ok(handler_store_put(db, &a, 7, rows, 2, &err));
    assert_true(known(7));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller WHERE handlers = 7"), 1);
    ok(handler_store_put(db, &b, 7, rows, 2, &err)); /* another dqd has been faster */
    assert_int_equal(handlers(), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller WHERE handlers = 7"), 2);
    ok(handler_store_list(db, numbers_of, 2, &list, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(list[0].pattern, "mail.*");
    assert_true(list[0].is_glob && list[0].digest == UINT64_MAX && list[0].line == 3);
    assert_true(list[0].batch == 50 && list[0].max_running == 2 && list[0].global_max_running == 5);
    assert_true(list[0].max_attempts == 9 && list[0].timeout_ms == 60000 && list[0].handlers == 7);
    assert_string_equal(list[1].pattern, "a");
    handler_store_free(list, count);

    ok(poller_store_leave(db, &a, &err));
    ok(handler_store_clean(db, &err));
    assert_int_equal(handlers(), 2);
    ok(poller_store_leave(db, &b, &err));
    ok(handler_store_clean(db, &err));
    assert_int_equal(handlers(), 0);
}

static void thousands_of_handlers_are_all_there_or_none(void **state)
{
    enum { N = 5000 };
    struct handler_row *rows = mem_zero(N, sizeof *rows), *list;
    const uint64_t number_of = 7;
    struct claim_owner a = owner('a');
    size_t count;

    (void)state;
    for (size_t i = 0; i < N; i++)
        rows[i] = (struct handler_row){.pattern = mem_printf("tag.%zu", N - i), .batch = 1};
    beat(&a, &resident);
    ok(handler_store_put(db, &a, 7, rows, N, &err));
    ok(handler_store_list(db, &number_of, 1, &list, &count, &err));
    assert_int_equal(count, N);
    assert_string_equal(list[0].pattern, "tag.5000");
    assert_string_equal(list[N - 1].pattern, "tag.1");
    handler_store_free(list, count);

    run(db, "DELETE FROM dq_handler");
    free(rows[N - 1].pattern);
    rows[N - 1].pattern = mem_printf("%0200d", 1); /* the server refuses the last statement */
    assert_true(handler_store_put(db, &a, 8, rows, N, &err) < 0);
    assert_int_equal(handlers(), 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller WHERE handlers = 8"), 0);
    handler_store_free(rows, N);
}

static void rests_are_replaced_and_go_with_their_dqd(void **state)
{
    struct handler_rest rests[] = {
        {.tag = (char *)"t", .error = (char *)"no program", .for_ms = 5000},
        {.tag = (char *)"u", .for_ms = 60000}};
    struct claim_owner a = owner('a');
    struct handler_rest *list;
    struct handler_seen seen;
    size_t count;

    (void)state;
    beat(&a, &resident);
    ok(handler_store_put_rests(db, &a, rests, 2, &err));
    ok(handler_store_list_rests(db, &list, &count, &err));
    assert_int_equal(count, 2);
    assert_memory_equal(list[0].token, a.token, sizeof a.token);
    assert_string_equal(list[0].tag, "t");
    assert_string_equal(list[0].error, "no program");
    assert_true(list[0].for_ms <= 5000);
    assert_string_equal(list[1].error, "not known why");
    handler_store_free_rests(list, count);
    ok(handler_store_put_rests(db, &a, rests, 1, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_rest"), 1);
    ok(handler_store_clean(db, &err));
    ok(handler_store_look(db, 7, &seen, &err));
    assert_true(seen.rests);
    ok(poller_store_leave(db, &a, &err));
    ok(handler_store_clean(db, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_rest"), 0);
}

static void a_pass_that_has_ended_counts_until_the_next_one(void **state)
{
    const struct poller_say pass = {.mode = "once",
                                    .slots = 4,
                                    .stale_after_ms = 60000,
                                    .handlers = 7,
                                    .passes = true,
                                    .tags = "a*",
                                    .handlers_file = "/etc/dq/a.yaml"};
    const struct poller_say ended = {
        .slots = 4, .clock_ahead_ms = -1500, .tags = "a*", .handlers_file = "/etc/dq/a.yaml"};
    struct claim_owner a = owner('a'), b = owner('b'), c = owner('c');
    struct poller_info *list;
    struct poller_share s;
    size_t count;

    (void)state;
    ok(poller_store_beat(db, &a, &pass, &s, &err));
    assert_true(s.shares == 1 && s.since_pass_ms == -1);
    ok(poller_store_pass_ended(db, &a, &ended, 60000, &err));
    run(db, "UPDATE dq_poller SET start_time = start_time - INTERVAL 30 SECOND");
    ok(poller_store_beat(db, &c, &resident, &s, &err));
    assert_true(s.shares == 1 && s.since_pass_ms == -1); /* it has no share of the work any more */
    ok(poller_store_list(db, &list, &count, &err));
    assert_int_equal(count, 2);
    assert_true(list[0].alive && list[0].next_pass_at > list[0].last_seen_at);
    assert_true(list[0].handlers == 7);
    assert_string_equal(list[0].tags, "a*");
    assert_true(list[0].clock_ahead_ms == -1500 && list[1].clock_ahead_ms == 250);
    assert_true(list[1].alive && list[1].next_pass_at == TASK_TIME_NONE);
    poller_store_free(list, count);

    ok(poller_store_beat(db, &b, &pass, &s, &err));
    assert_true(s.shares == 1 && s.alive == 2 && s.since_pass_ms >= 30000);
    ok(poller_store_pass_ended(db, &b, &ended, 60000, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"), 2); /* in place of the first */
    run(db, "UPDATE dq_poller SET next_pass = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND,"
            " last_seen = last_seen - INTERVAL 2 MINUTE WHERE mode = 'once'");
    ok(poller_store_list(db, &list, &count, &err));
    assert_false(list[0].alive);
    assert_true(list[0].silent_ms >= 120000);
    poller_store_free(list, count);
    run(db, "UPDATE dq_poller SET next_pass = UTC_TIMESTAMP(3) + INTERVAL 1 DAY,"
            " last_seen = last_seen - INTERVAL 2 DAY WHERE mode = 'once'");
    ok(poller_store_leave(db, &c, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"), 1);
    run(db, "UPDATE dq_poller SET next_pass = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ok(poller_store_leave(db, &c, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"), 0);
}

/* Somebody has run it by hand: where nobody starts one again, it would count as alive for days. */
static void after_a_pass_beside_a_resident_dqd_no_next_one_is_expected(void **state)
{
    const struct {
        const char *file, *tags;
        bool is_kept;
    } cases[] = {{"/etc/dq/h.yaml", NULL, false},
                 {"/etc/dq/h.yaml", "b*", false},
                 {"/etc/dq/h.yaml", "a*", false},
                 {"/etc/dq/other.yaml", NULL, true},
                 {NULL, NULL, true}};
    struct poller_say stays = resident;
    struct claim_owner a = owner('a'), c = owner('c');
    struct poller_share s;

    (void)state;
    stays.handlers_file = "/etc/dq/h.yaml";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct poller_say pass = {.mode = "once",
                                        .slots = 4,
                                        .stale_after_ms = 60000,
                                        .passes = true,
                                        .handlers_file = cases[i].file,
                                        .tags = cases[i].tags};

        ok(poller_store_beat(db, &c, &stays, &s, &err));
        ok(poller_store_beat(db, &a, &pass, &s, &err));
        ok(poller_store_pass_ended(db, &a, &pass, 60000, &err));
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"), 1 + cases[i].is_kept);
        run(db, "UPDATE dq_poller SET tags = 'a*' WHERE mode = 'resident'"); /* not those of b* */
        ok(poller_store_beat(db, &a, &pass, &s, &err));
        ok(poller_store_pass_ended(db, &a, &pass, 60000, &err));
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"),
                         1 + !(pass.tags && *pass.tags == 'a'));
        ok(poller_store_leave(db, &c, &err)); /* or is silent, or that of another host */
        ok(poller_store_beat(db, &a, &pass, &s, &err));
        ok(poller_store_pass_ended(db, &a, &pass, 60000, &err));
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"), 1);
        ok(poller_store_leave(db, &a, &err));
    }
}

/* One of other tags, or with other handlers, says nothing about when the next one comes. */
static void each_timer_of_a_host_has_its_own_passes(void **state)
{
    static const struct {
        const char *file, *tags;
    } timers[] = {{"/etc/dq/h.yaml", "a*"}, {"/etc/dq/h.yaml", NULL}, {"/etc/dq/i.yaml", "a*"}};
    static const unsigned char name[] = "abcdef";
    struct poller_share s;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        const struct claim_owner o = owner(name[i]);
        const struct poller_say pass = {.mode = "once",
                                        .slots = 4,
                                        .stale_after_ms = 60000,
                                        .passes = true,
                                        .handlers_file = timers[i % 3].file,
                                        .tags = timers[i % 3].tags};

        ok(poller_store_beat(db, &o, &pass, &s, &err));
        assert_true(i < 3 ? s.since_pass_ms == -1 : s.since_pass_ms >= 1000 * (int64_t)(3 - i % 3));
        ok(poller_store_pass_ended(db, &o, &pass, 60000, &err));
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_poller"), MIN(i + 1, 3));
        run(db, "UPDATE dq_poller SET start_time = start_time - INTERVAL 1 SECOND");
    }
    run(db, "DELETE FROM dq_poller");
}

/* Those of procedures have an age of their own. */
static void old_events_are_deleted_in_steps_the_oldest_first(void **state)
{
    size_t deleted = 9;
    (void)state;
    run(db,
        "INSERT INTO dq_event (token, event_time, actor, verb, by_procedure)"
        " SELECT UNHEX(LPAD(seq, 32, '0')), UTC_TIMESTAMP(3) - INTERVAL IF(seq > 3, 40, 60 + seq) DAY, 'a', 'v', seq = 1"
        " FROM %s",
        numbers(5));
    ok(event_store_expire(db, false, INT64_C(50) * 86400000, 1, &deleted, &err));
    assert_int_equal(deleted, 1);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_event WHERE token = UNHEX(LPAD(3, 32, '0'))"), 0);
    ok(event_store_expire(db, false, INT64_C(50) * 86400000, 9, &deleted, &err));
    assert_int_equal(deleted, 1);
    ok(event_store_expire(db, false, INT64_C(50) * 86400000, 9, &deleted, &err));
    assert_int_equal(deleted, 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event"), 3);
    run(db, "DELETE FROM dq_event");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(handlers_are_written_once_and_kept_while_a_dqd_has_them,
                               harness_setup),
        cmocka_unit_test_setup(thousands_of_handlers_are_all_there_or_none, harness_setup),
        cmocka_unit_test_setup(rests_are_replaced_and_go_with_their_dqd, harness_setup),
        cmocka_unit_test_setup(old_events_are_deleted_in_steps_the_oldest_first, harness_setup),
        cmocka_unit_test_setup(a_pass_that_has_ended_counts_until_the_next_one, harness_setup),
        cmocka_unit_test_setup(after_a_pass_beside_a_resident_dqd_no_next_one_is_expected,
                               harness_setup),
        cmocka_unit_test_setup(each_timer_of_a_host_has_its_own_passes, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
