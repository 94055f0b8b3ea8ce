/* What each dqd did, by minute and tag. */
#include "harness.h"
#include "poller/minute.h"

#include <stdlib.h>

static const struct claim_owner one = {.token = "0123456789abcdef"};
static const struct claim_owner two = {.token = "fedcba9876543210"};

static int64_t this_minute(void)
{
    int64_t now_at;

    ok(db_now(db, &now_at, &err));
    return now_at / WHEN_MINUTE * WHEN_MINUTE;
}

static struct minute_row row(const char *tag, int64_t at, int started)
{
    struct minute_row r = {.tag = (char *)tag, .at = at, .counts = {.done = (uint64_t)started}};

    for (int i = 0; i < started; i++)
        counts_start(&r.counts, 7);
    return r;
}

static void counts_written_twice_count_once(void **state)
{
    struct minute_answer a;
    int64_t at = this_minute();
    struct minute_row rows[] = {row("a", at, 3), row("b", at, 1), row("a", at - WHEN_MINUTE, 2)};
    (void)state;
    ok(minute_store_put(db, &one, rows, 3, &err));
    ok(minute_store_put(db, &one, rows, 3, &err));
    ok(minute_store_put(db, &two, rows, 1, &err));
    rows[0] = row("a", at, 4);
    ok(minute_store_put(db, &one, rows, 1, &err));
    ok(minute_store_read(db, &(struct minute_ask){.since_ms = WHEN_HOUR}, &a, &err));
    assert_int_equal(a.count, 2);
    assert_string_equal(a.rows[0].tag, "a");
    assert_int_equal(a.rows[0].counts.started, 4 + 3 + 2);
    assert_int_equal(a.rows[0].counts.done, 4 + 3 + 2);
    assert_int_equal(a.rows[0].counts.late_sum_ms, 9 * 7);
    assert_int_equal(a.rows[0].counts.late_max_ms, 7);
    assert_int_equal(a.rows[0].counts.late[0], 0);
    assert_int_equal(a.rows[0].counts.late[1], 9);
    assert_int_equal(a.rows[1].counts.started, 1);
    minute_store_free(a.rows, a.count);
}

static void counts_are_read_by_step_and_tag(void **state)
{
    struct minute_answer a;
    int64_t at = this_minute();
    struct minute_row rows[] = {row("a", at - 60 * WHEN_MINUTE, 1),
                                row("a", at - 3 * WHEN_MINUTE, 2), row("a", at, 4),
                                row("b", at, 8)};
    struct minute_ask ask = {
        .tag_glob = "a*", .since_ms = 10 * WHEN_MINUTE, .step_ms = WHEN_MINUTE};
    (void)state;
    ok(minute_store_put(db, &one, rows, 4, &err));
    ok(minute_store_read(db, &ask, &a, &err));
    assert_int_equal(a.count, 2);
    assert_int_equal(a.from_at, a.now_at / WHEN_MINUTE * WHEN_MINUTE - 10 * WHEN_MINUTE);
    assert_true(a.rows[0].at == at - 3 * WHEN_MINUTE);
    assert_int_equal(a.rows[0].counts.started, 2);
    assert_true(a.rows[1].at == at);
    assert_int_equal(a.rows[1].counts.started, 4);
    minute_store_free(a.rows, a.count);
    ask =
        (struct minute_ask){.since_ms = 2 * WHEN_HOUR, .step_ms = WHEN_HOUR, .align_ms = WHEN_HOUR};
    ok(minute_store_read(db, &ask, &a, &err));
    assert_int_equal(a.from_at % WHEN_HOUR, 0);
    for (size_t i = 0; i < a.count; i++)
        assert_int_equal(a.rows[i].at % WHEN_HOUR, 0);
    assert_string_equal(a.rows[a.count - 1].tag, "b");
    minute_store_free(a.rows, a.count);
}

static void old_counts_are_deleted_in_steps(void **state)
{
    int64_t at = this_minute();
    bool more;
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct minute_row r = row("a", at - i * WHEN_HOUR, 1);
        ok(minute_store_put(db, &one, &r, 1, &err));
    }
    ok(minute_store_expire(db, WHEN_DAY, 3, &more, &err));
    assert_false(more);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_minute"), 10);
    ok(minute_store_expire(db, 4 * WHEN_HOUR + WHEN_MINUTE, 3, &more, &err));
    assert_true(more);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_minute"), 7);
    ok(minute_store_expire(db, 4 * WHEN_HOUR + WHEN_MINUTE, 3, &more, &err));
    assert_false(more);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_minute"), 5);
}

/* What a poller counts falls into this minute. */
static void show(struct context *ctx, int64_t at)
{
    int64_t now_us = when_steady_us();

    ctx->clock = (struct dbclock){0};
    dbclock_sample(&ctx->clock, now_us, now_us, at * 1000);
}

/* More rows than one statement takes: those of minutes that have ended come first. */
static void a_poller_writes_past_minutes_and_the_current_one(void **state)
{
    static const struct conf conf = {.dqd = {.heartbeat_ms = 1000}};
    static const size_t left[][2] = {{100, 2}, {0, 0}};
    struct context ctx = {.conf = &conf, .db = db, .owner = one};
    int64_t at = this_minute() - 2 * WHEN_MINUTE;
    struct minute m;
    (void)state;
    minute_init(&m, &ctx);
    for (int i = 0; i < 600; i++) {
        char tag[] = {(char)('a' + i % 20), (char)('a' + i % 300 / 20), '\0'};

        show(&ctx, at + i / 300 * WHEN_MINUTE);
        minute_started(&m, tag, 5);
    }
    show(&ctx, at + 2 * WHEN_MINUTE);
    minute_started(&m, "aa", 5);
    minute_started(&m, "b", 5);
    for (size_t i = 0; i < 2; i++) {
        ok(minute_flush(&m, &err));
        assert_int_equal(m.past_count, left[i][0]);
        assert_int_equal(m.unsaved, left[i][1]);
    }
    assert_int_equal(number(db, "SELECT COUNT(DISTINCT tag) FROM dq_minute"), 301);
    assert_int_equal(number(db, "SELECT SUM(started) FROM dq_minute"), 602);
    assert_int_equal(number(db, "SELECT SUM(started) FROM dq_minute WHERE tag = 'aa'"), 3);
    minute_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counts_written_twice_count_once, harness_setup),
        cmocka_unit_test_setup(counts_are_read_by_step_and_tag, harness_setup),
        cmocka_unit_test_setup(old_counts_are_deleted_in_steps, harness_setup),
        cmocka_unit_test_setup(a_poller_writes_past_minutes_and_the_current_one, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
