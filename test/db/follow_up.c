/* on_failed: the task that is added when another one has failed for good, in the same transaction.
 */
#include "harness.h"
#include "store/db/db_connect.h"
#include "store/work/expire_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char mine[] = "dead";

/* Claimed tasks of which each fails for good. */
static struct task_array failing(const struct claim_owner *o, struct settlement *s, int n)
{
    struct task_array won = claimed(o, n);

    for (int i = 0; i < n; i++) {
        s[i] = result(&won.items[i], TASK_GIVE_UP, OUTCOME_EXIT);
        s[i].error = "exit status 1: \"card declined\"";
        s[i].on_failed = mine;
    }
    return won;
}

static int64_t added(void)
{
    return number(db, "SELECT COUNT(*) FROM dq_task WHERE tag = 'dead'");
}

static void a_failure_adds_a_task_that_tells_of_it(void **state)
{
    struct claim_owner a = owner('a');
    struct settlement s[5];
    bool applied[5];
    struct task t;
    (void)state;
    struct task_array won = failing(&a, s, 5);
    s[0].output = "caf\xc3\xa9 \xff";
    s[0].output_size = 7;
    s[1].on_failed = NULL;
    s[2] = result(&won.items[2], TASK_TRY_LATER, OUTCOME_EXIT);
    s[2].on_failed = mine;
    run(db, "UPDATE dq_task SET task_key = 'failed-7-2', live = 1 WHERE id = %" PRIu64, s[3].id);
    run(db,
        "UPDATE dq_task SET task_key = 'k', live = 1, again_body = '', again_time = UTC_TIMESTAMP(3)"
        " WHERE id = %" PRIu64,
        s[4].id);
    run(db, "UPDATE dq_task SET message_body = 'order 7', body_size = 7 WHERE id = %" PRIu64,
        s[0].id);
    assert_int_equal(settle_store_settle(db, &a, s, 5, false, false, applied, NULL, &err), 1);
    assert_int_equal(added(), 1);
    ok(task_get(db, (uint64_t)number(db, "SELECT id FROM dq_task WHERE tag = 'dead'"), &t, &err));
    char *key = mem_printf("failed-%" PRIu64 "-2", s[0].id);
    char *body = mem_printf("{\"id\":%" PRIu64
                            ",\"status\":\"failed\",\"attempts\":1,\"size\":7,\"tag\":\"t\","
                            "\"error\":\"exit status 1: \\\"card declined\\\"\","
                            "\"output\":\"caf\xc3\xa9 \\ufffd\",\"body\":\"order 7\"}",
                            s[0].id);
    assert_string_equal(t.key, key);
    assert_int_equal(t.status, TASK_PENDING);
    assert_true(t.expected_at == t.create_at);
    assert_int_equal(t.body_size, strlen(body));
    assert_memory_equal(t.body, body, t.body_size);
    free(key);
    free(body);
    task_done(&t);
    task_array_done(&won);
}

/* A failure costs what it did. */
static void without_on_failed_there_is_no_further_statement(void **state)
{
    struct claim_owner a = owner('a');
    struct settlement s[2];
    bool applied[2];
    int64_t cost[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct task_array won = failing(&a, s, 2);
        s[0].on_failed = s[1].on_failed = i ? mine : NULL;
        int64_t before = session_status(db, "= 'Questions'");
        ok(settle_store_settle(db, &a, s, 2, false, false, applied, NULL, &err));
        cost[i] = session_status(db, "= 'Questions'") - before;
        task_array_done(&won);
    }
    assert_int_equal(cost[0], 5 + 1); /* BEGIN to COMMIT, and the question itself */
    assert_int_equal(cost[1], cost[0] + 2);
}

/* Whatever the rows hold, and however much: JSON of at most 64 KiB, with the body if it fits. */
static void a_long_body_is_left_out(void **state)
{
    static const struct {
        const char *body;
        size_t size;
        const char *has;
    } cases[] = {{"REPEAT('x', 65000)", 65000, "body"},
                 {"REPEAT('x', 65500)", 65500, NULL},
                 {"REPEAT(X'ff', 48000)", 48000, "body_base64"},
                 {"REPEAT('\\n', 40000)", 40000, NULL},
                 {"REPEAT('x', 3000000)", 3000000, NULL}};
    enum { N = sizeof cases / sizeof *cases };
    struct claim_owner a = owner('a');
    struct settlement s[N];
    bool applied[N];
    (void)state;
    struct task_array won = failing(&a, s, N);
    char *text = mem_alloc(60000);
    memset(text, '\1', 60000);
    text[59999] = '\0';
    for (int i = 0; i < N; i++) {
        run(db, "UPDATE dq_task SET message_body = %s WHERE id = %" PRIu64, cases[i].body, s[i].id);
        s[i].error = i == 3 ? text : NULL;
        s[i].output = i == 3 ? text : NULL;
        s[i].output_size = i == 3 ? 60000 : 0;
    }
    ok(settle_store_settle(db, &a, s, N, false, false, applied, NULL, &err));
    assert_int_equal(added(), N);
    assert_int_equal(number(db,
                            "SELECT COUNT(*) FROM dq_task WHERE tag = 'dead' AND body_size <= 65536"
                            " AND body_size = OCTET_LENGTH(message_body)"
                            " AND JSON_VALID(CONVERT(message_body USING utf8mb4))"),
                     N);
    for (int i = 0; i < N; i++) {
        const char *at = "FROM dq_task WHERE tag = 'dead' AND task_key";
        assert_int_equal(number(db,
                                "SELECT JSON_EXTRACT(CONVERT(message_body USING utf8mb4), '$.size')"
                                " %s = 'failed-%" PRIu64 "-2'",
                                at, s[i].id),
                         cases[i].size);
        assert_int_equal(
            number(db,
                   "SELECT JSON_CONTAINS_PATH(CONVERT(message_body USING utf8mb4), 'one', '$.%s')"
                   " %s = 'failed-%" PRIu64 "-2'",
                   cases[i].has ? cases[i].has : "body", at, s[i].id),
            !!cases[i].has);
    }
    free(text);
    task_array_done(&won);
}

/* The transaction is cut, before or behind the server: both the failures and their tasks are there,
 * or none. The result is written again, and each failure has its task once, even if that has been
 * worked off by then. */
static void a_lost_answer_adds_none_twice(void **state)
{
    static const char *const cut[] = {"SET status = 2", "RIGHT(output", "INSERT INTO dq_task",
                                      "COMMIT"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cut / sizeof *cut; i++) {
        bool done = i / 2 == 3 && i % 2;
        struct claim_owner a = owner('a');
        struct proxy *p = proxy_new();
        struct settlement s[3];
        bool applied[3];
        struct task_array won = failing(&a, s, 3);
        ok(db_connect(proxy_db(p), &err));
        proxy_cut(p, cut[i / 2], i % 2);
        assert_int_equal(
            settle_store_settle(proxy_db(p), &a, s, 3, false, false, applied, NULL, &err),
            ERR_LOST);
        assert_int_equal(added(), done ? 3 : 0);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 2"), done ? 3 : 0);
        run(db, "UPDATE dq_task SET status = 1, live = NULL WHERE tag = 'dead'");
        ok(settle_store_settle(proxy_db(p), &a, s, 3, false, false, applied, NULL, &err));
        assert_true(applied[0] && applied[1] && applied[2]);
        assert_int_equal(added(), 3);
        assert_int_equal(number(db, "SELECT COUNT(DISTINCT task_key) FROM dq_task"), 3);
        task_array_done(&won);
        proxy_free(p);
        harness_setup(NULL);
    }
}

/* Somebody else's task with that key is in no one's way: what is added gets another one, and has no
 * task of its own if it fails. */
static void a_key_that_is_taken_keeps_no_failure_back(void **state)
{
    struct claim_owner a = owner('a');
    struct settlement s[2];
    bool applied[2];
    char key[40];
    (void)state;
    struct task_array won = failing(&a, s, 2);
    snprintf(key, sizeof key, "failed-%" PRIu64 "-2", s[0].id);
    add("dead", key, 0);
    for (int again = 0; again < 2; again++) {
        ok(settle_store_settle(db, &a, s, 2, false, false, applied, NULL, &err));
        assert_true(applied[0] && applied[1]);
        assert_int_equal(added(), 3);
        assert_int_equal(number(db,
                                "SELECT COUNT(*) FROM dq_task WHERE tag = 'dead'"
                                " AND task_key LIKE '%s%%' AND live = 1",
                                key),
                         2);
    }
    task_array_done(&won);
    run(db,
        "UPDATE dq_task SET tag = 't', expected_time = create_time - INTERVAL 1 HOUR"
        " WHERE task_key LIKE '%s-%%'",
        key);
    won = failing(&a, s, 1);
    ok(settle_store_settle(db, &a, s, 1, false, false, applied, NULL, &err));
    assert_int_equal(added(), 2);
    task_array_done(&won);
}

/* An index of somebody else, which dq doctor names, costs the added task, not the result. */
static void a_unique_index_of_others_keeps_no_failure_back(void **state)
{
    struct claim_owner a = owner('a');
    struct settlement s[2];
    bool applied[2];
    (void)state;
    struct task_array won = failing(&a, s, 2);
    run(db, "UPDATE dq_task SET create_time = create_time - INTERVAL id SECOND");
    run(db, "ALTER TABLE dq_task ADD UNIQUE theirs (tag, create_time)");
    add("dead", NULL, 0);
    run(db, "SET timestamp = 1900000000");
    run(db, "UPDATE dq_task SET create_time = UTC_TIMESTAMP(3) WHERE tag = 'dead'");
    ok(settle_store_settle(db, &a, s, 2, false, false, applied, NULL, &err));
    run(db, "SET timestamp = DEFAULT");
    run(db, "ALTER TABLE dq_task DROP KEY theirs");
    assert_true(applied[0] && applied[1]);
    assert_int_equal(added(), 1);
    task_array_done(&won);
}

#define MANY 60

struct session {
    pthread_t thread;
    struct db *db;
    bool leases;
    int rc;
    struct err err;
};

static void *end_all(void *arg)
{
    struct session *x = arg;
    struct claim_ask ask = plain_ask;
    struct rows_faults faults = {0};
    struct task_array expired = {0};
    const char *on_failed[MANY];
    enum lease_end ends[MANY];
    bool taken[MANY];
    uint64_t count;

    ask.on_failed = mine;
    for (int i = 0; i < MANY; i++) {
        ends[i] = LEASE_GIVE_UP;
        on_failed[i] = mine;
    }
    do {
        struct peek_floor floor = {0};
        if (!x->leases) {
            x->rc = expire_store_cancel(x->db, &ask, TASK_NORMAL, MANY, &floor, &count, &faults,
                                        &x->err);
        } else {
            x->rc =
                lease_store_expired(x->db, NULL, NULL, 0, 30000, false, MANY, &expired, &x->err);
            if (x->rc == 0)
                x->rc = lease_store_take_back(x->db, &expired, ends, on_failed, false, taken,
                                              &faults, &x->err);
            task_array_done(&expired);
        }
    } while (x->rc == ERR_TRANSIENT ||
             (x->rc == 0 && number(x->db, "SELECT COUNT(*) FROM dq_task WHERE status IN (0, 3)"
                                          " AND tag = 't'")));
    rows_faults_done(&faults);
    return NULL;
}

/* Two dqds find the same tasks: both wait for a third session's locks when they have, which ends
 * the first task. What is added has ended before it is seen, so its key keeps no other out. */
static void two_sessions_add_one(bool leases)
{
    struct session x[2];
    struct db *holder = harness_db();

    run(holder, "START TRANSACTION");
    run(holder, "UPDATE dq_task SET delay_time = 1");
    run(holder, "UPDATE dq_task SET status = 1, version = version + 1 ORDER BY id LIMIT 1");
    for (int i = 0; i < 2; i++)
        x[i] = (struct session){.db = harness_db(), .leases = leases};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&x[i].thread, NULL, end_all, &x[i]), 0);
    while (number(db, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE"
                      " '%%dq_task%%' AND info NOT LIKE '%%processlist%%'") < 2)
        ;
    run(holder, "COMMIT");
    for (int i = 0; i < 2; i++) {
        pthread_join(x[i].thread, NULL);
        ok(x[i].rc);
        db_free(x[i].db);
    }
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE tag = 't' AND status = %d",
                            leases ? TASK_FAILED : TASK_CANCELLED),
                     MANY - 1);
    assert_int_equal(added(), MANY - 1);
    assert_int_equal(number(db, "SELECT COUNT(DISTINCT task_key) FROM dq_task"), MANY - 1);
    as_root("DROP TRIGGER ends");
    db_free(holder);
}

static void ending_at_once(void)
{
    as_root("CREATE TRIGGER ends BEFORE INSERT ON dq_task FOR EACH ROW"
            " SET NEW.live = IF(NEW.tag = 'dead', NULL, NEW.live),"
            " NEW.status = IF(NEW.tag = 'dead', 1, NEW.status)");
}

static void two_that_take_back_add_one(void **state)
{
    struct claim_owner a = owner('a');
    (void)state;
    struct task_array won = claimed(&a, MANY);
    run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ending_at_once();
    two_sessions_add_one(true);
    task_array_done(&won);
}

static void two_that_cancel_what_has_expired_add_one(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        add("t", NULL, -1000);
    run(db, "UPDATE dq_task SET expires_time = UTC_TIMESTAMP(3)");
    ending_at_once();
    two_sessions_add_one(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_failure_adds_a_task_that_tells_of_it, harness_setup),
        cmocka_unit_test_setup(without_on_failed_there_is_no_further_statement, harness_setup),
        cmocka_unit_test_setup(a_long_body_is_left_out, harness_setup),
        cmocka_unit_test_setup(a_lost_answer_adds_none_twice, harness_setup),
        cmocka_unit_test_setup(a_key_that_is_taken_keeps_no_failure_back, harness_setup),
        cmocka_unit_test_setup(a_unique_index_of_others_keeps_no_failure_back, harness_setup),
        cmocka_unit_test_setup(two_that_take_back_add_one, harness_setup),
        cmocka_unit_test_setup(two_that_cancel_what_has_expired_add_one, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
