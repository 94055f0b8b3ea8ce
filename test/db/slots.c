/* Slots of schedules: decided once, in one transaction with their tasks. */
#include "harness.h"
#include "store/ask/schedule_run.h"
#include "store/ask/schedule_store.h"
#include "store/db/db_connect.h"
#include "store/fleet/poller_store.h"
#include "store/work/slot_record.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_slot_is_decided_once_with_its_task(void **state)
{
    (void)state;
    hourly("backup", "5 SECOND", "missed = 2, version = 7");
    hourly("later", "-1 MINUTE", "");
    struct slot_store_done done = decide(db);
    assert_int_equal(done.decided, 1);
    assert_int_equal(done.added, 1);
    assert_false(done.more);
    int64_t now_at,
        later_at = number(db, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MIN(next_slot))"
                              " DIV 1000 FROM dq_schedule");
    ok(db_now(db, &now_at, &err));
    assert_int_equal(done.look_at, later_at - SLOT_AHEAD_MS);
    assert_one(
        "dq_schedule c JOIN dq_slot s ON s.name = c.name AND s.slot = c.last_slot JOIN dq_task t"
        " ON t.task_key = CONCAT('backup@', DATE_FORMAT(s.slot, '%Y-%m-%dT%H:%i:%s.'),"
        " LPAD(MICROSECOND(s.slot) DIV 1000, 3, '0'), 'Z') AND t.expected_time = s.slot AND t.expires_time = c.next_slot"
        " WHERE c.version = 8 AND c.missed = 0 AND c.next_slot > UTC_TIMESTAMP(3) AND MINUTE(c.next_slot) = 0"
        " AND s.decision = 0 AND s.missed = 2 AND s.is_open = 1 AND t.missed_slots = 2 AND t.live = 1"
        " AND t.message_body = x'00ff' AND t.body_size = 2 AND t.tag = 't' AND t.status = 0");
    assert_int_equal(decide(db).decided, 0);
    assert_one("dq_task");
    assert_one("dq_slot");
}

/* A key of the server's expression is the one of slot_put_key. */
static void the_last_run_is_found_by_its_key(void **state)
{
    struct schedule *list;
    size_t count;
    int64_t now_at;
    (void)state;
    hourly("whole", "1 SECOND", "");
    run(db, "UPDATE dq_schedule SET next_slot = DATE_FORMAT(next_slot, '%%Y-%%m-%%d %%H:%%i:%%s')");
    hourly("parts", "1 SECOND", "");
    run(db,
        "UPDATE dq_schedule SET next_slot = CONCAT(DATE_FORMAT(next_slot, '%%Y-%%m-%%d %%H:%%i:%%s'), '.007')"
        " WHERE name = 'parts'");
    assert_int_equal(decide(db).added, 2);
    run(db, "UPDATE dq_task SET status = 3, execution_time = UTC_TIMESTAMP(3)");
    ok(schedule_store_list(db, &(struct schedule_filter){0}, &list, &count, &now_at, &err));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list[i].status, TASK_RUNNING);
        assert_true(list[i].task_id > 0 && list[i].started_at > 0);
    }
    schedule_row_free(list, count);
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3)");
    assert_int_equal(decide(db).decided, 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_slot WHERE decision = 2"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 2);
    assert_int_equal(number(db, "SELECT SUM(missed) FROM dq_schedule"), 2);
}

static void a_slot_whose_last_run_lives_waits_for_its_instant(void **state)
{
    (void)state;
    hourly("a", "1 SECOND", "");
    decide(db);
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3) + INTERVAL 900000 MICROSECOND");
    struct slot_store_done done = decide(db);
    assert_int_equal(done.decided, 0);
    assert_int_equal(done.look_at,
                     number(db, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_slot)"
                                " DIV 1000 FROM dq_schedule"));
}

static void the_run_that_lives_is_replaced(void **state)
{
    (void)state;
    hourly("waits", "1 SECOND", "overlap = 3");
    hourly("runs", "1 SECOND", "overlap = 3");
    hourly("ended", "1 SECOND", "overlap = 3");
    decide(db);
    run(db,
        "UPDATE dq_task SET status = 3, version = 5, attempt = 1, host = 'h', execution_time = UTC_TIMESTAMP(3)"
        " WHERE task_key LIKE 'runs@%%'");
    run(db,
        "UPDATE dq_task SET status = 1, version = 6, live = NULL, finish_time = UTC_TIMESTAMP(3)"
        " WHERE task_key LIKE 'ended@%%'");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3)");
    assert_int_equal(decide(db).added, 3);
    assert_one("dq_task WHERE task_key LIKE 'waits@%' AND status = 4 AND live IS NULL");
    assert_one("dq_task WHERE task_key LIKE 'runs@%' AND status = 4 AND version = 6");
    assert_one("dq_task WHERE task_key LIKE 'ended@%' AND status = 1 AND version = 6");
    assert_one("dq_attempt WHERE outcome = 'cancelled' AND host = 'h'");
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 0"), 3);
}

struct racer {
    struct db *d;
    size_t decided, added;
    pthread_barrier_t *start;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    struct err why;

    pthread_barrier_wait(r->start);
    for (int more = 1, tries = 0; more && tries < 100; tries++) {
        struct slot_store_done done = {0};
        int rc = slot_store_decide(r->d, &done, &why);

        more = rc < 0 || done.more;
        r->decided += done.decided;
        r->added += done.added;
    }
    return NULL;
}

static void many_at_once_decide_each_slot_once(void **state)
{
    struct racer racers[4];
    pthread_t threads[4];
    pthread_barrier_t start;
    size_t decided = 0;
    (void)state;
    for (int i = 0; i < 800; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        hourly(name, "5 SECOND", i % 3 ? "" : "overlap = 2");
    }
    pthread_barrier_init(&start, NULL, 4);
    for (int i = 0; i < 4; i++) {
        racers[i] = (struct racer){.d = harness_db(), .start = &start};
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        decided += racers[i].decided;
        db_free(racers[i].d);
    }
    pthread_barrier_destroy(&start);
    assert_int_equal(decided, 800);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 800);
    assert_int_equal(number(db, "SELECT COUNT(DISTINCT task_key) FROM dq_task"), 800);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_slot WHERE decision = 0"), 800);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_schedule WHERE version = 1"), 800);
}

static void a_task_that_is_refused_costs_its_own_slot(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        hourly(name, "2 HOUR", "");
    }
    run(db, "UPDATE dq_schedule SET tag = 'bad' WHERE name = 's4'");
    as_root(
        "CREATE TRIGGER %s.refuses BEFORE INSERT ON %s.dq_task FOR EACH ROW"
        " IF NEW.tag = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not that'; END IF",
        harness_conf->database, harness_conf->database);
    struct slot_store_done done = decide(db);
    as_root("DROP TRIGGER %s.refuses", harness_conf->database);
    assert_int_equal(done.decided, 9);
    assert_int_equal(done.added, 8);
    assert_int_equal(done.refused, 1);
    assert_string_equal(done.fault.name, "s4");
    assert_non_null(strstr(done.fault.err.text, "not that"));
    assert_one(
        "dq_slot WHERE name = 's4' AND decision = 5 AND error LIKE '%not that%' AND is_open IS NULL");
    assert_one(
        "dq_schedule WHERE name = 's4' AND missed = 3 AND last_slot IS NULL AND next_slot > UTC_TIMESTAMP(3)");
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), 8);
}

static void many_that_cannot_be_read_here_do_not_keep_it_from_others(void **state)
{
    (void)state;
    run(db,
        "INSERT INTO dq_schedule (name, tag, message_body, kind, expression, zone, next_slot, create_time, update_time, actor)"
        " SELECT CONCAT('s', seq), 't', '', 0, '0 * * * *', 'No/Where', UTC_TIMESTAMP(3) - INTERVAL 9 SECOND,"
        " UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'a' FROM %s",
        numbers(1100));
    hourly("fine", "5 SECOND", "");
    hourly("early", "10 SECOND", "");
    struct slot_store_done done = decide(db);
    assert_int_equal(done.decided, 2);
    assert_int_equal(done.fault.count, 1100);
    assert_false(done.more);
    assert_true(done.look_at != TASK_TIME_NONE);
}

static void a_locked_schedule_is_left_for_later(void **state)
{
    struct db *other = harness_db();
    (void)state;
    hourly("a", "5 SECOND", "");
    hourly("b", "5 SECOND", "");
    ok(db_begin(other, &err));
    run(other, "UPDATE dq_schedule SET spread = 1 WHERE name = 'a'");
    struct slot_store_done done = decide(db);
    assert_int_equal(done.decided, 1);
    assert_int_equal(done.fault.count, 1);
    assert_string_equal(done.fault.name, "a");
    assert_int_equal(done.fault.err.code, ERR_LOCKED);
    assert_one("dq_slot WHERE name = 'b'");
    ok(db_end(other, 0, &err));
    db_free(other);
    assert_int_equal(decide(db).decided, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_slot"), 2);
}

static void a_timetable_that_cannot_be_read_does_not_keep_others(void **state)
{
    (void)state;
    hourly("a", "5 SECOND", "");
    hourly("b", "5 SECOND", "");
    run(db, "UPDATE dq_schedule SET expression = 'often' WHERE name = 'a'");
    struct slot_store_done done = decide(db);
    assert_int_equal(done.decided, 1);
    assert_string_equal(done.fault.name, "a");
    assert_int_equal(done.fault.err.code, ERR_DATA);
}

/* Whatever is lost, the statement or its answer: once more finds it done, or does it. */
static void a_lost_answer_does_not_decide_twice(void **state)
{
    static const char *const statements[] = {"UPDATE dq_schedule", "INSERT INTO dq_task",
                                             "INSERT INTO dq_slot", "COMMIT"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct proxy *p = proxy_new();
        struct db *d = proxy_db(p);
        struct slot_store_done done;

        harness_setup(NULL);
        hourly("a", "5 SECOND", "");
        ok(db_connect(d, &err)); /* its set-up says READ COMMITTED */
        proxy_cut(p, statements[i / 2], i % 2);
        assert_int_equal(slot_store_decide(d, &done, &err), ERR_LOST);
        assert_int_equal(proxy_cuts(p), 1);
        const bool stored = i == 7;
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), stored);
        assert_int_equal(decide(d).decided, !stored);
        assert_one("dq_task");
        assert_one("dq_slot");
        proxy_free(p);
    }
}

static void how_runs_end_is_recorded(void **state)
{
    struct poller_say say = {.mode = "resident",
                             .slots = 1,
                             .stale_after_ms = 1000,
                             .clock_ahead_ms = POLLER_CLOCK_NONE};
    const struct claim_owner o = owner(1);
    struct poller_share share;
    struct schedule *list;
    size_t count;
    int64_t now_at;
    bool more;
    (void)state;
    ok(poller_store_beat(db, &o, &say, &share, &err));
    assert_true(share.slot_at == TASK_TIME_NONE && !share.slots && !share.open_slots);
    hourly("done", "5 SECOND", "");
    hourly("failed", "5 SECOND", "");
    hourly("deleted", "5 SECOND", "");
    hourly("runs", "5 SECOND", "");
    ok(poller_store_beat(db, &o, &say, &share, &err));
    assert_true(share.slot_at != TASK_TIME_NONE && !share.slots);
    decide(db);
    ok(poller_store_beat(db, &o, &say, &share, &err));
    assert_true(share.slots && share.open_slots);
    ok(slot_record_harvest(db, &more, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_slot WHERE is_open = 1"), 4);
    run(db,
        "UPDATE dq_task SET status = 1, live = NULL, execution_time = create_time, finish_time = UTC_TIMESTAMP(3)"
        " WHERE task_key LIKE 'done@%%'");
    run(db,
        "UPDATE dq_task SET status = 2, live = NULL, finish_time = UTC_TIMESTAMP(3), exit_code = 3,"
        " error_stack = REPEAT('e', 300) WHERE task_key LIKE 'failed@%%'");
    run(db, "DELETE FROM dq_task WHERE task_key LIKE 'deleted@%%'");
    ok(slot_record_harvest(db, &more, &err));
    assert_false(more);
    assert_one(
        "dq_slot WHERE name = 'done' AND result = 1 AND start_time IS NOT NULL AND finish_time IS NOT NULL AND task_id"
        " AND is_open IS NULL AND decision = 0");
    assert_one(
        "dq_slot WHERE name = 'failed' AND result = 2 AND exit_code = 3 AND LENGTH(error) = 255");
    assert_one("dq_slot WHERE name = 'deleted' AND result IS NULL AND is_open IS NULL");
    assert_one("dq_slot WHERE is_open = 1 AND name = 'runs'");
    /* the record outlives the tasks */
    run(db, "DELETE FROM dq_task");
    ok(schedule_store_list(db, &(struct schedule_filter){.glob = "*e*"}, &list, &count, &now_at,
                           &err));
    assert_int_equal(count, 3);
    assert_int_equal(list[0].status, -1);
    assert_int_equal(list[1].status, TASK_DONE);
    assert_true(list[1].done_at == list[1].last_at && list[1].finished_at > 0);
    assert_int_equal(list[2].status, TASK_FAILED);
    assert_int_equal(list[2].exit, 3);
    schedule_row_free(list, count);
}

/* MariaDB 11.8 rolls a statement back that has waited for a row which was changed meanwhile. */
static void *harvest(void *arg)
{
    struct err why;
    bool more;
    int rc;

    do
        rc = slot_record_harvest(arg, &more, &why);
    while (rc == ERR_TRANSIENT);
    if (rc < 0)
        fprintf(stderr, "# %s\n", why.text);
    return NULL;
}

/* A harvest that has read the ends waits for the first slot, and has not written them yet. */
static void a_run_that_begins_anew_during_a_harvest_stays_open(void **state)
{
    struct db *other = harness_db(), *locker = harness_db();
    const struct event_act act = {.actor = "a", .verb = "schedule backfill"};
    struct claim_ref ref = {0};
    pthread_t thread;
    (void)state;
    hourly("locked", "5 SECOND", "");
    decide(db);
    hourly("retried", "5 SECOND", "");
    hourly("backfilled", "5 SECOND", "");
    hourly("stays", "5 SECOND", "");
    decide(db);
    run(db,
        "UPDATE dq_slot SET decide_time = decide_time - INTERVAL IF(name = 'locked', 2, 1) SECOND");
    run(db, "UPDATE dq_task SET status = 2, live = NULL, finish_time = UTC_TIMESTAMP(3)");
    ref.id = (uint64_t)number(db, "SELECT id FROM dq_task WHERE task_key LIKE 'retried@%%'");
    int64_t slot_at = number(db, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', slot) DIV 1000"
                                 " FROM dq_slot WHERE name = 'backfilled'");
    run(locker, "BEGIN");
    run(locker, "UPDATE dq_slot SET slots = 1 WHERE name = 'locked'");
    assert_int_equal(pthread_create(&thread, NULL, harvest, db), 0);
    while (!session_status(other, "= 'Innodb_row_lock_current_waits'"))
        usleep(5000);
    run(other, "UPDATE dq_task SET status = 0, live = 1, finish_time = NULL WHERE id = %lld",
        (long long)ref.id);
    ok(slot_record_reopen(other, &ref, 1, &err));
    ok(schedule_run_backfill(other, "backfilled", &slot_at, 1, 0, &act, &err));
    run(locker, "COMMIT");
    pthread_join(thread, NULL);
    assert_one("dq_slot WHERE name = 'retried' AND is_open = 1");
    assert_one("dq_slot WHERE name = 'backfilled' AND is_open = 1 AND decision = 6");
    assert_one("dq_slot WHERE name = 'stays' AND is_open IS NULL AND result = 2");
    run(db,
        "UPDATE dq_task SET status = 1, live = NULL, finish_time = UTC_TIMESTAMP(3) WHERE status = 0");
    harvest(db);
    assert_one("dq_slot WHERE name = 'retried' AND is_open IS NULL AND result = 1");
    assert_one("dq_slot WHERE name = 'backfilled' AND is_open IS NULL AND result = 1");
    db_free(other);
    db_free(locker);
}

static void slots_are_deleted_after_90_days(void **state)
{
    size_t deleted;
    (void)state;
    run(db,
        "INSERT INTO dq_slot (name, slot, decision, decide_time, is_open) SELECT 'a', UTC_TIMESTAMP(3) - INTERVAL seq DAY, 0,"
        " UTC_TIMESTAMP(3) - INTERVAL seq DAY, IF(seq = 100, 1, NULL) FROM %s",
        numbers(100));
    ok(slot_record_expire(db, 4, &deleted, &err));
    assert_int_equal(deleted, 4);
    ok(slot_record_expire(db, 100, &deleted, &err));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_slot"), 90);
    assert_one("dq_slot WHERE is_open = 1");
}

/* In bulk: within a second, where the machine is not slow. */
static void ten_thousand_at_one_minute_are_stored_in_bulk(void **state)
{
    (void)state;
    run(db,
        "INSERT INTO dq_schedule (name, tag, message_body, kind, expression, next_slot, create_time, update_time, actor)"
        " SELECT CONCAT('s', seq), CONCAT('t', seq %% 10), 'b', 1, '1d', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3),"
        " 'a' FROM %s",
        numbers(10000));
    int64_t before = session_status(db, "= 'Questions'"), began = when_steady();
    struct slot_store_done done;
    size_t added = 0;
    do {
        done = decide(db);
        added += done.added;
    } while (done.more);
    printf("# %zu tasks added in %d ms\n", added, (int)(when_steady() - began));
    assert_int_equal(added, 10000);
    assert_in_range(session_status(db, "= 'Questions'") - before, 1, 250);
}

/* In more ways than there are statements for. */
static void schedules_that_move_differently_are_decided_together(void **state)
{
    (void)state;
    run(db,
        "INSERT INTO dq_schedule (name, tag, message_body, kind, expression, next_slot, create_time, update_time, actor)"
        " SELECT CONCAT('s', seq), 't', 'b', 1, CONCAT(100 + seq DIV 2, 'm'), UTC_TIMESTAMP(3) - INTERVAL seq DIV 3 SECOND,"
        " UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'a' FROM %s",
        numbers(60));
    assert_int_equal(decide(db).decided, 60);
    assert_one(
        "(SELECT SUM(version) = 60 AND COUNT(DISTINCT next_slot) > 16 AND MIN(next_slot) > UTC_TIMESTAMP(3)"
        " AS fine FROM dq_schedule) d WHERE fine");
    assert_int_equal(number(db,
                            "SELECT COUNT(*) FROM dq_slot s JOIN dq_schedule c ON c.name = s.name"
                            " AND c.last_slot = s.slot AND c.zone_version != ''"),
                     60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_slot_is_decided_once_with_its_task, harness_setup),
        cmocka_unit_test_setup(the_last_run_is_found_by_its_key, harness_setup),
        cmocka_unit_test_setup(a_slot_whose_last_run_lives_waits_for_its_instant, harness_setup),
        cmocka_unit_test_setup(the_run_that_lives_is_replaced, harness_setup),
        cmocka_unit_test_setup(many_at_once_decide_each_slot_once, harness_setup),
        cmocka_unit_test_setup(a_task_that_is_refused_costs_its_own_slot, harness_setup),
        cmocka_unit_test_setup(many_that_cannot_be_read_here_do_not_keep_it_from_others,
                               harness_setup),
        cmocka_unit_test_setup(a_locked_schedule_is_left_for_later, harness_setup),
        cmocka_unit_test_setup(schedules_that_move_differently_are_decided_together, harness_setup),
        cmocka_unit_test_setup(a_timetable_that_cannot_be_read_does_not_keep_others, harness_setup),
        cmocka_unit_test_setup(a_lost_answer_does_not_decide_twice, harness_setup),
        cmocka_unit_test_setup(how_runs_end_is_recorded, harness_setup),
        cmocka_unit_test_setup(a_run_that_begins_anew_during_a_harvest_stays_open, harness_setup),
        cmocka_unit_test_setup(slots_are_deleted_after_90_days, harness_setup),
        cmocka_unit_test_setup(ten_thousand_at_one_minute_are_stored_in_bulk, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
