/* Outputs and bodies that are long against max_allowed_packet. */
#include "harness.h"

#include <inttypes.h>
#include <stdlib.h>

static void large_outputs_are_cut_into_statements(void **state)
{
    enum { N = 12 };
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, N);
    struct settlement s[N];
    bool applied[N];
    char *output = mem_alloc(300000), *error = mem_zero(1, 100001), *within = mem_zero(1, 100001);
    (void)state;
    memset(output, '\'', 300000);
    memset(error, 'e', 100000);
    memset(within, 'e', 100000);
    memcpy(error + 59998, "\xc3\xa4", 2); /* the end of a character, and the middle of one */
    memcpy(within + 59999, "\xc3\xa4", 2);
    for (int i = 0; i < N; i++) {
        s[i] = result(&won.items[i], i % 2 ? TASK_SUCCEED : TASK_GIVE_UP,
                      i % 2 ? OUTCOME_DONE : OUTCOME_EXIT);
        s[i].output = output;
        s[i].output_size = 300000;
        s[i].error = i % 2 ? NULL : i == 2 ? within : error;
    }
    ok(settle_store_settle(db, &a, s, N, false, false, applied, NULL, &err));
    for (int i = 0; i < N; i++)
        assert_true(applied[i]);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_task WHERE LENGTH(output) = 300000"), N);
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_attempt WHERE LENGTH(output) = 300000 AND LENGTH(error_stack) = 60000"
            " AND error_stack LIKE '%%e\xc3\xa4'"),
        N / 2 - 1);
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_attempt WHERE LENGTH(error_stack) = 59999 AND error_stack LIKE '%%e'"),
        1);
    free(output);
    free(within);
    free(error);
    task_array_done(&won);
}

enum { COUNT = 10 };
static const size_t sizes[COUNT] = {1 << 20, 16384,  16385, 100000, 1 << 20,
                                    8191,    700000, 0,     50000,  1 << 20};
static unsigned char bytes[1 << 20]; /* an output of any bytes */
static char quotes[90001];           /* a text that is twice as long as a literal */

static void fill_texts(void)
{
    memset(quotes, '\'', sizeof quotes - 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i == 0 ? '[' : (unsigned char)(i * 7919 >> 7);
}

/* The output of a task, whole or, if it did not fit, its end behind a line that says so. */
static void check_output(const struct task *t, size_t size, size_t limit)
{
    if (size + 5000 < limit) {
        assert_int_equal(t->output_size, size);
        assert_memory_equal(t->output, bytes, size);
        return;
    }
    const char *rest = memchr(t->output, '\n', t->output_size);
    assert_in_range(t->output_size, limit - 5000, limit);
    assert_non_null(rest);
    assert_non_null(strstr((const char *)t->output, "max_allowed_packet"));
    size_t kept = t->output_size - (size_t)(rest + 1 - (const char *)t->output);
    assert_in_range(kept, limit - 5000, limit);
    assert_memory_equal(rest + 1, bytes + size - kept, kept);
}

static void settle_outputs_of_many_sizes(struct db *d, size_t limit)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, COUNT);
    struct settlement s[COUNT];
    bool applied[COUNT];
    struct task t;

    for (size_t i = 0; i < COUNT; i++) {
        s[i] = result(&won.items[i], i % 2 ? TASK_SUCCEED : TASK_GIVE_UP,
                      i % 2 ? OUTCOME_DONE : OUTCOME_EXIT);
        s[i].output = bytes;
        s[i].output_size = sizes[i];
        s[i].error = i % 2 ? NULL : quotes;
    }
    ok(settle_store_settle(d, &a, s, COUNT, true, false, applied, NULL, &err));
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(applied[i]);
        ok(task_get(db, s[i].id, &t, &err));
        assert_int_equal(t.status, i % 2 ? TASK_DONE : TASK_FAILED);
        assert_true(i % 2 || strlen(t.error) == 60000);
        check_output(&t, sizes[i], limit);
        task_done(&t);
    }
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_task t JOIN dq_attempt a ON a.task_id = t.id AND a.output <=> t.output"
            " AND a.error_stack <=> t.error_stack"),
        COUNT);
    task_array_done(&won);
}

/* Outputs are short enough for literals here. */
static void settle_long_errors(struct db *d)
{
    struct claim_owner a = owner('a');
    struct task_array won = claimed(&a, COUNT);
    struct settlement s[COUNT];
    bool applied[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        s[i] = result(&won.items[i], TASK_GIVE_UP, OUTCOME_EXIT);
        s[i].output = s[i].error = quotes;
        s[i].output_size = 1024;
    }
    ok(settle_store_settle(d, &a, s, COUNT, true, false, applied, NULL, &err));
    assert_int_equal(
        number(
            db,
            "SELECT COUNT(*) FROM dq_attempt WHERE LENGTH(error_stack) = 60000 AND LENGTH(output) = 1024"),
        COUNT);
    task_array_done(&won);
}

/* Outputs of any bytes, as long as output_limit allows, alone and together, at packet limits from
 * the least that dqd takes. */
static void results_fit_into_small_packets(void **state)
{
    static const size_t limits[] = {512 << 10, 1 << 20, 2 << 20, 16 << 20};
    size_t packet;

    fill_texts();
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        harness_setup(state);
        as_root("SET GLOBAL max_allowed_packet = %zu", limits[i]);
        struct db *d = harness_db();
        ok(settlement_max_packet(d, &packet, &err));
        int64_t connection = number(d, "SELECT CONNECTION_ID()");
        settle_outputs_of_many_sizes(d, limits[i]);
        settle_long_errors(d);
        assert_int_equal(number(d, "SELECT CONNECTION_ID()"), connection);
        db_free(d);
    }
    as_root("SET GLOBAL max_allowed_packet = %d", 16 << 20);
}

static void a_packet_limit_below_the_least_is_refused(void **state)
{
    size_t packet;
    (void)state;
    as_root("SET GLOBAL max_allowed_packet = 262144");
    struct db *d = harness_db();
    assert_int_equal(settlement_max_packet(d, &packet, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "max_allowed_packet"));
    db_free(d);
    as_root("SET GLOBAL max_allowed_packet = %d", 16 << 20);
}

/* What was stored when the limit was higher is still handed out. */
static void bodies_longer_than_a_packet_are_loaded(void **state)
{
    struct claim_owner a = owner('a');
    size_t size = 3 << 20, loaded;
    struct task_added added;
    char *body = mem_zero(1, size);
    struct task_new t = {
        .tag = "t", .body = body, .body_size = size, .expected_at = TASK_TIME_NONE};
    (void)state;
    body[size - 1] = 'z';
    ok(task_add(db, &t, KEY_ERROR, &added, &err));
    as_root("SET GLOBAL max_allowed_packet = 524288");
    struct db *d = harness_db();
    struct task_array won = claim(d, &a, "t", 1);
    assert_int_equal(won.count, 1);
    struct task *tasks[] = {&won.items[0]};
    ok(body_store_load(d, tasks, 1, 16 << 20, &loaded, &err));
    assert_int_equal(loaded, 1);
    assert_int_equal(won.items[0].body_size, size);
    assert_memory_equal(won.items[0].body, body, size);
    as_root("SET GLOBAL max_allowed_packet = %d", 16 << 20);
    task_array_done(&won);
    db_free(d);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(large_outputs_are_cut_into_statements, harness_setup),
        cmocka_unit_test_setup(results_fit_into_small_packets, harness_setup),
        cmocka_unit_test_setup(a_packet_limit_below_the_least_is_refused, harness_setup),
        cmocka_unit_test_setup(bodies_longer_than_a_packet_are_loaded, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
