/*
 * What dqd and dq read is in proportion to what is due or asked for, on 200,000 tasks (finished,
 * due and future, 50 tags). Measured by the session's Handler_read counters: index entries and rows
 * touched, whatever plan the optimizer has chosen.
 */
#include "harness.h"
#include "store/ask/tag_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TAGS 50
#define PAIRS 200 /* (status, tag): pending, done, failed, cancelled */

/* Fails when fn reads more than `most` entries. */
static int64_t before;
static const char *what;
static void begin(const char *name)
{
    what = name;
    before = reads(db);
}
static void end_within(int64_t most)
{
    int64_t after = reads(db), base = after;
    base = reads(db) - after; /* what asking for the counters costs by itself */
    int64_t n = after - before - base;
    if (n > most)
        print_error("%s: %" PRId64 " entries read, not %" PRId64 " at most\n", what, n, most);
    else
        print_message("# %s: %" PRId64 " entries read (at most %" PRId64 ")\n", what, n, most);
    assert_true(n <= most);
}

/* Of 20 tasks: 1 due, 1 future, 1 failed, 1 cancelled, 16 done. */
static int fill(void **state)
{
    harness_group(state);
    run(db,
        "INSERT INTO dq_task (tag, task_key, live, message_body, body_size, status, expected_time, execution_time, finish_time, "
        "create_time)"
        " SELECT CONCAT('tag', seq DIV 20 %% 50), CONCAT('key', seq), IF(seq %% 20 < 2, 1, NULL), REPEAT('x', 100), 100,"
        " CASE seq %% 20 WHEN 0 THEN 0 WHEN 1 THEN 0 WHEN 2 THEN 2 WHEN 3 THEN 4 ELSE 1 END,"
        " UTC_TIMESTAMP(3) + INTERVAL IF(seq %% 20 = 1, 1, -1) * (3600 + CAST(seq AS SIGNED)) SECOND, UTC_TIMESTAMP(3) - INTERVAL "
        "seq SECOND,"
        " UTC_TIMESTAMP(3) - INTERVAL seq SECOND, UTC_TIMESTAMP(3) - INTERVAL (200000 - seq) * 100 SECOND FROM %s ORDER BY seq",
        numbers(200000));
    /* what the server does by itself some seconds after so many changes */
    number(db, "ANALYZE NO_WRITE_TO_BINLOG TABLE dq_task");
    return 0;
}

static int none(const struct task *t, void *arg)
{
    (void)t;
    (void)arg;
    return 0;
}

static void peek(void **state)
{
    struct peek p = {0};
    (void)state;
    begin("peek");
    ok(peek_store_all(db, 0, &p, &err));
    end_within(TAGS * 8);
    assert_int_equal(p.count, TAGS);
    begin("news");
    ok(peek_store_news(db, &(uint64_t){0}, &p, &err));
    end_within(PEEK_NEWS_MOST * 4);
    peek_store_done(&p);
}

static void claim_check_renew_settle(void **state)
{
    enum { N = 100 };
    struct claim_owner a = owner('a');
    struct claim_ask ask = {
        .tag = "tag7", .limit = N, .shares = 1, .max_attempts = 3, .lease_ms = 60000};
    struct task_array won = {0};
    struct claim_ref refs[N];
    struct settlement s[N];
    bool flags[N], followed[N];
    struct claim_seen saw;
    (void)state;
    begin("claim of 100");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    end_within(N * 4);
    assert_int_equal(won.count, N);
    for (size_t i = 0; i < N; i++) {
        refs[i] = (struct claim_ref){won.items[i].id, won.items[i].version};
        assert_non_null(won.items[i].body);
    }
    begin("check of 100");
    ok(lease_store_check(db, &a, refs, N, flags, followed, NULL, &err));
    end_within(N * 3); /* with a look for the mark of a follower */
    begin("renewal of 100");
    ok(lease_store_renew(db, &a, refs, N, 60000, false, flags, NULL, &err));
    end_within(N * 2);
    for (size_t i = 0; i < N; i++)
        s[i] = (struct settlement){.id = refs[i].id,
                                   .version = refs[i].version,
                                   .event = i < 50 ? TASK_SUCCEED : TASK_TRY_LATER,
                                   .outcome = OUTCOME_EXIT,
                                   .start_at = INT64_C(1790000000000),
                                   .finish_at = INT64_C(1790000000000)};
    begin("settlement of 50 done, 25 to be retried");
    ok(settle_store_settle(db, &a, s, 75, false, false, flags, NULL, &err));
    end_within(75 * 12);
    task_array_done(&won);
}

/* What the last test has left running. */
static void leases_that_have_ended(void **state)
{
    enum { N = 25 };
    struct task_array expired = {0};
    bool flags[N];
    enum lease_end ends[N] = {LEASE_TAKE_BACK};
    (void)state;
    run(db,
        "UPDATE dq_task FORCE INDEX (due) SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND WHERE status = 3");
    begin("25 expired leases");
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 500, &expired, &err));
    end_within(N * 3);
    assert_int_equal(expired.count, N);
    begin("taking 25 back");
    ok(lease_store_take_back(db, &expired, ends, NULL, false, flags, NULL, &err));
    end_within(N * 8);
    begin("nothing expired");
    task_array_done(&expired);
    ok(lease_store_expired(db, NULL, NULL, 0, 30000, false, 500, &expired, &err));
    end_within(3);
    task_array_done(&expired);
}

static void claims_above_a_floor(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = {
        .tag = "tag8", .limit = 1, .shares = 1, .max_attempts = 3, .lease_ms = 60000};
    struct task_array won = {0};
    struct claim_seen saw;
    int64_t now_us, next_at[TASK_LEVELS];
    (void)state;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    ask.limit = 10;
    ask.floor[TASK_NORMAL] = (struct peek_floor){won.items[0].expected_at, won.items[0].id};
    task_array_done(&won);
    begin("claim of 10 above a floor");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    end_within(10 * 4);
    assert_int_equal(won.count, 10);
    task_array_done(&won);
    ask.tag = "tag9";
    ask.floor[TASK_NORMAL] = (struct peek_floor){0};
    ask.next = true;
    begin("claim of 10, and when the next one is due");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    end_within(10 * 4 + 4);
    assert_int_equal(won.count, 10);
    ask.floor[TASK_NORMAL].at = INT64_C(1000) * number(db, "SELECT UNIX_TIMESTAMP()");
    ask.limit = 500;
    begin("claim of 500, of which none is due, and when the next one is");
    task_array_done(&won);
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    end_within(8);
    assert_int_equal(saw.found, 0);
    assert_true(saw.next_known && saw.next_at > ask.floor[TASK_NORMAL].at);
    begin("when the next one above a floor is due");
    ok(peek_store_next(db, "tag8", ask.floor, &now_us, next_at, &err));
    end_within(4);
    task_array_done(&won);
}

static void shares_and_limits(void **state)
{
    struct claim_owner a = owner('a');
    struct claim_ask ask = {.tag = "tag8",
                            .limit = 20,
                            .share = 0,
                            .shares = 4,
                            .steal_after_ms = INT64_C(1000000000),
                            .max_attempts = 3,
                            .lease_ms = 60000,
                            .tag_limit = {.running = 20}};
    struct task_array won = {0};
    struct claim_seen saw;
    (void)state;
    begin("claim of 20 in one of 4 shares, with a limit");
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    end_within(20 * 4 * 4);
    assert_in_range(won.count, 1, 20);
    task_array_done(&won);
    begin("claim when the limit is reached");
    ask.tag_limit.running = 1;
    ok(claim_store_claim(db, &a, &ask, &won, &saw, NULL, &err));
    end_within(60);
    assert_int_equal(won.count, 0);
}

static void retention(void **state)
{
    size_t deleted;
    (void)state;
    begin("retention, 100 of 160,000");
    ok(retention_store_expire(db, TASK_DONE, 7200000, 100, NULL, &deleted, NULL, &err));
    end_within(TAGS * 8 + 100 * 12);
    assert_int_equal(deleted, 100);
    begin("retention, nothing old enough");
    ok(retention_store_expire(db, TASK_DONE, INT64_C(90) * 86400000, 100, NULL, &deleted, NULL,
                              &err));
    end_within(TAGS * 8);
    assert_int_equal(deleted, 0);
    run(db, "UPDATE dq_task SET finish_time = UTC_TIMESTAMP(3) WHERE status = 2");
    begin("retention, 100 of 10,000 that were due long ago and have just finished");
    ok(retention_store_expire(db, TASK_FAILED, 3600000, 100, NULL, &deleted, NULL, &err));
    end_within(TAGS * 8 + 100 * 4);
    assert_int_equal(deleted, 0);
    run(db, "UPDATE dq_task SET finish_time = expected_time + INTERVAL 1 HOUR WHERE status = 2");
}

static void lists(void **state)
{
    struct task_filter f = {.limit = 20};
    int64_t now_at;
    uint64_t ids[3] = {500, 100000, 150000};
    (void)state;
    ok(db_now(db, &now_at, &err));
    begin("list -n 20");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(PAIRS * 40);
    f.statuses = TASK_BIT(TASK_PENDING);
    f.since[TASK_FILTER_DUE] = (struct task_filter_bound){true, now_at};
    begin("list -n 20 of pending tasks due after now");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(PAIRS * 8 + TAGS * 40);
    f.tag_glob = "tag9";
    f.sort = SORT_EXPECTED_DESC;
    begin("list -n 20 of one tag, latest first");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(200);
    f = (struct task_filter){.limit = 20, .sort = SORT_ID_DESC};
    begin("list -n 20, newest first");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(200);
    f.key = "key12345";
    begin("list by key");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(20);
    f.key = NULL;
    f.ids = ids;
    f.id_count = 3;
    begin("list by id");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(20);
    f.tag_glob = "tag*";
    f.statuses = TASK_BIT(TASK_DONE);
    begin("list by id, done tasks of some tags");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(20);
    f.tag_glob = NULL;
    f.statuses = 0;
    f.ids = NULL;
    f.since[TASK_FILTER_CREATED] =
        (struct task_filter_bound){true, now_at - 1000000}; /* 10 tasks */
    begin("list since, 10 tasks, an hour of slack (36 tasks), and 20,000 ids to check the order");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(20300);
}

static int count_one(const struct task *t, void *arg)
{
    (void)t;
    ++*(size_t *)arg;
    return 0;
}

/* By the attempts that ended with them. Those of an import may have none, so all tasks are read. */
static void failed_since(void **state)
{
    struct task_filter f = {.statuses = TASK_BIT(TASK_FAILED)};
    size_t n = 0;
    int64_t now_at;
    (void)state;
    run(db,
        "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)"
        " SELECT id, version, 1, finish_time, 'exit' FROM dq_task FORCE INDEX (due) WHERE status = 2");
    ok(db_now(db, &now_at, &err));
    f.since[TASK_FILTER_FINISHED] = (struct task_filter_bound){true, now_at - 2000000};
    begin("list of the failed tasks of 2,000 seconds, 100 of 10,000");
    ok(task_list(db, &f, false, count_one, &n, &err));
    end_within(1000);
    assert_in_range(n, 90, 101);
    run(db, "DELETE FROM dq_attempt WHERE finish_time >= UTC_TIMESTAMP(3) - INTERVAL 1 HOUR");
    run(db, "INSERT INTO dq_event (token, step, event_time, verb, actor, tasks)"
            " VALUES (REPEAT('i', 16), 0, UTC_TIMESTAMP(3), 'import', 'root@web1', 1)");
    n = 0;
    ok(task_list(db, &f, false, count_one, &n, &err));
    assert_in_range(n, 90, 101);
    run(db, "DELETE FROM dq_event");
}

/* Behind a page that ends among them, the next one begins there, not with the first of them. */
static void tasks_of_one_time(void **state)
{
    enum { N = 20000 };
    struct task_filter f = {.tag_glob = "same"};
    (void)state;
    run(db,
        "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time)"
        " SELECT 'same', 'x', 1, '2030-01-01', UTC_TIMESTAMP(3) FROM %s",
        numbers(N));
    begin("list of 20,000 tasks of one time");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(N * 4);
    f.sort = SORT_EXPECTED_DESC;
    begin("list of 20,000 tasks of one time, the last first");
    ok(task_list(db, &f, false, none, NULL, &err));
    end_within(N * 4);
}

static void keys_and_statistics(void **state)
{
    struct task_new t = {.tag = "tag1", .key = "key20", .body = "", .expected_at = TASK_TIME_NONE};
    struct tag_info *tags;
    struct task_added added;
    size_t count;
    int64_t at;
    (void)state;
    begin("add with a live key");
    assert_int_equal(task_add(db, &t, KEY_KEEP, &added, &err), 0);
    end_within(10);
    begin("tags");
    ok(tag_store_list(db, "tag1*", &(struct tag_count_how){.exact = false}, &tags, &count, &at,
                      &err));
    end_within(PAIRS * 8 + 11 * 4500 * 2);
    tag_store_free(tags, count);
}

static void changes(void **state)
{
    uint64_t ids[10];
    struct task_filter f = {.ids = ids, .id_count = 10};
    struct task_change c = {.event = TASK_CANCEL, .expected_at = TASK_TIME_NONE};
    struct task_changed done;
    struct rows_faults faults = {0};
    (void)state;
    for (size_t i = 0; i < 10; i++)
        ids[i] = 100001 + 20 * i;
    begin("cancel 10 by id");
    ok(change_all(db, &f, &c, &done, &faults));
    end_within(100);
    assert_int_equal(done.changed, 10);
    begin("delete 10 by id");
    ok(delete_all(db, &f, &done, &faults));
    end_within(200);
    assert_int_equal(done.changed, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peek),
        cmocka_unit_test(claim_check_renew_settle),
        cmocka_unit_test(leases_that_have_ended),
        cmocka_unit_test(claims_above_a_floor),
        cmocka_unit_test(shares_and_limits),
        cmocka_unit_test(retention),
        cmocka_unit_test(lists),
        cmocka_unit_test(failed_since),
        cmocka_unit_test(tasks_of_one_time),
        cmocka_unit_test(keys_and_statistics),
        cmocka_unit_test(changes),
    };
    return cmocka_run_group_tests(tests, fill, harness_group_end);
}
