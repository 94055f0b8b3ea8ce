/* How attempts end: each result is applied once and leaves its state; retention. */
#include "harness.h"
#include "store/db/db_connect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

/* Beside a success, and again as after a lost answer: without history it has no row of its own. */
static void a_snooze_gives_the_attempt_back(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, 3);
    struct settlement s[2];
    bool applied[2];
    struct task t;
    (void)state;
    s[0] = result(&won.items[0], TASK_SNOOZE, OUTCOME_SNOOZED);
    s[0].retry_delay_ms = 90000;
    s[0].error = "snoozed for 1m30s";
    s[1] = result(&won.items[1], TASK_SUCCEED, OUTCOME_DONE);
    for (int i = 0; i < 2; i++) {
        ok(settle_store_settle(db, &a, s, 2, false, false, applied, NULL, &err));
        assert_true(applied[0] && applied[1]);
    }
    ok(task_get(db, s[0].id, &t, &err));
    assert_int_equal(t.status, TASK_PENDING);
    assert_int_equal(t.attempt, 0);
    assert_int_equal(t.expected_at - t.update_at, 90000);
    assert_true(t.execution_at == s[0].start_at);
    assert_int_equal(t.delay_ms, MAX(won.items[0].expected_at - won.items[0].create_at, 1));
    task_done(&t);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 0);
    s[0] = result(&won.items[2], TASK_SNOOZE, OUTCOME_SNOOZED);
    ok(settle_store_settle(db, &a, s, 1, true, false, applied, NULL, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'snoozed'"), 1);
    task_array_done(&won);
}

static void each_event_leaves_its_state(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, 5);
    struct settlement s[5];
    bool applied[5];
    struct task t;
    (void)state;
    s[0] = result(&won.items[0], TASK_SUCCEED, OUTCOME_DONE);
    s[0].output = "a\0b'\\\xff";
    s[0].output_size = 6;
    s[1] = result(&won.items[1], TASK_TRY_LATER, OUTCOME_EXIT);
    s[1].retry_delay_ms = 30250;
    s[1].error = "it's \xff bad\nthing";
    s[2] = result(&won.items[2], TASK_GIVE_UP, OUTCOME_SIGNAL);
    s[2].exit_code = -1;
    s[2].signal = 9;
    s[3] = result(&won.items[3], TASK_GIVE_BACK, OUTCOME_RELEASED);
    s[3].start_at = s[3].finish_at = TASK_TIME_NONE;
    s[3].exit_code = -1;
    s[4] = result(&won.items[4], TASK_TAKE_BACK, OUTCOME_RUNNER_DIED);
    ok(settle_store_settle(db, &a, s, 5, false, false, applied, NULL, &err));
    for (int i = 0; i < 5; i++)
        assert_true(applied[i]);

    ok(task_get(db, s[0].id, &t, &err));
    assert_int_equal(t.status, TASK_DONE);
    assert_int_equal(t.version, 2);
    assert_true(t.execution_at == s[0].start_at && t.finish_at == s[0].finish_at);
    assert_int_equal(t.exit_code, 0);
    assert_int_equal(t.output_size, 6);
    assert_memory_equal(t.output, "a\0b'\\\xff", 6);
    assert_true(t.lease_until_at == TASK_TIME_NONE);
    task_done(&t);
    ok(task_get(db, s[1].id, &t, &err));
    assert_int_equal(t.status, TASK_PENDING);
    assert_int_equal(t.attempt, 1);
    assert_string_equal(t.error, "it's ? bad\nthing");
    assert_true(t.finish_at == TASK_TIME_NONE);
    assert_int_equal(t.expected_at - t.update_at, 30250);
    task_done(&t);
    ok(task_get(db, s[2].id, &t, &err));
    assert_int_equal(t.status, TASK_FAILED);
    assert_int_equal(t.signal, 9);
    assert_int_equal(t.exit_code, -1);
    task_done(&t);
    ok(task_get(db, s[3].id, &t, &err));
    assert_int_equal(t.status, TASK_PENDING);
    assert_int_equal(t.attempt, 0);
    assert_true(t.execution_at == TASK_TIME_NONE);
    assert_true(t.expected_at == won.items[3].expected_at);
    task_done(&t);
    ok(task_get(db, s[4].id, &t, &err));
    assert_int_equal(t.status, TASK_PENDING);
    assert_int_equal(t.attempt, 1);
    task_done(&t);
    /* The failures left their history, the quiet release and the success none. */
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 3);
    struct task_attempt *list;
    size_t count;
    ok(attempt_store_list(db, s[1].id, &list, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(list[0].outcome, OUTCOME_EXIT);
    assert_int_equal(list[0].attempt, 1);
    assert_int_equal(list[0].exit_code, 1);
    assert_int_equal(list[0].pid, 'a');
    assert_true(list[0].start_at == s[1].start_at);
    attempt_store_free(list, count);
    task_array_done(&won);
}

/* Values are looked up by id within one statement: each row gets its own, whatever order they come
 * in. */
static void every_row_gets_its_own_values(void **state)
{
    enum { N = 60 };
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, N);
    struct settlement s[N];
    bool applied[N];
    char text[N][16];
    (void)state;
    for (int i = 0; i < N; i++) {
        size_t k = (size_t)(i * 37 % N);
        snprintf(text[i], sizeof text[i], "text %" PRIu64, won.items[k].id);
        s[i] = result(&won.items[k], i % 3 ? TASK_TRY_LATER : TASK_SUCCEED, OUTCOME_EXIT);
        s[i].retry_delay_ms = (int64_t)won.items[k].id * 1000 + 7;
        s[i].exit_code = i % 5 ? (int)(won.items[k].id % 200) : -1;
        s[i].error = i % 3 && i % 2 ? text[i] : NULL;
        s[i].output = i % 4 ? text[i] : NULL;
        s[i].output_size = i % 4 ? strlen(text[i]) : 0;
        s[i].start_at += (int64_t)won.items[k].id;
        if (i % 7 == 0)
            s[i].start_at = s[i].finish_at = TASK_TIME_NONE;
    }
    ok(settle_store_settle(db, &a, s, N, false, false, applied, NULL, &err));
    for (int i = 0; i < N; i++) {
        struct task t;
        assert_true(applied[i]);
        ok(task_get(db, s[i].id, &t, &err));
        assert_int_equal(t.exit_code, s[i].exit_code);
        assert_true(s[i].error ? t.error && !strcmp(t.error, s[i].error) : !t.error);
        assert_int_equal(t.output_size, s[i].output_size);
        assert_memory_equal(s[i].output ? t.output : "", s[i].output ? s[i].output : "",
                            s[i].output_size);
        if (i % 7 == 0)
            assert_in_range(t.update_at - t.execution_at, 0, 60000); /* as it was claimed */
        else
            assert_true(t.execution_at == s[i].start_at);
        if (i % 3)
            assert_true(t.expected_at - t.update_at == s[i].retry_delay_ms);
        task_done(&t);
    }
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_attempt a JOIN dq_task t ON t.id = a.task_id WHERE a.exit_code <=> t.exit_code"
            " AND a.error_stack <=> t.error_stack AND a.output <=> t.output AND a.start_time = t.execution_time"),
        N * 2 / 3);
    task_array_done(&won);
}

static void settling_twice_applies_once(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, 3);
    struct settlement s[3];
    bool applied[3];
    (void)state;
    s[0] = result(&won.items[0], TASK_SUCCEED, OUTCOME_DONE);
    s[1] = result(&won.items[1], TASK_TRY_LATER, OUTCOME_EXIT);
    s[2] = result(&won.items[2], TASK_GIVE_UP, OUTCOME_EXIT);
    for (int i = 0; i < 2; i++) {
        ok(settle_store_settle(db, &a, s, 3, false, false, applied, NULL, &err));
        assert_true(applied[0] && applied[1] && applied[2]);
        assert_int_equal(number(db, "SELECT SUM(version) FROM dq_task"), 6);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 2);
    }
    task_array_done(&won);
}

static void a_lost_answer_is_settled_once(void **state)
{
    static const char *const cut[] = {"SET status = 1", "INSERT INTO dq_attempt", "SET status = 2",
                                      "COMMIT"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cut / sizeof *cut; i++) {
        struct claim_owner a = owner('a');
        struct proxy *p = proxy_new();
        struct task_array won = claimed(&a, 4);
        struct settlement s[4];
        bool applied[4];
        for (int k = 0; k < 4; k++)
            s[k] = k < 2 ? result(&won.items[k], TASK_SUCCEED, OUTCOME_DONE)
                         : result(&won.items[k], TASK_GIVE_UP, OUTCOME_EXIT);
        ok(db_connect(proxy_db(p), &err));
        proxy_cut(p, cut[i / 2], i % 2);
        assert_int_equal(
            settle_store_settle(proxy_db(p), &a, s, 4, false, false, applied, NULL, &err),
            ERR_LOST);
        ok(settle_store_settle(proxy_db(p), &a, s, 4, false, false, applied, NULL, &err));
        for (int k = 0; k < 4; k++)
            assert_true(applied[k]);
        assert_int_equal(
            number(db, "SELECT COUNT(*) FROM dq_task WHERE version = 2 AND status = 1"), 2);
        assert_int_equal(
            number(db, "SELECT COUNT(*) FROM dq_task WHERE version = 2 AND status = 2"), 2);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 2);
        task_array_done(&won);
        proxy_free(p);
        harness_setup(NULL);
    }
}

/* A row is not tried alone if it is not a row that is locked. */
static void a_locked_table_is_tried_once(void **state)
{
    enum { N = 8 };
    static const char statements[] =
        "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Com_insert_select'";
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, N);
    struct rows_faults faults = {0};
    struct db *other = harness_db();
    struct settlement s[N];
    bool applied[N];
    (void)state;
    if (!db_skips_locked(db) || !db_is_mariadb(db))
        skip();
    for (int i = 0; i < N; i++)
        s[i] = result(&won.items[i], TASK_GIVE_UP, OUTCOME_EXIT);
    run(other, "LOCK TABLES dq_attempt READ");
    for (int careful = 0; careful <= 1; careful++) {
        int64_t before = number(db, statements);
        ok(settle_store_settle(db, &a, s, N, false, careful, applied, &faults, &err));
        assert_int_equal(number(db, statements) - before, careful ? 1 : 2);
        assert_int_equal(faults.count, N);
        assert_true(faults.beside);
        rows_faults_done(&faults);
    }
    run(other, "UNLOCK TABLES");
    /* a row of the table that is locked is one row's affair */
    run(other, "START TRANSACTION");
    run(other,
        "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome) VALUES (%" PRIu64
        ", %" PRIu64 ", 1, UTC_TIMESTAMP(3), 'exit')",
        s[3].id, s[3].version);
    ok(settle_store_settle(db, &a, s, N, false, true, applied, &faults, &err));
    assert_int_equal(faults.count, 1);
    assert_true(faults.items[0].id == s[3].id);
    assert_false(faults.beside);
    rows_faults_done(&faults);
    run(other, "ROLLBACK");
    ok(settle_store_settle(db, &a, s, N, false, false, applied, &faults, &err));
    assert_int_equal(faults.count, 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 2"), N);
    db_free(other);
    task_array_done(&won);
}

/* A table that is missing, or full, is a row's affair if only a trigger needs it, else that of all.
 */
static void a_trigger_that_fails_for_a_row_costs_that_row(void **state)
{
    enum { N = 4 };
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, N);
    struct rows_faults faults = {0};
    struct settlement s[N];
    bool applied[N];
    (void)state;
    for (int i = 0; i < N; i++)
        s[i] = result(&won.items[i], TASK_GIVE_UP, OUTCOME_EXIT);
    as_root("CREATE TRIGGER dq_asks AFTER UPDATE ON dq_task FOR EACH ROW BEGIN"
            " IF NEW.id = %" PRIu64 " THEN INSERT INTO dq_gone VALUES (1); END IF; END",
            s[2].id);
    for (int n = N; n > 0; n -= N - 1) { /* with others, and alone */
        ok(settle_store_settle(db, &a, s + (n == 1 ? 2 : 0), (size_t)n, false, false, applied,
                               &faults, &err));
        assert_int_equal(faults.count, 1);
        assert_true(faults.items[0].id == s[2].id);
        assert_int_equal(faults.items[0].err.code, ERR_FATAL);
        assert_non_null(strstr(faults.items[0].err.text, "a trigger of dq_task failed"));
        assert_non_null(strstr(faults.items[0].err.text, "dq_gone"));
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 2"), N - 1);
        rows_faults_done(&faults);
    }
    as_root("DROP TRIGGER dq_asks");
    as_root("CREATE TRIGGER dq_asks AFTER UPDATE ON dq_task FOR EACH ROW SIGNAL SQLSTATE 'HY000'"
            " SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table ''audit'' is full'");
    ok(settle_store_settle(db, &a, s + 2, 1, false, false, applied, &faults, &err));
    assert_int_equal(faults.count, 1);
    assert_non_null(strstr(faults.items[0].err.text, "The table 'audit' is full"));
    rows_faults_done(&faults);
    as_root("DROP TRIGGER dq_asks");
    as_root("RENAME TABLE dq_attempt TO dq_away");
    assert_int_equal(settle_store_settle(db, &a, s + 2, 1, false, false, applied, &faults, &err),
                     ERR_CONFIG);
    assert_int_equal(faults.count, 0);
    as_root("RENAME TABLE dq_away TO dq_attempt");
    ok(settle_store_settle(db, &a, s + 2, 1, false, false, applied, &faults, &err));
    assert_true(applied[0]);
    task_array_done(&won);
}

static void history_of_all_attempts_on_request(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, 2);
    struct settlement s[2];
    bool applied[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        s[i] = result(&won.items[i], TASK_SUCCEED, OUTCOME_DONE);
    ok(settle_store_settle(db, &a, s, 2, true, false, applied, NULL, &err));
    assert_true(applied[0] && applied[1]);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'done'"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 1"), 2);
    task_array_done(&won);
}

/* Marks them as task_add does with KEY_AGAIN. */
static void mark(const char *where)
{
    run(db,
        "UPDATE dq_task SET again_body = CONCAT('again ', id), again_time = '2031-01-02 03:04:05.678'"
        " WHERE %s",
        where);
}

static void what_runs_again_without_a_body_has_an_empty_one(void **state)
{
    struct claim_owner a = owner('a');
    bool on;
    (void)state;
    add("t", NULL, -1000);
    struct task_array won = claim(db, &a, "t", 1);
    run(db, "UPDATE dq_task SET again_time = UTC_TIMESTAMP(3)");
    struct settlement s = result(&won.items[0], TASK_SUCCEED, OUTCOME_DONE);
    assert_int_equal(settle_store_settle(db, &a, &s, 1, false, false, &on, NULL, &err), 1);
    assert_int_equal(number(db, "SELECT message_body = '' AND body_size = 0 FROM dq_task"), on);
    task_array_done(&won);
}

/* Whatever comes of the run, and whichever others are settled with it. */
static void a_task_that_was_added_again_runs_again(void **state)
{
    static const struct {
        enum task_event event;
        enum task_outcome outcome;
        int attempt;
        bool its_time; /* that of the mark */
    } cases[] = {{TASK_SUCCEED, OUTCOME_DONE, 0, true},
                 {TASK_GIVE_UP, OUTCOME_EXIT, 0, true},
                 {TASK_TRY_LATER, OUTCOME_EXIT, 1, false},
                 {TASK_GIVE_BACK, OUTCOME_RELEASED, 0, false},
                 {TASK_TAKE_BACK, OUTCOME_RUNNER_DIED, 1, false}};
    enum { KINDS = sizeof cases / sizeof *cases, N = 4 * KINDS };
    struct claim_owner a = owner('a');
    struct settlement s[N];
    bool applied[N];
    char text[40];
    (void)state;
    for (int i = 0; i < N; i++)
        add("t", NULL, -1000);
    struct task_array won = claim(db, &a, "t", N);
    run(db, "UPDATE dq_task SET task_key = CONCAT('key ', id), live = 1");
    mark("id % 2 = 0");
    for (int i = 0; i < N; i++) {
        s[i] = result(&won.items[i], cases[i / 4].event, cases[i / 4].outcome);
        s[i].retry_delay_ms = 5000;
    }
    assert_int_equal(settle_store_settle(db, &a, s, N, false, false, applied, NULL, &err), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE again_time IS NULL"
                                " AND again_body IS NULL AND version = 2"),
                     N);
    for (int i = 0; i < N; i++) {
        const enum task_status to = task_transition(cases[i / 4].event)->to;
        bool again = s[i].id % 2 == 0;
        struct task t;
        assert_true(applied[i]);
        ok(task_get(db, s[i].id, &t, &err));
        snprintf(text, sizeof text, "again %" PRIu64, s[i].id);
        assert_int_equal(t.status, again ? TASK_PENDING : to);
        assert_int_equal(t.body_size, again ? strlen(text) : won.items[i].body_size);
        assert_memory_equal(t.body, again ? text : won.items[i].body, t.body_size);
        if (again) {
            assert_int_equal(t.attempt, cases[i / 4].attempt);
            assert_true(t.finish_at == TASK_TIME_NONE && t.lease_until_at == TASK_TIME_NONE);
            assert_int_equal(t.expected_at == INT64_C(1925089445678), cases[i / 4].its_time);
        }
        task_done(&t);
    }
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_task WHERE live IS NULL AND status IN (1, 2)"), 4);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE live = 1 AND status = 0"),
                     N - 4);
    task_array_done(&won);
}

/* The run fails and is retried in five minutes. */
static void what_was_added_again_does_not_expire_while_it_waits_for_a_retry(void **state)
{
    static const char early[] =
        "SELECT COUNT(*) FROM dq_task WHERE expected_time < UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE";
    struct claim_owner a = owner('a');
    (void)state;
    for (int minutes = 1; minutes <= 10; minutes += 9) {
        struct task_array won = claimed(&a, 1);
        struct settlement s = result(&won.items[0], TASK_TRY_LATER, OUTCOME_EXIT);
        bool applied;
        s.retry_delay_ms = 5 * WHEN_MINUTE;
        run(db,
            "UPDATE dq_task SET again_body = 'b', again_time = UTC_TIMESTAMP(3),"
            " expires_time = UTC_TIMESTAMP(3) + INTERVAL %d MINUTE",
            minutes);
        assert_int_equal(settle_store_settle(db, &a, &s, 1, false, false, &applied, NULL, &err), 1);
        assert_int_equal(number(db, early), minutes == 1);
        task_array_done(&won);
        harness_setup(NULL);
    }
}

/* The settling statement is cut before or behind the server: it is repeated, and the task becomes
 * pending once. Without such tasks there is one statement. */
static void a_lost_answer_adds_nothing_again(void **state)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, 2);
    struct settlement s[2];
    bool applied[2];
    (void)state;
    mark("id % 2 = 0");
    for (int i = 0; i < 2; i++)
        s[i] = result(&won.items[i], TASK_SUCCEED, OUTCOME_DONE);
    for (int deliver = 0; deliver < 2; deliver++) {
        struct proxy *p = proxy_new();
        proxy_cut(p, "again_time IS NOT NULL", deliver == 1);
        assert_int_equal(
            settle_store_settle(proxy_db(p), &a, s, 2, false, false, applied, NULL, &err),
            ERR_LOST);
        assert_int_equal(
            number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 0 AND version = 2"), deliver);
        proxy_free(p);
    }
    ok(settle_store_settle(db, &a, s, 2, false, false, applied, NULL, &err));
    assert_true(applied[0] && applied[1]);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE version = 2"), 2);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_task WHERE message_body = CONCAT('again ', id)"), 1);
    task_array_done(&won);
    won = claimed(&a, 60);
    struct settlement many[60];
    bool done[60];
    for (int i = 0; i < 60; i++)
        many[i] = result(&won.items[i], TASK_SUCCEED, OUTCOME_DONE);
    int64_t before = session_status(db, "= 'Com_update'");
    assert_int_equal(settle_store_settle(db, &a, many, 60, false, false, done, NULL, &err), 0);
    assert_int_equal(session_status(db, "= 'Com_update'"), before + 1);
    task_array_done(&won);
}

static void a_finished_task_frees_its_key(void **state)
{
    struct claim_owner a = owner('a');
    bool applied;
    (void)state;
    add("t", "k", -1000);
    struct task_array won = claim(db, &a, "t", 1);
    struct settlement s = result(&won.items[0], TASK_TRY_LATER, OUTCOME_EXIT);
    ok(settle_store_settle(db, &a, &s, 1, false, false, &applied, NULL, &err));
    assert_int_equal(number(db, "SELECT live FROM dq_task"), 1);
    run(db, "UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3)");
    task_array_done(&won);
    won = claim(db, &a, "t", 1);
    s = result(&won.items[0], TASK_SUCCEED, OUTCOME_DONE);
    ok(settle_store_settle(db, &a, &s, 1, false, false, &applied, NULL, &err));
    assert_true(number(db, "SELECT live FROM dq_task") == INT64_MIN);
    add("t", "k", 0);
    task_array_done(&won);
}

static void retention_deletes_old_finished_tasks_with_their_history(void **state)
{
    size_t deleted;
    (void)state;
    for (int i = 0; i < 6; i++)
        add(i % 2 ? "a" : "b", NULL, -7200000);
    run(db,
        "UPDATE dq_task SET status = 1, finish_time = UTC_TIMESTAMP(3) - INTERVAL 100 MINUTE ORDER BY id LIMIT 4");
    /* due long ago, finished just now */
    run(db, "UPDATE dq_task SET finish_time = UTC_TIMESTAMP(3) ORDER BY id LIMIT 1");
    run(db,
        "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome) SELECT id, 1, 1, UTC_TIMESTAMP(3), 'exit' "
        "FROM dq_task");
    ok(retention_store_expire(db, TASK_DONE, 3600000, 2, NULL, &deleted, NULL, &err));
    assert_int_equal(deleted, 2);
    ok(retention_store_expire(db, TASK_DONE, 3600000, 500, NULL, &deleted, NULL, &err));
    assert_int_equal(deleted, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 3);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), 3);
    ok(retention_store_expire(db, TASK_FAILED, 3600000, 500, NULL, &deleted, NULL, &err));
    assert_int_equal(deleted, 0);
}

/* Of one tag, and beside others. */
static void retention_finds_old_tasks_behind_younger_ones(void **state)
{
    struct retention_place place = {0};
    size_t deleted, total = 0;
    int calls = 0;
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)"
        " SELECT CONCAT('t', seq %% 4), '', 1, '2020-01-01' + INTERVAL seq SECOND,"
        " IF(seq > 1200, '2020-01-02', UTC_TIMESTAMP(3)), '2020-01-01' FROM %s",
        numbers(1300));
    do {
        ok(retention_store_expire(db, TASK_DONE, 3600000, 70, &place, &deleted, NULL, &err));
        total += deleted;
        calls++;
    } while (place.tag && calls < 100);
    assert_int_equal(total, 100);
    assert_in_range(calls, 1300 / 70, 1300 / 70 + 5);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 1200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_snooze_gives_the_attempt_back, harness_setup),
        cmocka_unit_test_setup(each_event_leaves_its_state, harness_setup),
        cmocka_unit_test_setup(every_row_gets_its_own_values, harness_setup),
        cmocka_unit_test_setup(settling_twice_applies_once, harness_setup),
        cmocka_unit_test_setup(a_lost_answer_is_settled_once, harness_setup),
        cmocka_unit_test_setup(a_locked_table_is_tried_once, harness_setup),
        cmocka_unit_test_setup(a_trigger_that_fails_for_a_row_costs_that_row, harness_setup),
        cmocka_unit_test_setup(history_of_all_attempts_on_request, harness_setup),
        cmocka_unit_test_setup(what_runs_again_without_a_body_has_an_empty_one, harness_setup),
        cmocka_unit_test_setup(a_task_that_was_added_again_runs_again, harness_setup),
        cmocka_unit_test_setup(what_was_added_again_does_not_expire_while_it_waits_for_a_retry,
                               harness_setup),
        cmocka_unit_test_setup(a_lost_answer_adds_nothing_again, harness_setup),
        cmocka_unit_test_setup(a_finished_task_frees_its_key, harness_setup),
        cmocka_unit_test_setup(retention_deletes_old_finished_tasks_with_their_history,
                               harness_setup),
        cmocka_unit_test_setup(retention_finds_old_tasks_behind_younger_ones, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
