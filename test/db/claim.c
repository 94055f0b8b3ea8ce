/* Taking due tasks: who wins, what a lost answer leaves, what limits and pauses do. */
#include "harness.h"
#include "store/db/db_connect.h"
#include "store/fleet/limit_store.h"
#include "store/work/expire_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

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

/* How the first attempts of a whole batch ended, and how many tasks may run together next time. */
struct ending {
    enum task_event event;
    enum task_outcome outcome;
    int exit_code, signal;
    uint32_t company;
};
#define COMPANY_BATCH 8

static struct task_array claim_batch(const struct claim_owner *o, uint32_t processes,
                                     uint32_t max_attempts, struct claim_seen *saw)
{
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};

    ask.batch = COMPANY_BATCH;
    ask.processes = processes;
    ask.max_attempts = max_attempts;
    ok(claim_store_claim(db, o, &ask, &won, saw, NULL, &err));
    return won;
}

static void end_all(const struct claim_owner *o, struct task_array *won, const struct ending *e)
{
    struct settlement s[COMPANY_BATCH];
    bool done[COMPANY_BATCH];
    enum lease_end ends[COMPANY_BATCH] = {LEASE_TAKE_BACK};
    struct task_array expired = {0};

    assert_int_equal(won->count, COMPANY_BATCH);
    for (size_t i = 0; i < won->count; i++) {
        s[i] = result(&won->items[i], e->event, e->outcome);
        s[i].exit_code = e->exit_code;
        s[i].signal = e->signal;
        s[i].retry_delay_ms = 0;
    }
    if (e->outcome == OUTCOME_LEASE_EXPIRED) {
        run(db, "UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
        ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 100, &expired, &err));
        ok(lease_store_take_back(db, &expired, ends, NULL, false, done, NULL, &err));
    } else {
        ok(settle_store_settle(db, o, s, won->count, false, false, done, NULL, &err));
    }
    for (size_t i = 0; i < COMPANY_BATCH; i++)
        assert_true(done[i]);
    task_array_done(&expired);
    task_array_done(won);
}

static void check_company(const struct task_array *won, size_t count, uint32_t company)
{
    assert_int_equal(won->count, count);
    for (size_t i = 0; i < won->count; i++)
        assert_int_equal(won->items[i].company, company);
}

static void a_row_tells_whether_its_task_had_a_verdict_of_its_own(void **state)
{
    static const struct ending endings[] = {
        {TASK_TRY_LATER, OUTCOME_VERDICT, -1, 0, COMPANY_BATCH},
        {TASK_TRY_LATER, OUTCOME_VERDICT, 0, 0, COMPANY_BATCH / 2}, /* an unreadable line */
        {TASK_TRY_LATER, OUTCOME_EXIT, 1, 0, COMPANY_BATCH / 2},
        {TASK_TRY_LATER, OUTCOME_SIGNAL, -1, 9, COMPANY_BATCH / 2},
        {TASK_TRY_LATER, OUTCOME_TIMEOUT, 0, 0, COMPANY_BATCH / 2},
        {TASK_TAKE_BACK, OUTCOME_RUNNER_DIED, -1, 9, COMPANY_BATCH / 2},
        {TASK_TAKE_BACK, OUTCOME_LEASE_EXPIRED, -1, 0, COMPANY_BATCH / 2},
        {TASK_GIVE_BACK, OUTCOME_RELEASED, -1, 0, COMPANY_BATCH},
    };
    struct claim_owner a = owner('a');
    struct claim_seen saw;
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        run(db, "DELETE FROM dq_task");
        for (int k = 0; k < COMPANY_BATCH; k++)
            add("t", NULL, -1000);
        struct task_array won = claim_batch(&a, 9, 7, &saw);
        check_company(&won, COMPANY_BATCH, COMPANY_BATCH);
        end_all(&a, &won, &endings[i]);
        won = claim_batch(&a, 9, 7, &saw);
        check_company(&won, COMPANY_BATCH, endings[i].company);
        assert_int_equal(saw.left, 0);
        task_array_done(&won);
    }
    run(db, "DELETE FROM dq_task");
    for (int k = 0; k < COMPANY_BATCH; k++)
        add("t", NULL, -1000);
    run(db, "UPDATE dq_task SET attempt = 1"); /* their producer's */
    struct task_array won = claim_batch(&a, 9, 7, &saw);
    check_company(&won, COMPANY_BATCH, COMPANY_BATCH);
    task_array_done(&won);
}

static void a_task_that_was_given_back_is_no_longer_known_to_have_had_one(void **state)
{
    static const struct ending verdict = {TASK_TRY_LATER, OUTCOME_VERDICT, -1, 0, 0},
                               released = {TASK_GIVE_BACK, OUTCOME_RELEASED, -1, 0, 0};
    struct claim_owner a = owner('a');
    struct claim_seen saw;
    (void)state;
    for (int k = 0; k < COMPANY_BATCH; k++)
        add("t", NULL, -1000);
    struct task_array won = claim_batch(&a, 9, 7, &saw);
    end_all(&a, &won, &verdict);
    won = claim_batch(&a, 9, 7, &saw);
    end_all(&a, &won, &released);
    won = claim_batch(&a, 9, 7, &saw);
    check_company(&won, COMPANY_BATCH, COMPANY_BATCH / 2);
    task_array_done(&won);
}

static void no_more_is_claimed_than_the_processes_can_take(void **state)
{
    static const struct ending gone = {TASK_TRY_LATER, OUTCOME_EXIT, 1, 0, 0};
    struct claim_owner a = owner('a');
    struct claim_seen saw;
    (void)state;
    for (int k = 0; k < COMPANY_BATCH; k++)
        add("t", NULL, -1000);
    struct task_array won = claim_batch(&a, 1, 2, &saw);
    end_all(&a, &won, &gone);
    won = claim_batch(&a, 3, 2, &saw); /* their last attempt: each is alone */
    check_company(&won, 3, 1);
    assert_int_equal(saw.found, COMPANY_BATCH);
    assert_int_equal(saw.left, COMPANY_BATCH - 3);
    assert_int_equal(saw.lost, 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 0 AND attempt = 1"),
                     COMPANY_BATCH - 3);
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
    ok(claim_store_claim(other, &b, &plain_ask, &won, &saw, NULL, &err));
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
    const struct claim_ref known = {mine, had.items[0].version};
    for (int i = 0; i < 5; i++)
        add("t", NULL, -1000);
    proxy_cut(p, "UPDATE dq_task", true);
    assert_int_equal(claim_store_claim(proxy_db(p), &a, &plain_ask, &won, &saw, NULL, &err),
                     ERR_LOST);
    assert_int_equal(won.count, 0);
    assert_int_equal(proxy_cuts(p), 1);
    ok(db_connect(proxy_db(p), &err));
    ok(claim_store_recover(proxy_db(p), &a, &known, 1, &found, &err));
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
    assert_int_equal(claim_store_claim(proxy_db(p), &a, &plain_ask, &won, &saw, NULL, &err),
                     ERR_LOST);
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

static void global_limit_holds(void **state)
{
    struct claim_owner a = owner('a'), b = owner('b');
    struct db *other = harness_db();
    struct claim_ask ask = plain_ask;
    struct task_array won = {0}, more = {0};
    struct claim_seen saw;
    (void)state;
    for (int i = 0; i < 10; i++)
        add("t", NULL, -1000);
    ask.tag_limit.running = 3;
    ask.limit = 2;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 2);
    ask.limit = 10;
    ok(claim_store_claim(other, &b, &ask, &more, &saw, NULL, &err));
    assert_int_equal(more.count, 1);
    assert_int_equal(saw.held, LIMIT_OPEN);
    ok(claim_store_claim(db, &a, &ask, &more, &saw, NULL, &err));
    assert_int_equal(more.count, 1);
    assert_int_equal(saw.found, 0);
    assert_int_equal(saw.held, LIMIT_RUNNING);
    /* While one counts, the other waits: the tag's row is the lock. */
    run(db, "START TRANSACTION");
    run(db, "UPDATE dq_limit SET update_time = UTC_TIMESTAMP(3) WHERE name = 't'");
    assert_int_equal(claim_store_claim(other, &b, &ask, &more, &saw, NULL, &err), ERR_LOCKED);
    assert_int_equal(saw.held, LIMIT_LOCKED);
    run(db, "ROLLBACK");
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3"), 3);
    task_array_done(&won);
    task_array_done(&more);
    db_free(other);
}

static void paused_tags_are_not_claimed(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    add("t", NULL, -1000);
    run(db, "INSERT INTO dq_limit (name, paused_until) VALUES ('t', '9999-12-31 23:59:59.999')");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count + saw.found + saw.lost, 0);
    run(db, "UPDATE dq_limit SET paused_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    task_array_done(&won);
}

/* A glob of others that a LIKE without its escape would match, and one of this tag. */
static void tags_that_match_a_paused_glob_are_not_claimed(void **state)
{
    struct event_act other = {.token = "1", .actor = "me", .verb = "pause", .tag = "a_b.*"},
                     glob = {.token = "2", .actor = "me", .verb = "pause", .tag = "*.!?%"};
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    ask.tag = "axb.!c%";
    add(ask.tag, NULL, -1000);
    add(ask.tag, NULL, -1000);
    assert_int_equal(limit_store_pause(db, &other, true, INT64_MAX, 0, NULL, &err), 1);
    ask.limit = 1;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    task_array_done(&won);
    assert_int_equal(limit_store_pause(db, &glob, true, INT64_MAX, 0, NULL, &err), 1);
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count + saw.found + saw.lost, 0);
    assert_int_equal(saw.held, LIMIT_OPEN); /* as if its tasks were in another share */
    ask.doubtful = true;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(saw.held, LIMIT_PAUSED);
    assert_true(saw.alone && saw.limit_at > WHEN_AT_MAX - WHEN_DAY);
    assert_int_equal(limit_store_resume(db, &glob, &err), 1);
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    task_array_done(&won);
}

#define EXPIRING 400

static void *cancel_expired(void *arg)
{
    struct db *other = arg;
    struct rows_faults faults = {0};
    struct peek_floor floor;
    struct err why;
    uint64_t count, sum = 0;

    for (int64_t until = when_steady() + 60000; when_steady() < until;) {
        floor = (struct peek_floor){0};
        if (expire_store_cancel(other, &plain_ask, TASK_NORMAL, EXPIRING, &floor, &count, &faults,
                                &why) == 0)
            sum += count;
        if (number(other, "SELECT COUNT(*) FROM dq_task WHERE status = 0") == 0)
            break;
    }
    rows_faults_done(&faults);
    return (void *)(uintptr_t)sum;
}

/* Each expires in a millisecond of its own, while one session claims and the other cancels. */
static void a_task_that_expires_as_it_is_claimed_is_either_started_or_cancelled(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct rows_faults faults = {0};
    struct claim_seen saw;
    pthread_t thread;
    void *cancelled;
    (void)state;
    for (int i = 0; i < EXPIRING; i++)
        add("t", NULL, -1000);
    struct db *other = harness_db();
    run(db,
        "UPDATE dq_task SET expires_time = UTC_TIMESTAMP(3) + INTERVAL (id - (SELECT * FROM (SELECT"
        " MIN(id) FROM dq_task) x)) * 1000 MICROSECOND");
    assert_int_equal(pthread_create(&thread, NULL, cancel_expired, other), 0);
    ask.limit = 2;
    while (number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 0")) {
        int rc = claim_store_claim(db, &a, &ask, &won, &saw, &faults, &err);
        assert_true(rc == 0 || rc == ERR_TRANSIENT);
    }
    pthread_join(thread, &cancelled);
    assert_int_equal(won.count + (uintptr_t)cancelled, EXPIRING);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 3 AND attempt = 1"),
                     won.count);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 4 AND attempt = 0"
                                " AND claim_token IS NULL AND version = 1"
                                " AND finish_time >= expires_time"),
                     (uintptr_t)cancelled);
    task_array_done(&won);
    rows_faults_done(&faults);
    db_free(other);
}

static void *cancel_once(void *arg)
{
    struct peek_floor floor = {0};
    struct err why;
    uint64_t count = 99;
    int rc = expire_store_cancel(arg, &plain_ask, TASK_NORMAL, 10, &floor, &count, NULL, &why);

    return (void *)(uintptr_t)(rc == 0 ? count : 99);
}

/* The claim is not committed yet when the other session sees the task, pending and expired. */
static void a_task_whose_claim_is_about_to_commit_does_not_expire(void **state)
{
    struct claim_owner a = owner('a');
    struct db *other = harness_db(), *third = harness_db();
    pthread_t thread;
    void *cancelled;
    (void)state;
    add("t", NULL, -1000);
    run(db, "UPDATE dq_task SET expires_time = UTC_TIMESTAMP(3) + INTERVAL 300000 MICROSECOND");
    run(db, "START TRANSACTION");
    struct task_array won = claim(db, &a, "t", 10);
    assert_int_equal(won.count, 1);
    while (!number(third, "SELECT COUNT(*) FROM dq_task WHERE expires_time <= UTC_TIMESTAMP(3)"))
        ;
    assert_int_equal(pthread_create(&thread, NULL, cancel_once, other), 0);
    while (!number(third, "SELECT COUNT(*) FROM information_schema.processlist"
                          " WHERE info LIKE 'UPDATE dq_task%%expires_time%%'"))
        ;
    run(db, "COMMIT");
    pthread_join(thread, &cancelled);
    assert_int_equal((uintptr_t)cancelled, 0);
    assert_int_equal(number(db, "SELECT status FROM dq_task"), TASK_RUNNING);
    task_array_done(&won);
    db_free(other);
    db_free(third);
}

static void what_has_expired_is_skipped_and_counted(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    uint64_t id = add("t", NULL, -5000);
    run(db, "UPDATE dq_task SET create_time = expected_time");
    ask.expires_ms = 4000;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 0);
    assert_int_equal(saw.expired, 1);
    assert_int_equal(saw.found + saw.lost + saw.left, 0);
    ask.expires_ms = 3600000;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    assert_int_equal(won.count, 1);
    assert_int_equal(won.items[0].expires_at, won.items[0].expected_at + 3600000);
    assert_int_equal(number(db,
                            "SELECT TIMESTAMPDIFF(SECOND, expected_time, expires_time) FROM dq_task"
                            " WHERE id = %" PRIu64,
                            id),
                     3600);
    task_array_done(&won);
}

static void what_is_due_soon_is_claimed_when_asked(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = plain_ask;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(claim_takes_what_is_due_in_order, harness_setup),
        cmocka_unit_test_setup(a_row_tells_whether_its_task_had_a_verdict_of_its_own,
                               harness_setup),
        cmocka_unit_test_setup(a_task_that_was_given_back_is_no_longer_known_to_have_had_one,
                               harness_setup),
        cmocka_unit_test_setup(no_more_is_claimed_than_the_processes_can_take, harness_setup),
        cmocka_unit_test_setup(claim_lost_race, harness_setup),
        cmocka_unit_test_setup(claim_recovers_after_lost_answer, harness_setup),
        cmocka_unit_test_setup(long_bodies_stay_behind_until_asked_for, harness_setup),
        cmocka_unit_test_setup(global_limit_holds, harness_setup),
        cmocka_unit_test_setup(paused_tags_are_not_claimed, harness_setup),
        cmocka_unit_test_setup(tags_that_match_a_paused_glob_are_not_claimed, harness_setup),
        cmocka_unit_test_setup(a_task_whose_claim_is_about_to_commit_does_not_expire,
                               harness_setup),
        cmocka_unit_test_setup(what_has_expired_is_skipped_and_counted, harness_setup),
        cmocka_unit_test_setup(a_task_that_expires_as_it_is_claimed_is_either_started_or_cancelled,
                               harness_setup),
        cmocka_unit_test_setup(what_is_due_soon_is_claimed_when_asked, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
