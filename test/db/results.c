/* In which order a poller records results, some of which take long. */
#include "harness.h"
#include "poller/settle.h"

#include <inttypes.h>

static const struct conf conf = {.dqd = {.lease_ms = 10000, .heartbeat_ms = 1000}};
static struct context ctx = {.conf = &conf};

static int setup(void **state)
{
    ctx.db = db;
    ctx.owner = owner('a');
    return harness_setup(state);
}

/* A claim of a task of the tag, whose result waits. */
static void queue(struct settle_results *q, struct tag_state *t)
{
    add(t->name, NULL, -1000);
    struct task_array won = claim(db, &ctx.owner, t->name, 1);
    assert_int_equal(won.count, 1);
    const struct settlement s = result(&won.items[0], TASK_SUCCEED, OUTCOME_DONE);
    settle_queue(q, &s, t, when_steady_us());
    task_array_done(&won);
}

static int64_t done(const char *tag)
{
    return number(db, "SELECT COUNT(*) FROM dq_task WHERE status = 1 AND tag = '%s'", tag);
}

/* Results of both were recorded by one statement, which took long because of one of them: the other
 * one does not wait for all of that one's. */
static void tags_of_which_one_takes_long_are_recorded_in_turn(void **state)
{
    enum { N = 4 };
    struct look look = {0};
    struct tag_set tags;
    struct holds holds = {.ctx = &ctx};
    struct minute minute;
    struct settle_results q;
    bool back;
    (void)state;
    tags_init(&tags, &look, NULL, mem_zero(1, sizeof(struct handlers)));
    minute_init(&minute, &ctx);
    settle_init(&q, &ctx, &minute, NULL, &holds);
    struct tag_state *slow = tags_named(&tags, "slow"), *quick = tags_named(&tags, "quick");
    for (int i = 0; i < N; i++)
        queue(&q, slow);
    queue(&q, quick);
    look_cost_saw(&slow->look.results, 1, WHEN_MINUTE * 1000);
    look_cost_saw(&quick->look.results, 1, WHEN_MINUTE * 1000);
    ok(settle_flush(&q, &back, &err));
    ok(settle_flush(&q, &back, &err));
    assert_int_equal(done("slow"), 1);
    assert_int_equal(done("quick"), 1);
    while (settle_count(&q))
        ok(settle_flush(&q, &back, &err));
    assert_int_equal(done("slow"), N);
    settle_free(&q);
    minute_free(&minute);
    tags_free(&tags);
    look_free(&look);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tags_of_which_one_takes_long_are_recorded_in_turn, setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
