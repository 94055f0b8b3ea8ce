/* Importing tasks: whole chunks or nothing, also if an answer is lost. */
#include "harness.h"
#include "store/ask/import_store.h"
#include "store/db/db_connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS 5

static struct import_item items[TASKS];

static void set_time(struct task *t)
{
    t->expected_at = t->create_at = INT64_C(1795000000123);
}

/* Tasks 101 to 105, the odd ones with an attempt. */
static void make_items(void)
{
    for (size_t i = 0; i < TASKS; i++) {
        items[i] = (struct import_item){.line = i + 1};
        struct task *t = &items[i].task;
        task_init(t);
        t->id = 101 + i;
        t->tag = strdup("t");
        t->body = strdup("body");
        t->body_size = 4;
        t->status = TASK_FAILED;
        t->version = 3;
        set_time(t);
        if (i % 2)
            continue;
        items[i].attempts = calloc(1, sizeof *items[i].attempts);
        items[i].attempt_count = items[i].attempt_cap = 1;
        *items[i].attempts = (struct task_attempt){.task_id = t->id,
                                                   .version = 1,
                                                   .attempt = 1,
                                                   .start_at = TASK_TIME_NONE,
                                                   .finish_at = t->create_at,
                                                   .outcome = OUTCOME_EXIT,
                                                   .exit_code = 1};
    }
}

static void expect_stored(bool stored)
{
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task"), stored ? TASKS : 0);
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM dq_attempt a JOIN dq_task t ON t.id = a.task_id"),
        stored ? 3 : 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_attempt"), stored ? 3 : 0);
}

static void a_lost_answer_stores_a_chunk_once_or_not_at_all(void **state)
{
    static const struct {
        const char *pattern;
        bool deliver, stored;
    } cuts[] = {{"COMMIT", true, true},
                {"COMMIT", false, false},
                {"INSERT INTO dq_task", true, false},
                {"REPLACE INTO dq_attempt", false, false}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cuts / sizeof *cuts; i++) {
        struct proxy *p = proxy_new();
        bool keep_ids = i % 2;
        harness_setup(NULL);
        make_items();
        ok(db_connect(proxy_db(p), &err)); /* its set-up says READ COMMITTED */
        proxy_cut(p, cuts[i / 2].pattern, cuts[i / 2].deliver);
        int rc = import_store_add(proxy_db(p), items, TASKS, keep_ids, NULL, &err);
        assert_int_equal(proxy_cuts(p), 1);
        assert_int_equal(rc, cuts[i / 2].stored ? 0 : ERR_TRANSIENT);
        expect_stored(cuts[i / 2].stored);
        if (rc < 0) {
            assert_non_null(strstr(err.text, "nothing was stored"));
            ok(import_store_add(proxy_db(p), items, TASKS, keep_ids, NULL, &err));
            expect_stored(true);
        }
        import_store_free(items, TASKS);
        proxy_free(p);
    }
}

static void an_outcome_that_cannot_be_looked_up_is_said(void **state)
{
    struct proxy *p = proxy_new();

    (void)state;
    make_items();
    ok(db_connect(proxy_db(p), &err));
    proxy_cut_all(p, "add_token", true);
    assert_int_equal(import_store_add(proxy_db(p), items, TASKS, true, NULL, &err), ERR_LOST);
    assert_non_null(strstr(err.text, "it is not known whether these tasks were stored"));
    import_store_free(items, TASKS);
    proxy_free(p);
}

/* Rows of dq_attempt that were left behind belong to no task. */
static void attempts_of_earlier_tasks_are_replaced(void **state)
{
    (void)state;
    make_items();
    run(db, "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)"
            " VALUES (101, 1, 9, UTC_TIMESTAMP(3), 'signal')");
    ok(import_store_add(db, items, TASKS, true, NULL, &err));
    assert_int_equal(number(db, "SELECT attempt FROM dq_attempt WHERE task_id = 101"), 1);
    expect_stored(true);
    size_t bad = 0;
    assert_int_equal(import_store_check(db, items, TASKS, true, &bad, &err), ERR_DUPLICATE);
    assert_int_equal(bad, 0);
    assert_int_equal(import_store_add(db, items, TASKS, true, NULL, &err), ERR_DUPLICATE);
    expect_stored(true);
    import_store_free(items, TASKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lost_answer_stores_a_chunk_once_or_not_at_all, harness_setup),
        cmocka_unit_test_setup(an_outcome_that_cannot_be_looked_up_is_said, harness_setup),
        cmocka_unit_test_setup(attempts_of_earlier_tasks_are_replaced, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
