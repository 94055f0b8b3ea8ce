/* Operators' changes: cancel, retry, reschedule, delete, against whatever else happens. */
#include "harness.h"
#include "store/db/db_connect.h"
#include "store/work/delete_store.h"

#include <inttypes.h>
#include <stdlib.h>

static struct task_changed done;
static struct rows_faults faults;

static struct task_filter by_tag(const char *glob)
{
    return (struct task_filter){.tag_glob = glob};
}

static int change(struct db *d, const char *glob, enum task_event event, int64_t delay_ms)
{
    struct task_filter f = by_tag(glob);
    struct task_change c = {.event = event, .expected_at = TASK_TIME_NONE, .delay_ms = delay_ms};
    done = (struct task_changed){0};
    return change_all(d, &f, &c, &done, &faults);
}

static void cancel_takes_live_tasks_and_records_the_running(void **state)
{
    struct claim_owner a = owner('a');
    bool lost, followed;
    (void)state;
    for (int i = 0; i < 5; i++)
        add("t", i == 4 ? "key" : NULL, -1000);
    uint64_t finished = add("t", NULL, -1000);
    run(db, "UPDATE dq_task SET status = 1 WHERE id = %" PRIu64, finished);
    struct task_array won = claim(db, &a, "t", 2);
    struct claim_ref ref = {won.items[0].id, won.items[0].version};
    ok(change(db, "t", TASK_CANCEL, 0));
    assert_int_equal(done.matched, 5);
    assert_int_equal(done.changed, 5);
    assert_int_equal(done.running, 2);
    assert_int_equal(done.lost, 0);
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_task WHERE status = 4 AND finish_time IS NOT NULL AND live IS NULL AND lease_until IS NULL"),
        5);
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'cancelled' AND version = 1 AND attempt = 1 AND pid = 97"),
        2);
    ok(lease_store_check(db, &a, &ref, 1, &lost, &followed, NULL, &err)); /* the owner notices */
    assert_true(lost);
    /* And its result comes too late. */
    struct settlement s = {.id = ref.id,
                           .version = ref.version,
                           .event = TASK_SUCCEED,
                           .start_at = TASK_TIME_NONE,
                           .finish_at = TASK_TIME_NONE};
    bool applied;
    ok(settle_store_settle(db, &a, &s, 1, false, false, &applied, NULL, &err));
    assert_false(applied);
    assert_int_equal(number(db, "SELECT status FROM dq_task WHERE id = %" PRIu64, ref.id),
                     TASK_CANCELLED);
    task_array_done(&won);
}

/* The row moves on between the look and the change: what was cancelled is not started, what was
 * claimed first is not cancelled. */
static void cancel_against_claim_has_one_winner(void **state)
{
    struct claim_owner a = owner('a');
    struct db *late = harness_db();
    (void)state;
    for (int i = 0; i < 6; i++)
        add("t", NULL, -1000);
    run(late, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    run(late, "SET SESSION autocommit = 0");
    /* its view of the past */
    assert_int_equal(number(late, "SELECT COUNT(*) FROM dq_task WHERE status = 0"), 6);
    struct task_array won = claim(db, &a, "t", 2);
    ok(change(late, "t", TASK_CANCEL, 0));
    run(late, "COMMIT");
    assert_int_equal(done.matched, 6);
    assert_int_equal(done.changed, 4);
    assert_int_equal(done.lost, 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3 AND version = 1"),
                     2);
    struct task_array none = claim(db, &a, "t", 10);
    assert_int_equal(none.count, 0);
    task_array_done(&won);
    db_free(late);
}

static void a_lost_answer_is_counted(void **state)
{
    struct claim_owner a = owner('a');
    static const char *const cut[] = {"UPDATE dq_task", "INSERT INTO dq_attempt", "COMMIT"};
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct proxy *p = proxy_new();
        harness_setup(NULL);
        for (int k = 0; k < 4; k++)
            add("t", NULL, -1000);
        struct task_array won = claim(db, &a, "t", 2);
        ok(db_connect(proxy_db(p), &err)); /* its set-up says READ COMMITTED */
        proxy_cut(p, cut[i / 2], i % 2);
        ok(change(proxy_db(p), "t", TASK_CANCEL, 0));
        assert_int_equal(proxy_cuts(p), 1);
        assert_int_equal(done.changed, 4);
        assert_int_equal(done.running, 2);
        assert_int_equal(
            number(
                db,
                "SELECT COUNT(*) FROM dq_task WHERE status = 4 AND version = IF(claim_token IS NULL, 1, 2)"),
            4);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 2);
        task_array_done(&won);
        proxy_free(p);
    }
}

static void a_change_whose_every_try_is_lost_is_not_known(void **state)
{
    struct proxy *p = proxy_new();
    (void)state;
    add("t", NULL, 0);
    proxy_cut_all(p, "UPDATE dq_task", true);
    assert_int_equal(change(proxy_db(p), "t", TASK_CANCEL, 0), ERR_LOST);
    assert_non_null(strstr(err.text, "is not known"));
    proxy_free(p);
}

/* "SET " is in the change and in what each new session begins with, "ION" in START TRANSACTION. */
static void a_change_that_is_lost_with_the_server_is_not_known(void **state)
{
    struct task_filter f = by_tag(NULL);
    struct proxy *p = proxy_new();
    uint64_t id = add("t", NULL, 0);
    (void)state;
    ok(db_connect(proxy_db(p), &err));
    proxy_cut_all(p, "SET ", true);
    assert_int_equal(change(proxy_db(p), "t", TASK_CANCEL, 0), ERR_LOST);
    assert_non_null(strstr(err.text, "is not known"));
    assert_int_equal(done.changed, 0);
    proxy_free(p);
    run(db, "UPDATE dq_task SET status = 4");
    p = proxy_new();
    f.ids = &id;
    f.id_count = 1;
    ok(db_connect(proxy_db(p), &err));
    proxy_cut_all(p, "ION", true);
    assert_int_equal(delete_all(proxy_db(p), &f, &done, &faults), ERR_LOST);
    assert_non_null(strstr(err.text, "is not known"));
    assert_int_equal(done.changed, 0);
    proxy_free(p);
}

static void retry_begins_a_new_ladder(void **state)
{
    (void)state;
    uint64_t id = add("t", "k", -1000);
    run(db,
        "UPDATE dq_task SET status = 2, version = 5, attempt = 3, live = NULL, finish_time = UTC_TIMESTAMP(3), max_attempts = 3");
    run(db,
        "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome) VALUES (%" PRIu64
        ", 1, 1, UTC_TIMESTAMP(3), 'exit')",
        id);
    ok(change(db, "t", TASK_RETRY, 5000));
    assert_int_equal(done.changed, 1);
    assert_int_equal(
        number(
            db,
            "SELECT status = 0 AND version = 6 AND attempt = 0 AND live = 1 AND finish_time IS NULL AND max_attempts = 3"
            " AND expected_time > UTC_TIMESTAMP(3) FROM dq_task"),
        1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 1);
    ok(change(db, "t", TASK_RETRY, 0));
    assert_int_equal(done.matched, 0);
}

static void retry_meets_a_live_key(void **state)
{
    (void)state;
    add("t", "k", 0);
    run(db, "UPDATE dq_task SET status = 2, live = NULL");
    uint64_t live = add("t", "k", 60000);
    assert_int_equal(change(db, "t", TASK_RETRY, 0), ERR_DUPLICATE);
    assert_int_equal(done.lost, 1);
    add("t", "other", 0);
    run(db, "UPDATE dq_task SET status = 4, live = NULL WHERE task_key = 'other'");
    ok(change(db, "t", TASK_RETRY, 0)); /* the others are retried */
    assert_int_equal(done.changed, 1);
    assert_int_equal(done.lost, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE live = 1"), 2);
    assert_int_equal(number(db, "SELECT version FROM dq_task WHERE id = %" PRIu64, live), 0);
}

static void a_task_that_was_gone_is_not_deleted(void **state)
{
    struct delete_store_done deleted;
    (void)state;
    uint64_t id = add("t", NULL, 0);
    const struct claim_ref refs[] = {{id, 0}, {id + 1, 0}};
    run(db, "UPDATE dq_task SET status = 1, live = NULL");
    ok(delete_store_refs(db, refs, 2, &(struct delete_store_how){.tries = 1}, &deleted, &faults,
                         &err));
    assert_int_equal(deleted.deleted, 1);
    assert_false(deleted.lost);
}

static void reschedule_moves_each_task_once(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        add("t", NULL, i * 1000);
    ok(change(db, "t", TASK_RESCHEDULE, 10000));
    assert_int_equal(done.changed, 20);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_task WHERE version = 1 AND status = 0 AND attempt = 0"),
        20);
    assert_int_equal(number(db, "SELECT COUNT(DISTINCT expected_time) FROM dq_task"), 1);
}

static unsigned steps;
static bool count_step(const struct task_changed *so_far, void *arg)
{
    (void)arg;
    steps++;
    assert_int_equal(so_far->changed, steps < 4 ? steps * 500 : 1700);
    return true;
}

/* Finished tasks, among others. */
static void fill(unsigned count)
{
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time) SELECT 't', '', seq %% 5, "
        "UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) FROM %s ORDER BY seq",
        numbers(count));
    run(db,
        "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome) SELECT id, 0, 1, UTC_TIMESTAMP(3), 'exit' "
        "FROM dq_task");
}

static void delete_goes_in_steps_and_spares_the_live(void **state)
{
    struct targets x = {0};
    struct task_filter f = by_tag("*");
    (void)state;
    fill(3000);
    ok(delete_all(db, &f, &done, &faults));
    assert_int_equal(done.changed, 1800);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status IN (0, 3)"), 1200);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 1200);
    run(db, "UPDATE dq_task SET status = 1");
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time) SELECT 't', '', 1, UTC_TIMESTAMP(3), "
        "UTC_TIMESTAMP(3) FROM %s",
        numbers(500));
    steps = 0;
    ok(targets_list(db, &f, TASK_FINISHED, NULL, NULL, &x, &err));
    ok(task_change(db, &x, NULL, &(struct targets_steps){NULL, count_step, NULL}, &done, &faults,
                   &err));
    assert_int_equal(steps, 4);
    targets_done(&x);
}

static bool stop_at_once(const struct task_changed *so_far, void *arg)
{
    (void)arg;
    return so_far->changed == 0;
}

/* ... and the event's count is that of what was committed. */
static void a_change_that_is_stopped_leaves_whole_steps(void **state)
{
    const struct task_change c = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct event_act act = {.token = "1", .actor = "a@h", .verb = "cancel"};
    const struct targets_steps stopping = {&act, stop_at_once, NULL};
    struct task_filter f = by_tag("*");
    struct targets x = {0};
    (void)state;
    fill(4000);
    ok(targets_list(db, &f, TASK_LIVE, NULL, NULL, &x, &err));
    ok(task_change(db, &x, &c, &stopping, &done, &faults, &err));
    assert_int_equal(done.matched, 1600);
    assert_int_equal(done.changed, ROWS_STEP);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE version = 1"), ROWS_STEP);
    assert_int_equal(number(db, "SELECT tasks FROM dq_event"), ROWS_STEP);
    targets_done(&x);
}

/* Whatever answer is lost, the event is there once, with as many tasks as were changed. */
static void an_event_counts_what_was_committed(void **state)
{
    static const char *const cut[] = {"UPDATE dq_task", "INSERT INTO dq_event", "COMMIT"};
    const struct task_change c = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct task_filter f = by_tag("t");
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct event_act act = {.token = "1", .actor = "a@h", .verb = "cancel", .tag = "t"};
        struct targets_steps recorded = {&act, NULL, NULL};
        struct proxy *p = proxy_new();
        struct targets x = {0};
        harness_setup(NULL);
        for (int k = 0; k < 700; k++)
            add("t", NULL, -1000);
        ok(targets_list(proxy_db(p), &f, TASK_LIVE, NULL, NULL, &x, &err));
        proxy_cut(p, cut[i / 2], i % 2);
        ok(task_change(proxy_db(p), &x, &c, &recorded, &done, &faults, &err));
        assert_int_equal(proxy_cuts(p), 1);
        assert_int_equal(done.changed, 700);
        assert_int_equal(number(db, "SELECT COUNT(DISTINCT token) FROM dq_event"), 1);
        assert_int_equal(number(db, "SELECT MAX(step) FROM dq_event"), 1);
        assert_int_equal(number(db, "SELECT SUM(tasks) FROM dq_event WHERE tag = 't'"), 700);
        targets_done(&x);
        proxy_free(p);
    }
}

/* Others have changed the tasks between the look and the change: of an act, the event names exactly
 * the tasks that it has changed. */
static void an_event_names_what_it_has_changed(void **state)
{
    const struct task_change cancels = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct task_filter f = by_tag("t");
    (void)state;
    for (int deletes = 0; deletes < 2; deletes++) {
        struct event_act act = {.token = "1", .actor = "a@h", .verb = "x", .tag = "t"};
        struct targets_steps recorded = {&act, NULL, NULL};
        struct targets x = {0};
        harness_setup(NULL);
        for (int k = 0; k < 30; k++)
            add("t", NULL, -1000);
        if (deletes)
            run(db, "UPDATE dq_task SET status = 2");
        run(db, "CREATE TABLE others AS SELECT id FROM dq_task WHERE id %% 3 = 0");
        ok(targets_list(db, &f, deletes ? TASK_FINISHED : TASK_LIVE, NULL, NULL, &x, &err));
        run(db, "UPDATE dq_task SET status = %d, version = version + 1 WHERE id %% 3 = 0",
            deletes ? TASK_PENDING : TASK_CANCELLED);
        ok(task_change(db, &x, deletes ? NULL : &cancels, &recorded, &done, &faults, &err));
        assert_int_equal(done.changed, 20);
        assert_int_equal(number(db, "SELECT SUM(tasks) FROM dq_event"), 20);
        assert_int_equal(
            number(db, "SELECT SUM(FIND_IN_SET(a.id, e.ids) > 0) FROM dq_event e, others a"), 0);
        run(db, "DROP TABLE others");
        targets_done(&x);
    }
}

static void new_times_are_spread_evenly(void **state)
{
    struct task_change c = {
        .event = TASK_RESCHEDULE, .expected_at = INT64_C(1925000000000), .over_ms = 700000};
    struct task_filter f = by_tag("t");
    (void)state;
    for (int k = 0; k < 700; k++)
        add("t", NULL, (700 - k) * 1000);
    ok(change_all(db, &f, &c, &done, &faults));
    assert_int_equal(done.changed, 700);
    assert_int_equal(number(db, "SELECT COUNT(DISTINCT expected_time) FROM dq_task"), 700);
    assert_int_equal(
        number(db,
               "SELECT TIMESTAMPDIFF(SECOND, MIN(expected_time), MAX(expected_time)) FROM dq_task"),
        699);
    /* in the order in which they were due */
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task a JOIN dq_task b ON b.id = a.id + 1"
                                " WHERE b.expected_time + INTERVAL 1 SECOND = a.expected_time"),
                     699);
    c.expected_at = TASK_TIME_NONE;
    c.delay_ms = 3600000;
    ok(change_all(db, &f, &c, &done, &faults));
    assert_in_range(
        number(db,
               "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), MIN(expected_time)) FROM dq_task"),
        3500, 3600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cancel_takes_live_tasks_and_records_the_running, harness_setup),
        cmocka_unit_test_setup(cancel_against_claim_has_one_winner, harness_setup),
        cmocka_unit_test_setup(a_lost_answer_is_counted, harness_setup),
        cmocka_unit_test_setup(a_change_whose_every_try_is_lost_is_not_known, harness_setup),
        cmocka_unit_test_setup(a_change_that_is_lost_with_the_server_is_not_known, harness_setup),
        cmocka_unit_test_setup(retry_begins_a_new_ladder, harness_setup),
        cmocka_unit_test_setup(retry_meets_a_live_key, harness_setup),
        cmocka_unit_test_setup(a_task_that_was_gone_is_not_deleted, harness_setup),
        cmocka_unit_test_setup(reschedule_moves_each_task_once, harness_setup),
        cmocka_unit_test_setup(delete_goes_in_steps_and_spares_the_live, harness_setup),
        cmocka_unit_test_setup(a_change_that_is_stopped_leaves_whole_steps, harness_setup),
        cmocka_unit_test_setup(an_event_counts_what_was_committed, harness_setup),
        cmocka_unit_test_setup(an_event_names_what_it_has_changed, harness_setup),
        cmocka_unit_test_setup(new_times_are_spread_evenly, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
