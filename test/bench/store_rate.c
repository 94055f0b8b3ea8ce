/*
 * store_rate.c - how fast 500 tasks are claimed and settled, beside plain statements that change 500 rows.
 *
 * Runs on the database that DQ_CONFIG names, for some seconds, and prints rows per second: median and best of the rounds. It
 * empties the tables. bin/dq-sandbox start DIR && DQ_CONFIG=DIR/dq.ini test/bench/store_rate
 */
#include "../db/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 500
#define ROUNDS 40

static int64_t times[ROUNDS];
static size_t times_count;

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what)
{
    qsort(times, times_count, sizeof *times, compare);
    printf("%-52s %8.0f rows/s (best %8.0f)\n", what, BATCH * 1e6 / (double)times[times_count / 2], BATCH * 1e6 / (double)times[0]);
    times_count = 0;
}

static void fill(void)
{
    run(db, "DELETE FROM dq_task");
    run(db,
        "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time) SELECT 't', REPEAT('x', 200), 200,"
        " UTC_TIMESTAMP(3) - INTERVAL 1 DAY + INTERVAL seq SECOND, UTC_TIMESTAMP(3) FROM seq_1_to_%d",
        ROUNDS * BATCH);
    number(db, "ANALYZE NO_WRITE_TO_BINLOG TABLE dq_task");
}

/* Plain statements: the ids are known, every row gets the same values. */
static void raw(const char *what, const char *set, int from_status)
{
    struct buf sql = BUF_INIT;
    int64_t first = number(db, "SELECT MIN(id) FROM dq_task");

    for (int round = 0; round < ROUNDS; round++) {
        buf_reset(&sql);
        buf_printf(&sql,
                   "UPDATE dq_task FORCE INDEX (PRIMARY) SET version = version + 1, update_time = UTC_TIMESTAMP(3), %s"
                   " WHERE status = %d AND id IN (%" PRId64,
                   set, from_status, first + round * BATCH);
        for (int i = 1; i < BATCH; i++)
            buf_printf(&sql, ",%" PRId64, first + round * BATCH + i);
        buf_chr(&sql, ')');
        uint64_t rows;
        int64_t start = when_steady_us();
        ok(db_exec(db, &sql, &rows, &err));
        times[times_count++] = when_steady_us() - start;
        assert_int_equal(rows, BATCH);
    }
    buf_done(&sql);
    report(what);
}

static void claim_all(struct task_list lists[ROUNDS], const struct claim_owner *o, bool print)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = when_steady_us();
        lists[i] = claim(db, o, "t", BATCH);
        times[times_count++] = when_steady_us() - start;
        assert_int_equal(lists[i].count, BATCH);
    }
    if (print)
        report("claim_store_claim, bodies of 200 bytes included");
    times_count = 0;
}

static void settle_all(struct task_list lists[ROUNDS], const struct claim_owner *o, enum task_event event, size_t output,
                       const char *what)
{
    struct settlement s[BATCH];
    bool applied[BATCH];
    char text[1024];

    memset(text, 'o', sizeof text);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BATCH; i++)
            s[i] = (struct settlement){.id = lists[round].items[i].id,
                                       .version = lists[round].items[i].version,
                                       .event = event,
                                       .outcome = event == TASK_SUCCEED ? OUTCOME_DONE : OUTCOME_EXIT,
                                       .start_at = INT64_C(1790000000000) + (int64_t)i,
                                       .finish_at = INT64_C(1790000000100) + (int64_t)i,
                                       .output = output ? text : NULL,
                                       .output_size = output};
        int64_t start = when_steady_us();
        ok(claim_store_settle(db, o, s, BATCH, false, applied, &err));
        times[times_count++] = when_steady_us() - start;
        for (size_t i = 0; i < BATCH; i++)
            assert_true(applied[i]);
        task_list_done(&lists[round]);
    }
    report(what);
}

static void rates(void **state)
{
    static struct task_list lists[ROUNDS];
    struct claim_owner o = owner('r');
    (void)state;
    fill();
    raw("raw UPDATE, the columns of a claim",
        "status = 3, attempt = attempt + 1, max_attempts = 10, claim_token = REPEAT('x', 16), host = 'test.example', pid = 1,"
        " lease_until = UTC_TIMESTAMP(3) + INTERVAL 60 SECOND, execution_time = UTC_TIMESTAMP(3)",
        0);
    raw("raw UPDATE, the columns of a success",
        "status = 1, execution_time = UTC_TIMESTAMP(3), finish_time = UTC_TIMESTAMP(3), lease_until = NULL,"
        " live = NULL, exit_code = 0",
        3);
    fill();
    claim_all(lists, &o, true);
    settle_all(lists, &o, TASK_SUCCEED, 0, "claim_store_settle, done, without output");
    fill();
    claim_all(lists, &o, false);
    settle_all(lists, &o, TASK_SUCCEED, 200, "claim_store_settle, done, 200 bytes of output");
    fill();
    claim_all(lists, &o, false);
    settle_all(lists, &o, TASK_TRY_LATER, 200, "claim_store_settle, to be retried, with history");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates)};
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
