/* Lists: every filter, in a total order, whatever the way they are read. */
#include "harness.h"

#include "store/ask/targets.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct seen {
    uint64_t ids[20000];
    int64_t at[20000];
    size_t count, stop_after;
};
static struct seen seen;

static int note(const struct task *t, void *arg)
{
    struct seen *s = arg;
    s->at[s->count] = t->expected_at;
    s->ids[s->count++] = t->id;
    return s->count == s->stop_after ? 7 : 0;
}

static struct task_filter all(void)
{
    return (struct task_filter){0};
}

static size_t list(const struct task_filter *f)
{
    seen.count = 0;
    seen.stop_after = 0;
    ok(task_list(db, f, false, note, &seen, &err));
    return seen.count;
}

static void assert_order(enum task_sort sort)
{
    for (size_t i = 1; i < seen.count; i++) {
        bool by_id = seen.ids[i - 1] < seen.ids[i], same = seen.at[i - 1] == seen.at[i],
             by_time = seen.at[i - 1] < seen.at[i];
        assert_int_not_equal(seen.ids[i - 1], seen.ids[i]);
        switch (sort) {
        case SORT_EXPECTED:
            assert_true(by_time || (same && by_id));
            break;
        case SORT_EXPECTED_DESC:
            assert_true((!by_time && !same) || (same && !by_id));
            break;
        case SORT_ID:
            assert_true(by_id);
            break;
        default:
            assert_true(!by_id);
        }
    }
}

/* That many tags x 5 statuses, many tasks with equal times. */
static void fill_tags(int n, int tags)
{
    run(db,
        "INSERT INTO dq_task (tag, message_body, body_size, status, expected_time, create_time)"
        " SELECT CONCAT('tag.', seq %% %d), 'body', 4, seq %% 5,"
        " UTC_TIMESTAMP(3) + INTERVAL (CAST(seq * 7919 %% 100 AS SIGNED) - 50) MINUTE,"
        " UTC_TIMESTAMP(3) - INTERVAL (%d - seq) SECOND FROM %s ORDER BY seq",
        tags, n, numbers((unsigned)n));
}

static void fill(int n)
{
    fill_tags(n, 7);
}

static void check_orders(size_t all_tasks)
{
    static const enum task_sort sorts[] = {SORT_EXPECTED, SORT_EXPECTED_DESC, SORT_ID,
                                           SORT_ID_DESC};
    static const size_t limits[] = {1, 5, 36, 700, 2500};
    static uint64_t full[20000];

    for (size_t s = 0; s < 4; s++) {
        struct task_filter f = all();
        f.sort = sorts[s];
        for (int variant = 0; variant < 3; variant++) {
            f.statuses = variant ? TASK_BIT(TASK_DONE) | TASK_BIT(TASK_PENDING) : 0;
            f.tag_glob = variant == 2 ? "*.3" : NULL;
            f.limit = 0;
            size_t n = list(&f);
            assert_int_equal(
                n,
                variant == 0
                    ? (int64_t)all_tasks
                    : number(
                          db,
                          "SELECT COUNT(*) FROM dq_task WHERE status IN (0, 1) AND tag LIKE '%s'",
                          variant == 2 ? "tag.3" : "%"));
            assert_order(sorts[s]);
            memcpy(full, seen.ids, n * sizeof *full);
            for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
                f.limit = limits[l];
                assert_int_equal(list(&f), limits[l] < n ? limits[l] : n);
                assert_memory_equal(seen.ids, full, seen.count * sizeof *full);
            }
        }
    }
}

static void the_order_is_total_whatever_the_limit(void **state)
{
    (void)state;
    fill(3000);
    check_orders(3000);
}

/* As a change does, which takes the first ones. */
static void a_limit_bounds_the_rows_that_are_read_for_an_error(void **state)
{
    struct task_filter f = all();
    int64_t cost[2];
    (void)state;
    fill_tags(9000, 1);
    run(db, "UPDATE dq_task SET error_stack = 'timeout'");
    f.whole = true;
    f.error_glob = "*timeout*";
    for (size_t i = 0; i < 2; i++) {
        const int64_t before = reads(db);
        f.statuses = TASK_BIT(TASK_FAILED);
        f.limit = i ? 10 : 0;
        assert_int_equal(list(&f), i ? 10 : 1800);
        cost[i] = reads(db) - before;
    }
    assert_true(cost[1] < cost[0] / 3);
}

/* Each of them would be a range to be read, and a hundred ranges a statement. */
static void very_many_tags_cost_few_statements(void **state)
{
    const struct task_filter_bound now = {true, INT64_C(1900000000000)};
    struct task_filter_search search = {.most = 100000};
    struct task_filter f = all();
    (void)state;
    fill_tags(9000, 8999);
    int64_t before = session_status(db, "= 'Questions'");
    f.limit = 20;
    assert_int_equal(list(&f), 20);
    assert_in_range(session_status(db, "= 'Questions'") - before, 1, 8);
    check_orders(9000);
    run(db,
        "UPDATE dq_task SET expected_time = '2040-01-01', error_stack = 'odd' WHERE id %% 7 = 0");
    int64_t odd = number(db, "SELECT COUNT(*) FROM dq_task WHERE error_stack = 'odd'");
    f = all();
    f.since[TASK_FILTER_DUE] = now;
    assert_int_equal(list(&f), odd);
    f = all();
    f.error_glob = "o?d";
    assert_int_equal(list(&f), odd);
    f.search = &search;
    assert_int_equal(list(&f), odd);
    f.tag_glob = "tag*";
    f.statuses = TASK_BIT(TASK_PENDING) | TASK_BIT(TASK_FAILED);
    assert_int_equal(
        list(&f),
        number(db, "SELECT COUNT(*) FROM dq_task WHERE error_stack = 'odd' AND status IN (0, 2)"));
}

static void filters_select_what_they_say(void **state)
{
    struct task_filter f = all();
    uint64_t ids[1200];
    int64_t now_at;
    (void)state;
    fill(1000);
    run(db, "UPDATE dq_task SET task_key = CONCAT('k', id %% 10)");
    ok(db_now(db, &now_at, &err));

    f.tag_glob = "tag.3";
    assert_int_equal(list(&f), number(db, "SELECT COUNT(*) FROM dq_task WHERE tag = 'tag.3'"));
    f.tag_glob = "tag.?";
    assert_int_equal(list(&f), 1000);
    f.tag_glob = "t*4";
    f.statuses = TASK_BIT(TASK_FAILED);
    assert_int_equal(list(&f),
                     number(db, "SELECT COUNT(*) FROM dq_task WHERE tag = 'tag.4' AND status = 2"));
    f.tag_glob = "absent";
    assert_int_equal(list(&f), 0);

    f = all();
    f.before[TASK_FILTER_DUE] = (struct task_filter_bound){true, now_at};
    size_t before = list(&f);
    assert_int_equal(
        before, number(db,
                       "SELECT COUNT(*) FROM dq_task WHERE expected_time < FROM_UNIXTIME(%" PRId64
                       " / 1000.0)"
                       " - INTERVAL TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW()) SECOND",
                       now_at));
    f = all();
    f.since[TASK_FILTER_DUE] = (struct task_filter_bound){true, now_at};
    f.sort = SORT_ID;
    assert_int_equal(list(&f), 1000 - before);

    f = all();
    f.key = "k3";
    assert_int_equal(list(&f), 100);
    assert_order(SORT_EXPECTED);
    f.statuses = TASK_BIT(TASK_DONE);
    f.limit = 3;
    assert_int_equal(
        list(&f),
        number(db, "SELECT LEAST(3, COUNT(*)) FROM dq_task WHERE task_key = 'k3' AND status = 1"));

    f = all();
    f.since[TASK_FILTER_CREATED] = (struct task_filter_bound){true, now_at - 100000};
    assert_in_range(list(&f), 95, 105);
    f.limit = 10;
    f.tag_glob = "tag.1";
    assert_int_equal(list(&f), 10);

    f = all();
    for (size_t i = 0; i < 1200; i++)
        ids[i] = (uint64_t)number(db, "SELECT MIN(id) FROM dq_task") + 1199 - i;
    f.ids = ids;
    f.id_count = 1200;
    assert_int_equal(list(&f), 1000);
    assert_order(SORT_EXPECTED);
    f.sort = SORT_ID_DESC;
    f.limit = 20;
    f.statuses = TASK_BIT(TASK_PENDING);
    assert_int_equal(list(&f), 20);
    assert_order(SORT_ID_DESC);
    f.id_count = 0;
    assert_int_equal(list(&f), 0);
}

static void the_caller_can_stop(void **state)
{
    struct task_filter f = all();
    (void)state;
    fill(100);
    seen.count = 0;
    seen.stop_after = 13;
    assert_int_equal(task_list(db, &f, false, note, &seen, &err), 7);
    assert_int_equal(seen.count, 13);
}

static int has_body(const struct task *t, void *arg)
{
    *(bool *)arg = t->body;
    return t->body && (t->body_size != 4 || memcmp(t->body, "body", 4) || t->output);
}

static void bodies_come_on_request(void **state)
{
    struct task_filter f = all();
    bool body;
    (void)state;
    fill(100);
    ok(task_list(db, &f, false, has_body, &body, &err));
    assert_false(body);
    assert_int_equal(task_list(db, &f, true, has_body, &body, &err), 0);
    assert_true(body);
}

/* The one who lists changes what is still to come: each task is shown at most once. */
static int mover(const struct task *t, void *arg)
{
    struct seen *s = arg;
    s->at[s->count] = t->expected_at;
    s->ids[s->count++] = t->id;
    if (s->count % 100 == 0)
        run(db, "UPDATE dq_task SET status = (status + 1) %% 5 WHERE id %% 3 = 0");
    return 0;
}

static void nothing_is_shown_twice_while_tasks_move(void **state)
{
    struct task_filter f = all();
    (void)state;
    fill(3000);
    seen.count = 0;
    ok(task_list(db, &f, false, mover, &seen, &err));
    assert_in_range(seen.count, 2000, 3000);
    assert_order(SORT_EXPECTED);
}

static atomic_bool listed;

static void *change_states(void *arg)
{
    while (!listed)
        run(arg, "UPDATE dq_task SET status = (status + 1) %% 7 WHERE tag = 'b.only'");
    return NULL;
}

/* Each time it is the only task of its tag in that state. The others make more ranges than one
 * statement reads. */
static void a_task_that_changes_its_state_is_in_every_whole_list(void **state)
{
    static const char *const globs[] = {"b.*", "*"};
    struct db *other = harness_db();
    pthread_t thread;
    (void)state;
    fill_tags(70, 70);
    add("b.only", NULL, 0);
    listed = false;
    assert_int_equal(pthread_create(&thread, NULL, change_states, other), 0);
    for (int i = 0; i < 100; i++) {
        struct task_filter f = {.tag_glob = globs[i % 2]};
        struct targets x = {0};
        ok(targets_list(db, &f, TASK_ANY, NULL, NULL, &x, &err));
        assert_int_equal(x.count, i % 2 ? 71 : 1);
        targets_done(&x);
    }
    listed = true;
    pthread_join(thread, NULL);
    db_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_order_is_total_whatever_the_limit, harness_setup),
        cmocka_unit_test_setup(a_limit_bounds_the_rows_that_are_read_for_an_error, harness_setup),
        cmocka_unit_test_setup(very_many_tags_cost_few_statements, harness_setup),
        cmocka_unit_test_setup(filters_select_what_they_say, harness_setup),
        cmocka_unit_test_setup(the_caller_can_stop, harness_setup),
        cmocka_unit_test_setup(bodies_come_on_request, harness_setup),
        cmocka_unit_test_setup(nothing_is_shown_twice_while_tasks_move, harness_setup),
        cmocka_unit_test_setup(a_task_that_changes_its_state_is_in_every_whole_list, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
