/* One bad row costs itself: rows that somebody has locked, or that the server refuses to change. */
#include "harness.h"
#include "store/db/db_connect.h"
#include "store/db/db_handle.h"
#include "store/db/db_session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define N 20

static struct db *stranger;
static struct rows_faults faults;

static int setup(void **state)
{
    static const struct db_session at_once = {.lock_wait_s = 0, .table_wait_s = 1, .idle_s = 3600};
    int rc = harness_setup(state);

    db_free(db);
    db = db_new(harness_conf);
    db_session_set(db, &at_once);
    ok(db_connect(db, &err));
    stranger = harness_db();
    faults = (struct rows_faults){0};
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    db_free(stranger);
    rows_faults_done(&faults);
    return 0;
}

static void lock_row(uint64_t id)
{
    run(stranger, "START TRANSACTION");
    run(stranger, "UPDATE dq_task SET pid = 1 WHERE id = %" PRIu64, id);
}

static void expect_fault(uint64_t id, int code)
{
    assert_int_equal(faults.count, 1);
    assert_int_equal(faults.items[0].id, id);
    assert_int_equal(faults.items[0].err.code, code);
    rows_faults_done(&faults);
}

static struct task_array running(struct claim_owner *a)
{
    for (int i = 0; i < N; i++)
        add("t", NULL, -1000);
    struct task_array won = claim(db, a, "t", N);
    assert_int_equal(won.count, N);
    return won;
}

static size_t count_true(const bool *flags)
{
    size_t n = 0;

    for (size_t i = 0; i < N; i++)
        n += flags[i];
    return n;
}

static void claims_take_what_is_not_locked(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = {
        .tag = "t", .limit = 100, .shares = 1, .max_attempts = 7, .lease_ms = 60000};
    struct claim_seen saw;
    (void)state;
    for (int round = 0; round < 6; round++) {
        struct task_array won = {0};
        uint64_t id = 0;
        run(db, "DELETE FROM dq_task");
        for (int i = 0; i < N; i++)
            id = i == 5 ? add("t", NULL, -1000) : (add("t", NULL, -1000), id);
        ask.tag_limit.running = round % 2 ? 1000 : 0;
        db->wary_until = round / 2 == 1 ? INT64_MAX : 0;
        ask.skip_locked = round / 2 == 2 && db_skips_locked(db);
        lock_row(id);
        /* in a transaction: the first alone */
        bool singly = ask.tag_limit.running && !db_skips_locked(db);
        ok(claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err));
        if (!ask.skip_locked && !singly)
            expect_fault(id, ERR_LOCKED);
        assert_int_equal(saw.lost, 0);
        run(stranger, "ROLLBACK");
        assert_int_equal(faults.count, 0);
        assert_int_equal(won.count, singly ? 1 : N - 1);
        assert_int_equal(number(db, "SELECT status FROM dq_task WHERE id = %" PRIu64, id), 0);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3"), won.count);
        rows_faults_done(&faults);
        task_array_done(&won);
    }
}

static void what_was_put_aside_is_left_out(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    uint64_t ids[2] = {add("t", NULL, -9000), add("t", NULL, -8000)},
             behind = add("t", NULL, -1000);
    struct claim_ask ask = {.tag = "t",
                            .limit = 2,
                            .shares = 1,
                            .max_attempts = 7,
                            .lease_ms = 60000,
                            .aside = ids,
                            .aside_count = 2};
    ok(claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err));
    assert_int_equal(won.count, 1);
    assert_int_equal(won.items[0].id, behind);
    task_array_done(&won);
}

static void a_locked_limit_is_told_from_locked_rows(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = {.tag = "t",
                            .limit = 10,
                            .shares = 1,
                            .max_attempts = 7,
                            .lease_ms = 60000,
                            .tag_limit = {.running = 5}};
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    add("t", NULL, -1000);
    run(db, "REPLACE INTO dq_limit (name) VALUES ('t')");
    run(stranger, "START TRANSACTION");
    run(stranger, "UPDATE dq_limit SET update_time = UTC_TIMESTAMP(3) WHERE name = 't'");
    for (int careful = 0; careful <= 1; careful++) {
        db->wary_until = careful ? INT64_MAX : 0;
        assert_int_equal(claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err), ERR_LOCKED);
        assert_non_null(strstr(err.text, "dq_limit"));
        assert_int_equal(faults.count, 0);
    }
    run(stranger, "ROLLBACK");
    task_array_done(&won);
}

static int64_t waits(void)
{
    return session_status(db, "= 'Innodb_row_lock_waits'");
}

/* A server as MySQL: it makes a session wait that would rather not, and has SKIP LOCKED. */
static void only_the_first_locked_row_is_waited_for(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ref ref;
    (void)state;
    if (!db_skips_locked(db))
        skip();
    struct task_array won = running(&a);
    struct settlement s = result(&won.items[1], TASK_SUCCEED, OUTCOME_DONE);
    struct claim_ask ask = plain_ask;
    struct claim_seen saw;
    bool lost, applied;
    ref = (struct claim_ref){won.items[0].id, won.items[0].version};
    if (db_is_mariadb(db)) {
        run(db, "SET SESSION innodb_lock_wait_timeout = 1");
        db->mariadb = false;
    }
    run(db, "REPLACE INTO dq_limit (name) VALUES ('c')");
    run(stranger, "START TRANSACTION");
    run(stranger, "UPDATE dq_task SET pid = 1");
    run(stranger, "UPDATE dq_limit SET update_time = UTC_TIMESTAMP(3)");
    for (char tag = 'a'; tag <= 'c'; tag++) {
        const char name[] = {tag, 0};
        uint64_t id = add(name, NULL, -1000);
        struct task_array none = {0};
        int64_t before = waits();
        ask.tag = name;
        ask.tag_limit.running = tag == 'c' ? 5 : 0;
        run(stranger, "UPDATE dq_task SET pid = 1 WHERE id = %" PRIu64, id);
        int rc = claim_store_claim(db, &a, &ask, &none, &saw, &faults, &err);
        assert_int_equal(rc, tag == 'c' ? ERR_LOCKED : 0);
        if (rc == 0)
            expect_fault(id, ERR_LOCKED);
        assert_int_equal(waits() - before, tag == 'a');
    }
    int64_t before = waits();
    ok(lease_store_renew(db, &a, &ref, 1, 60000, false, &lost, &faults, &err));
    expect_fault(ref.id, ERR_LOCKED);
    ok(settle_store_settle(db, &a, &s, 1, false, false, &applied, &faults, &err));
    expect_fault(s.id, ERR_LOCKED);
    assert_int_equal(waits() - before, 0);
    run(stranger, "ROLLBACK");
    task_array_done(&won);
}

static void leases_of_the_others_are_renewed(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = running(&a);
    struct claim_ref refs[N];
    bool lost[N];
    (void)state;
    for (size_t i = 0; i < N; i++)
        refs[i] = (struct claim_ref){won.items[i].id, won.items[i].version};
    for (int careful = 0; careful <= 1; careful++) {
        run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3)");
        lock_row(refs[7].id);
        ok(lease_store_renew(db, &a, refs, N, 60000, careful == 1, lost, &faults, &err));
        run(stranger, "ROLLBACK");
        expect_fault(refs[7].id, ERR_LOCKED);
        assert_int_equal(count_true(lost), 0);
        assert_int_equal(
            number(
                db,
                "SELECT COUNT(*) FROM dq_task WHERE lease_until > UTC_TIMESTAMP(3) + INTERVAL 30 SECOND"),
            N - 1);
    }
    task_array_done(&won);
}

static void settle_all(const struct claim_owner *a, const struct task_array *won,
                       enum task_event event, bool history_all, bool applied[N])
{
    struct settlement s[N];

    for (size_t i = 0; i < N; i++)
        s[i] = (struct settlement){.id = won->items[i].id,
                                   .version = won->items[i].version,
                                   .event = event,
                                   .outcome = event == TASK_SUCCEED ? OUTCOME_DONE : OUTCOME_EXIT,
                                   .exit_code = event != TASK_SUCCEED,
                                   .start_at = INT64_C(1790000000000),
                                   .finish_at = INT64_C(1790000000000)};
    ok(settle_store_settle(db, a, s, N, history_all, false, applied, &faults, &err));
}

static void results_of_the_others_are_settled(void **state)
{
    static const struct {
        enum task_event event;
        bool history_all;
    } cases[] = {{TASK_SUCCEED, false}, {TASK_SUCCEED, true}, {TASK_TRY_LATER, false}};
    struct claim_owner a = owner('a');
    bool applied[N];
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        run(db, "DELETE FROM dq_task");
        run(db, "DELETE FROM dq_attempt");
        struct task_array won = running(&a);
        uint64_t id = won.items[3].id;
        lock_row(id);
        settle_all(&a, &won, cases[c].event, cases[c].history_all, applied);
        run(stranger, "ROLLBACK");
        assert_int_equal(faults.items[0].at, 3);
        expect_fault(id, ERR_LOCKED);
        assert_int_equal(count_true(applied), N - 1);
        assert_false(applied[3]);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3"), 1);
        /* as the poller does, when the lock is gone */
        settle_all(&a, &won, cases[c].event, cases[c].history_all, applied);
        assert_int_equal(count_true(applied), N);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), c ? N : 0);
        task_array_done(&won);
    }
}

static void the_others_are_taken_back(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = running(&a), expired = {0};
    enum lease_end ends[N] = {LEASE_TAKE_BACK};
    bool taken[N];
    uint64_t id = won.items[4].id;
    (void)state;
    run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 100, &expired, &err));
    ends[6] = LEASE_GIVE_UP;
    lock_row(id);
    ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, &faults, &err));
    run(stranger, "ROLLBACK");
    expect_fault(id, ERR_LOCKED);
    assert_int_equal(count_true(taken), N - 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 0"), N - 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 2"), 1);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(taken[i], expired.items[i].id != id);
    task_array_done(&expired);
    ok(lease_store_expired(db, NULL, &id, 1, 30000, false, 100, &expired, &err));
    assert_int_equal(expired.count, 0);
    task_array_done(&expired);
    task_array_done(&won);
}

static void the_others_are_deleted_and_cancelled(void **state)
{
    struct task_filter f = {0};
    struct task_change c = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct task_changed done;
    uint64_t id = 0;
    size_t deleted;
    (void)state;
    for (int i = 0; i < N; i++)
        id = add("t", NULL, 60000);
    lock_row(id);
    ok(change_all(db, &f, &c, &done, &faults));
    run(stranger, "ROLLBACK");
    expect_fault(id, ERR_LOCKED);
    assert_int_equal(done.matched, N);
    assert_int_equal(done.changed, N - 1);
    run(db,
        "UPDATE dq_task SET status = 4, finish_time = '2020-01-01', expected_time = '2020-01-01'");
    lock_row(id);
    ok(retention_store_expire(db, TASK_CANCELLED, 1000, 100, NULL, &deleted, &faults, &err));
    expect_fault(id, ERR_LOCKED);
    assert_int_equal(deleted, N - 1);
    ok(delete_all(db, &f, &done, &faults));
    expect_fault(id, ERR_LOCKED);
    run(stranger, "ROLLBACK");
    assert_int_equal(done.changed, 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 1);
}

static void old_tasks_behind_locked_ones_are_deleted(void **state)
{
    enum { LOCKED = 1203, BEHIND = 700 };
    struct retention_place place = {0};
    size_t deleted, total = 0, calls = 0;
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)"
        " SELECT 't', '', 4, '2020-01-01' + INTERVAL seq SECOND, '2020-01-02', '2020-01-01' FROM %s",
        numbers(LOCKED + BEHIND));
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)"
        " SELECT 'u', '', 4, '2020-01-01', '2020-01-02', '2020-01-01' FROM %s",
        numbers(N));
    run(stranger, "START TRANSACTION");
    run(stranger, "UPDATE dq_task SET pid = 1 ORDER BY id LIMIT %d", LOCKED);
    do {
        ok(retention_store_expire(db, TASK_CANCELLED, 1000, 500, &place, &deleted, &faults, &err));
        assert_in_range(deleted, 0, 500);
        total += deleted;
        calls++;
    } while (place.tag && calls < 20);
    assert_int_equal(total, BEHIND + N);
    assert_int_equal(faults.count, LOCKED);
    run(stranger, "ROLLBACK");
    retention_store_forget(&place);
    for (calls = 0; calls < 20 && total < LOCKED + BEHIND + N; calls++) {
        ok(retention_store_expire(db, TASK_CANCELLED, 1000, 500, &place, &deleted, NULL, &err));
        total += deleted;
    }
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 0);
    retention_store_done(&place);
}

/* Of every second row the application says that it stays. */
static void rows_that_are_refused_take_a_bounded_time_and_are_then_left_alone(void **state)
{
    enum { OLD = 1204 };
    struct retention_place place = {.until = 1};
    size_t deleted, total = 0, calls = 0;
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)"
        " SELECT IF(seq %% 4 < 2, 't', 'u'), '', 4, '2020-01-01', '2020-01-02', '2020-01-01' FROM %s"
        " ORDER BY seq",
        numbers(OLD));
    run(db,
        "CREATE TABLE app_order (task BIGINT UNSIGNED, FOREIGN KEY (task) REFERENCES dq_task(id))");
    run(db, "INSERT INTO app_order SELECT id FROM dq_task WHERE id %% 2");
    do {
        ok(retention_store_expire(db, TASK_CANCELLED, 1000, 500, &place, &deleted, &faults, &err));
        assert_int_equal(faults.count, ++calls); /* the time had been over: one row alone */
        total += deleted;
    } while (place.tag && calls < OLD);
    assert_int_equal(calls, OLD / 2);
    assert_int_equal(total, OLD / 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), OLD / 2);
    rows_faults_done(&faults);

    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)"
        " SELECT 't', '', 4, '2020-01-03', '2020-01-03', '2020-01-01' FROM %s",
        numbers(N));
    ok(retention_store_expire(db, TASK_CANCELLED, 1000, 500, &place, &deleted, &faults, &err));
    assert_int_equal(deleted, N);
    assert_int_equal(faults.count, 0);
    assert_null(place.tag);

    run(db, "DELETE FROM app_order");
    ok(retention_store_expire(db, TASK_CANCELLED, 1000, 2000, &place, &deleted, &faults, &err));
    assert_int_equal(deleted, 0);
    retention_store_forget(&place);
    ok(retention_store_expire(db, TASK_CANCELLED, 1000, 2000, &place, &deleted, &faults, &err));
    assert_int_equal(deleted, OLD / 2);
    retention_store_done(&place);
    run(db, "DROP TABLE app_order");
}

/* MariaDB 10.5 has no SKIP LOCKED. */
static void without_skip_locked_only_locked_rows_are_named(void **state)
{
    static const struct db_session usual = DB_SESSION_DEFAULT;
    struct task_filter f = {0};
    struct task_change c = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct task_changed done;
    uint64_t first = 0, id = 0;
    (void)state;
    db_free(db);
    db = db_new(harness_conf);
    db_session_set(db, &usual);
    ok(db_connect(db, &err));
    if (!db_is_mariadb(db))
        skip();
    db->version = MIN(db->version, 100500);
    for (int i = 0; i < 300; i++) {
        id = add("t", NULL, 60000);
        if (!first)
            first = id;
    }
    lock_row(first);
    run(stranger, "UPDATE dq_task SET pid = 1 WHERE id = %" PRIu64, id - 7);
    ok(change_all(db, &f, &c, &done, &faults));
    run(stranger, "ROLLBACK");
    assert_int_equal(done.changed, 298);
    assert_int_equal(faults.count, 2);
    assert_int_equal(faults.items[0].id, first);
    assert_int_equal(faults.items[1].id, id - 7);
    rows_faults_done(&faults);
    assert_int_equal(number(db, "SELECT @@innodb_lock_wait_timeout"), usual.lock_wait_s);
}

static void a_stale_attempt_gives_way(void **state)
{
    struct task_filter f = {0};
    struct task_change c = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct claim_owner a = owner('a');
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct task_array expired = {0};
        struct task_changed done;
        enum lease_end ends[N] = {LEASE_TAKE_BACK};
        bool flags[N];
        run(db, "DELETE FROM dq_task");
        run(db, "DELETE FROM dq_attempt");
        struct task_array won = running(&a);
        run(db,
            "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)"
            " VALUES (%" PRIu64 ", %" PRIu64 ", 9, '2020-01-01', 'stale')",
            won.items[2].id, won.items[2].version);
        if (how == 0) {
            settle_all(&a, &won, TASK_TRY_LATER, false, flags);
            assert_int_equal(count_true(flags), N);
        } else if (how == 1) {
            run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
            ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 100, &expired, &err));
            ok(lease_store_take_back(db, &expired, ends, NULL, false, flags, &faults, &err));
            assert_int_equal(count_true(flags), N);
        } else {
            ok(change_all(db, &f, &c, &done, &faults));
            assert_int_equal(done.changed, N);
        }
        assert_int_equal(faults.count, 0);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt WHERE attempt = 1"), N);
        task_array_done(&expired);
        task_array_done(&won);
    }
}

static void what_cannot_be_counted_up_costs_itself(void **state)
{
    static const char *const odd[] = {"version = 18446744073709551615",
                                      "version = 18446744073709551614", "attempt = 4294967295"};
    struct task_filter f = {0};
    struct task_change c = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct claim_ask ask = {
        .tag = "t", .limit = 100, .shares = 1, .max_attempts = 7, .lease_ms = 60000};
    struct claim_owner a = owner('a');
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct task_array won = {0}, expired = {0};
        struct task_changed done;
        enum lease_end ends[N] = {LEASE_TAKE_BACK};
        bool taken[N];
        struct claim_seen saw;
        uint64_t id = 0;
        run(db, "DELETE FROM dq_task");
        for (int k = 0; k < N; k++)
            id = add("t", NULL, -1000);
        run(db, "UPDATE dq_task SET %s WHERE id = %" PRIu64, odd[i], id);
        ok(claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err));
        expect_fault(id, ERR_DATA);
        assert_int_equal(won.count, N - 1);
        assert_int_equal(saw.lost, 0);
        task_array_done(&won);
        if (i > 0)
            continue;
        run(db,
            "UPDATE dq_task SET status = 3, lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
        ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 100, &expired, &err));
        ok(lease_store_take_back(db, &expired, ends, NULL, false, taken, &faults, &err));
        expect_fault(id, ERR_DATA);
        assert_int_equal(count_true(taken), N - 1);
        task_array_done(&expired);
        ok(change_all(db, &f, &c, &done, &faults));
        expect_fault(id, ERR_DATA);
        assert_int_equal(done.changed, N - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(claims_take_what_is_not_locked, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_put_aside_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_locked_limit_is_told_from_locked_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(only_the_first_locked_row_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(leases_of_the_others_are_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(results_of_the_others_are_settled, setup, teardown),
        cmocka_unit_test_setup_teardown(the_others_are_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_others_are_deleted_and_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(old_tasks_behind_locked_ones_are_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(
            rows_that_are_refused_take_a_bounded_time_and_are_then_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(without_skip_locked_only_locked_rows_are_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_stale_attempt_gives_way, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_counted_up_costs_itself, setup, teardown),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
