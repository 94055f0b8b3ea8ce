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

struct queues {
    struct look look;
    struct tag_set tags;
    struct holds holds;
    struct minute minute;
    struct settle_results q;
};

static void begin(struct queues *s)
{
    *s = (struct queues){.holds = {.ctx = &ctx}};
    tags_init(&s->tags, &s->look, NULL, mem_zero(1, sizeof(struct handlers)));
    minute_init(&s->minute, &ctx);
    settle_init(&s->q, &ctx, &s->minute, NULL, &s->holds);
}

static void end(struct queues *s)
{
    settle_free(&s->q);
    minute_free(&s->minute);
    tags_free(&s->tags);
    look_free(&s->look);
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
    struct queues s;
    bool back;
    (void)state;
    begin(&s);
    struct tag_state *slow = tags_named(&s.tags, "slow"), *quick = tags_named(&s.tags, "quick");
    for (int i = 0; i < N; i++)
        queue(&s.q, slow);
    queue(&s.q, quick);
    look_cost_saw(&slow->look.results, 1, WHEN_MINUTE * 1000);
    look_cost_saw(&quick->look.results, 1, WHEN_MINUTE * 1000);
    ok(settle_flush(&s.q, &back, &err));
    ok(settle_flush(&s.q, &back, &err));
    assert_int_equal(done("slow"), 1);
    assert_int_equal(done("quick"), 1);
    while (settle_count(&s.q))
        ok(settle_flush(&s.q, &back, &err));
    assert_int_equal(done("slow"), N);
    end(&s);
}

/* New results of quick tasks come all the time; one could not be recorded at first. */
static void a_result_that_was_kept_back_has_its_turn_beside_a_stream(void **state)
{
    struct queues s;
    bool back;
    (void)state;
    begin(&s);
    struct tag_state *locked = tags_named(&s.tags, "locked"), *quick = tags_named(&s.tags, "quick");
    queue(&s.q, locked);
    struct db *other = harness_db();
    run(other, "BEGIN");
    run(other, "UPDATE dq_task SET pid = 1 WHERE tag = 'locked'");
    ok(settle_flush(&s.q, &back, &err));
    assert_int_equal(settle_count(&s.q), 1);
    run(other, "ROLLBACK");
    for (int i = 0; i < 2000 && !done("locked"); i++) {
        queue(&s.q, quick);
        ok(settle_flush(&s.q, &back, &err));
    }
    assert_int_equal(done("locked"), 1);
    db_free(other);
    end(&s);
}

/* The server refuses those of one tag, but does not say that the row is to blame: both wait. */
static void results_that_were_refused_together_are_tried_apart(void **state)
{
    struct queues s;
    bool back;
    (void)state;
    begin(&s);
    struct tag_state *bad = tags_named(&s.tags, "bad"), *good = tags_named(&s.tags, "good");
    queue(&s.q, bad);
    queue(&s.q, good);
    as_root("CREATE TRIGGER dq_refuses BEFORE UPDATE ON dq_task FOR EACH ROW "
            "IF OLD.tag = 'bad' THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114; END IF");
    assert_true(settle_flush(&s.q, &back, &err) < 0);
    assert_true(settle_refused(&s.q));
    assert_int_equal(bad->look.kept_back + good->look.kept_back, 0);
    for (int i = 0; i < 10000 && !done("good"); i++)
        (void)!settle_flush(&s.q, &back, &err);
    assert_int_equal(done("good"), 1);
    assert_int_equal(settle_count(&s.q), 1);
    as_root("DROP TRIGGER dq_refuses");
    while (settle_count(&s.q))
        ok(settle_flush(&s.q, &back, &err));
    assert_int_equal(done("bad"), 1);
    assert_false(settle_refused(&s.q));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tags_of_which_one_takes_long_are_recorded_in_turn, setup),
        cmocka_unit_test_setup(a_result_that_was_kept_back_has_its_turn_beside_a_stream, setup),
        cmocka_unit_test_setup(results_that_were_refused_together_are_tried_apart, setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
