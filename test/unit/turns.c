/*
 * turns.c - with any number of slots, each tag that has due tasks and may start one gets its turn,
 * and those of more weight get more of them: look.c and the runner's queue.c.
 */
#include "conf/handlers.h"
#include "poller/look.h"
#include "runner/job.h"
#include "runner/queue.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <cmocka.h>

#define TAGS_MOST 26
#define SLOTS_MOST 32
#define RANDOM_TAGS 24
#define RANDOM_SLOTS 12
/* One that a tag waits for, and one that it meets on the way; half as much for chance. */
#define TURNS_MOST 3
#define RUNS 300
#define RUN_US INT64_C(20000000)
#define WEIGHTS_RUN_US INT64_C(200000000)
#define STEP_US 500             /* of the database, to answer */
#define BUSY_STEP_US 30000      /* on a busy host, and then dqd reads what the runner reports */
#define TURN_US INT64_C(100000) /* in a slot: a task, or as many as take so long */

struct model {
    struct look look;
    struct dbclock clock;
    struct look_tag tags[TAGS_MOST];
    int64_t takes_us[TAGS_MOST];
    char names[TAGS_MOST][8];
    struct handler handlers[TAGS_MOST];
    struct plan plans[TAGS_MOST];
    struct table table;
    struct queue queue;
    int64_t end_us[SLOTS_MOST];
    struct job *jobs[SLOTS_MOST];           /* of each slot in use */
    size_t count, slots, starts[TAGS_MOST]; /* since the run began */
    unsigned jitter;                        /* of tasks, percent */
    bool busy;                              /* the host */
    size_t limit;        /* so many tasks of the tags under a limit run at most; 0: any number */
    int64_t limit_us;    /* or one is started each so often */
    int64_t limit_at_us; /* then: the next one */
    size_t before[TAGS_MOST][TAGS_MOST]; /* starts of the others when it began to wait */
    int64_t now_us;
};

static size_t below(size_t n)
{
    return (size_t)rand() % n;
}

static const struct contract contract = {.verdicts = false};

static void begin(struct model *m, size_t slots)
{
    *m = (struct model){.now_us = 1000000, .slots = slots, .queue.vouched_us = INT64_MAX};
    const struct look_settings set = {.poll_us = {200000, 200000},
                                      .hold_us = 200000,
                                      .lease_us = 60000000,
                                      .slots = (uint32_t)m->slots,
                                      .claim_batch = 500};
    dbclock_sample(&m->clock, m->now_us, m->now_us, 0);
    look_init(&m->look, &set, &m->clock);
}

static void add_tag(struct model *m, int max_running, int weight, int64_t takes_us)
{
    const size_t i = m->count++;

    snprintf(m->names[i], sizeof m->names[i], "%zu", i);
    m->tags[i] =
        (struct look_tag){1, (uint32_t)max_running, (uint32_t)weight, .next_at = TASK_TIME_NONE};
    m->handlers[i] = (struct handler){.max_running = max_running, .weight = weight};
    m->plans[i] = (struct plan){.handler = &m->handlers[i], .contract = &contract};
    m->takes_us[i] = takes_us;
    look_add_tag(&m->look, &m->tags[i]);
    m->table.weighted = m->look.turn.weighted;
}

static void begin_random(struct model *m, bool weighted)
{
    static const int64_t takes_ms[] = {1, 5, 30, 100, 500, 2000};
    static const int weights[] = {10, 10, 10, 5, 20, 30};
    const size_t count = 2 + below(RANDOM_TAGS - 1);

    begin(m, 1 + below(below(2) ? 3 : RANDOM_SLOTS));
    for (size_t i = 0; i < count; i++) {
        const int max_running = 1 + (int)below(8), weight = weights[weighted ? below(6) : 0];
        add_tag(m, max_running, weight, takes_ms[below(6)] * 1000);
    }
    m->busy = below(2);
}

/* What the limit allows of so many; 0: it says until when. */
static size_t allowed(struct model *m, size_t count, struct look_claim *c)
{
    size_t live = 0;

    for (size_t i = 0; m->limit && i < m->count; i++)
        live += m->tags[i].limit ? m->tags[i].queued + m->tags[i].running : 0;
    if (m->limit) {
        count = MIN(count, m->limit - live);
        c->held = count ? LIMIT_OPEN : LIMIT_RUNNING;
        c->limit_at = INT64_MAX;
    } else if (m->limit_us) {
        count = m->now_us >= m->limit_at_us;
        m->limit_at_us += count ? m->limit_us : 0;
        c->held = LIMIT_RATE;
        c->limit_at = look_at(&m->look, m->limit_at_us);
        c->paced = true;
    }
    return count;
}

/* A backlog of each tag: a claim brings all that it wants, and its limit allows. */
static void answer(struct model *m, const struct look_step *s)
{
    const int64_t sent_us = m->now_us;
    const int64_t next_at[TASK_LEVELS] = {0, TASK_TIME_NONE, TASK_TIME_NONE};

    m->now_us += m->busy ? BUSY_STEP_US : STEP_US;
    if (s->what == LOOK_AT_ALL) {
        look_saw_all(&m->look, sent_us, m->now_us);
        for (size_t i = 0; i < m->count; i++)
            look_tag_saw(&m->tags[i], TASK_NORMAL, 0, look_at(&m->look, m->now_us));
    } else if (s->what == LOOK_AT_TAG) {
        look_saw_tag(&m->look, s->tag, next_at, sent_us, m->now_us);
    } else if (s->what == LOOK_CLAIM) {
        struct look_claim c = {.next_at = TASK_TIME_NONE, .answered_us = m->now_us};

        c.seen = c.won = c.won_of[0] = s->tag->limit ? allowed(m, s->count, &c) : s->count;
        look_claimed(&m->look, s->tag, &c, m->now_us);
        for (size_t i = 0; i < c.won; i++) {
            const size_t tag = (size_t)(s->tag - m->tags);
            struct job *j = calloc(1, sizeof *j);

            j->table = &m->table;
            j->plan = &m->plans[tag];
            j->order.handler = (uint32_t)tag;
            queue_add(&m->queue, j, m->names[tag]);
            look_job_queued(&m->look, s->tag);
        }
    }
}

static void start_some(struct model *m)
{
    const int slots = (int)m->slots;
    struct job *j;

    while ((j = queue_pick(&m->queue, slots - (int)look_running(&m->look), slots, m->now_us))) {
        const size_t i = j->order.handler;
        size_t slot = 0;

        while (m->jobs[slot])
            slot++;
        queue_take(&m->queue, j);
        queue_started(&m->queue, j->lane, slots - (int)look_running(&m->look), slots);
        m->jobs[slot] = j;
        m->end_us[slot] = m->now_us + m->takes_us[i] * (100 + (int64_t)below(m->jitter + 1)) / 100;
        look_job_started(&m->look, &m->tags[i]);
        m->starts[i]++;
    }
}

static void end_some(struct model *m)
{
    for (size_t slot = 0; slot < m->slots; slot++) {
        struct job *j = m->jobs[slot];

        if (!j || m->end_us[slot] > m->now_us)
            continue;
        const size_t i = j->order.handler;
        look_job_gone(&m->look, &m->tags[i], true);
        memcpy(m->before[i], m->starts, sizeof m->starts);
        look_tag_took(&m->tags[i], m->takes_us[i]);
        queue_ended(&m->queue, j->lane);
        queue_leave(&m->queue, j);
        free(j);
        m->jobs[slot] = NULL;
        look_settled(&m->look, false, false);
    }
}

static void step(struct model *m)
{
    end_some(m);
    start_some(m);
    if (look_when(&m->look) <= m->now_us)
        for (struct look_step s; (s = look_next(&m->look, m->now_us)).what != LOOK_END;) {
            answer(m, &s);
            if (m->busy) {
                end_some(m);
                start_some(m);
            }
        }
    start_some(m);
}

static void end(struct model *m)
{
    struct job *j;

    while ((j = queue_any(&m->queue))) {
        queue_take(&m->queue, j);
        queue_leave(&m->queue, j);
        free(j);
    }
    for (size_t slot = 0; slot < m->slots; slot++)
        if (m->jobs[slot]) {
            queue_leave(&m->queue, m->jobs[slot]);
            free(m->jobs[slot]);
        }
    look_free(&m->look);
}

static int64_t next_us(const struct model *m)
{
    int64_t next = look_when(&m->look);

    for (size_t slot = 0; slot < m->slots; slot++)
        if (m->jobs[slot])
            next = MIN(next, m->end_us[slot]);
    return MAX(next, m->now_us + 100);
}

/* Of all slots. By weights, a tag makes up for those that the other one had for longer turns. */
static double turns_at_once(const struct model *m, size_t i, size_t j)
{
    const int64_t turn_us = MAX(m->takes_us[j], TURN_US);
    const double part = (double)m->tags[j].weight / m->tags[i].weight;

    if (!m->look.turn.weighted)
        return (double)m->slots;
    return (double)m->slots * MAX(1, part) * MAX(1, (double)m->takes_us[i] / (double)turn_us);
}

/* How many such turns others have had since a tag that could run has run nothing, at most. */
static double turns_of_others(const struct model *m)
{
    double most = 0;

    for (size_t i = 0; i < m->count; i++)
        for (size_t j = 0; j < m->count && !m->tags[i].running; j++) {
            const double had =
                (double)(m->starts[j] - m->before[i][j]) / (double)(1 + TURN_US / m->takes_us[j]);
            if (j != i)
                most = MAX(most, had / turns_at_once(m, i, j));
        }
    return most;
}

static void each_tag_gets_its_turn(void **state)
{
    const unsigned runs = getenv("DQ_TEST_SHORT") ? RUNS / 150 : RUNS; /* memcheck is slow */

    (void)state;
    for (unsigned run = 0; run < runs; run++) {
        struct model m;
        double most = 0;

        srand(run);
        begin_random(&m, run % 2);
        for (int64_t end_us = m.now_us + RUN_US; m.now_us < end_us; m.now_us = next_us(&m)) {
            step(&m);
            most = MAX(most, turns_of_others(&m));
        }
        end(&m);
        if (most > TURNS_MOST)
            fail_msg("run %u: %zu slots, %zu tags: %.1f turns of others", run, m.slots, m.count,
                     most);
    }
}

/* Tags of weight 10, and one of another: how many times as many starts that one gets. */
enum way { AS_IS, WITH_JITTER /* of 20 percent */, ONE_MORE_HANGS, BUSY_HOST, WAYS };
static double ratio(size_t slots, size_t tags, int max_running, int weight, int ms, enum way way)
{
    struct model m;
    size_t others = 0;

    srand(1);
    begin(&m, slots);
    m.jitter = way == WITH_JITTER ? 20 : 0;
    m.busy = way == BUSY_HOST;
    for (size_t i = 0; i <= tags; i++)
        add_tag(&m, max_running, i == tags ? weight : 10, ms * INT64_C(1000));
    if (way == ONE_MORE_HANGS) {
        add_tag(&m, 1, 10, 1000);
        m.plans[tags + 1].hanging = true;
    }
    for (int64_t end_us = m.now_us + WEIGHTS_RUN_US; m.now_us < end_us; m.now_us = next_us(&m))
        step(&m);
    for (size_t i = 0; i < tags; i++)
        others += m.starts[i];
    end(&m);
    return (double)(m.starts[tags] * tags) / (double)others;
}

static void starts_follow_weights(void **state)
{
    static const struct {
        size_t slots, tags;
        int max_running, weight, ms;
        double expected;
    } cases[] = {
        {8, 6, 8, 100, 1000, 10},   {4, 6, 8, 100, 1000, 10},    {3, 6, 8, 100, 1000, 10},
        {1, 6, 8, 100, 1000, 10},   {2, 6, 8, 100, 1000, 6}, /* it has one, and they have the one
                                                                that is kept */
        {16, 6, 16, 100, 1000, 10}, {32, 24, 32, 100, 2000, 10}, {8, 24, 8, 100, 1000, 10},
        {8, 24, 8, 30, 1000, 3},    {8, 12, 8, 20, 1000, 2},     {8, 2, 8, 30, 1000, 3},
        {4, 2, 8, 30, 1000, 3},     {8, 1, 8, 30, 1000, 3},      {8, 6, 8, 100, 300, 10},
        {8, 6, 8, 100, 30, 7}, /* the runner divides what was claimed ahead beside the kept ones */
        {8, 6, 8, 100, 5, 7},
    };

    const size_t each = getenv("DQ_TEST_SHORT") ? 24 : 1;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += each)
        for (unsigned way = 0; way < WAYS; way++) {
            const double is = ratio(cases[i].slots, cases[i].tags, cases[i].max_running,
                                    cases[i].weight, cases[i].ms, way);

            if (getenv("DQ_TEST_SHOW"))
                print_message("%zu slots, %zu tags, %d ms, way %u: %.2f of %.0f\n", cases[i].slots,
                              cases[i].tags, cases[i].ms, way, is, cases[i].expected);
            const bool busy = way == BUSY_HOST;
            if (is < (busy ? 0.75 : 0.9) * cases[i].expected ||
                is > (busy ? 1.55 : 1.15) * cases[i].expected)
                fail_msg("%zu slots, %zu tags, %d ms, way %u: %.2f of %.0f", cases[i].slots,
                         cases[i].tags, cases[i].ms, way, is, cases[i].expected);
        }
}

/* Tags that have shared the kept slot have had more than the one that could not. If it is taken for
 * long, they wait for their turn, but not until that one has made up for all. */
static void tags_that_lose_the_kept_slot_get_their_turn(void **state)
{
    struct model m;
    int64_t at_us[2], waited_us = 0;
    size_t before[2] = {0};

    (void)state;
    begin(&m, 2);
    add_tag(&m, 1, 10, 1000000);
    add_tag(&m, 1, 10, 1000000);
    add_tag(&m, 8, 100, 1000000);
    for (int64_t end_us = m.now_us + WEIGHTS_RUN_US; m.now_us < end_us; m.now_us = next_us(&m))
        step(&m);
    add_tag(&m, 1, 10, WEIGHTS_RUN_US);
    at_us[0] = at_us[1] = m.now_us;
    for (int64_t end_us = m.now_us + WEIGHTS_RUN_US; m.now_us < end_us; m.now_us = next_us(&m)) {
        step(&m);
        for (size_t i = 0; i < 2; i++) {
            if (m.starts[i] > before[i])
                at_us[i] = m.now_us;
            before[i] = m.starts[i];
            waited_us = MAX(waited_us, m.now_us - at_us[i]);
        }
    }
    end(&m);
    assert_int_equal(m.starts[3], 1);
    assert_in_range(waited_us, 5000000, 40000000); /* 32 s: two turns, and one of each */
}

/* How many times as many starts the luckiest of the tags under the model's limit gets. busy: so
 * many of this weight are under no limit. */
static double luck(struct model *m, size_t under, size_t busy, int weight, int64_t takes_us)
{
    size_t least = SIZE_MAX, most = 0;

    for (size_t i = 0; i < under + busy; i++) {
        add_tag(m, i < under ? 4 : 1, i < under ? 10 : weight, takes_us);
        m->tags[i].limit = i < under;
    }
    for (int64_t end_us = m->now_us + RUN_US; m->now_us < end_us; m->now_us = next_us(m))
        step(m);
    for (size_t i = 0; i < under; i++) {
        least = MIN(least, m->starts[i]);
        most = MAX(most, m->starts[i]);
    }
    end(m);
    return (double)most / (double)MAX(least, 1);
}

/* What others do decides which tag a round begins with; they may do it in time with the limit. */
static void tags_under_one_limit_get_equal_parts(void **state)
{
    static const size_t limits[] = {1, 3, 0, 0};
    static const int64_t limits_us[] = {0, 0, 25000, 200000}, takes_us[] = {5000, 12000, 100000};
    const size_t each = getenv("DQ_TEST_SHORT") ? 183 : 1;

    (void)state;
    for (size_t n = 0; n < 4 * 3 * 4 * 5 * 2; n += each) {
        const size_t limit = n % 4, under = 2 + n / 12 % 4, busy = n / 48 % 5;
        const int64_t us = takes_us[n / 4 % 3];
        const int weight = n < 240 ? 10 : 20;
        struct model m;

        begin(&m, SLOTS_MOST);
        m.limit = limits[limit];
        m.limit_us = limits_us[limit];
        const double is = luck(&m, under, busy, weight, us);
        if (is > 1.1)
            fail_msg("%zu at once, one each %d ms: %zu tags, %zu busy ones of weight %d, %d ms: "
                     "%.2f times as many",
                     limits[limit], (int)(limits_us[limit] / 1000), under, busy, weight,
                     (int)(us / 1000), is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tag_gets_its_turn),
        cmocka_unit_test(starts_follow_weights),
        cmocka_unit_test(tags_that_lose_the_kept_slot_get_their_turn),
        cmocka_unit_test(tags_under_one_limit_get_equal_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
