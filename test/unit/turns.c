/*
 * turns.c - with any number of slots, each tag that has due tasks and may start one gets its turn:
 * look.c and a model of the runner, with random tags.
 */
#include "conf/handlers.h"
#include "poller/look.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <cmocka.h>

#define TAGS_MOST 24
#define SLOTS_MOST 12
/* One that a tag waits for, and one that it meets on the way; half as much for chance. */
#define TURNS_MOST 3
#define RUNS 300
#define RUN_US INT64_C(20000000)
#define STEP_US 500             /* of the database, to answer */
#define TURN_US INT64_C(100000) /* in a slot: a task, or as many as take so long */

struct model {
    struct look look;
    struct dbclock clock;
    struct look_tag tags[TAGS_MOST];
    int64_t takes_us[TAGS_MOST];
    int64_t end_us[SLOTS_MOST];
    size_t of[SLOTS_MOST];                        /* tag, of each slot in use */
    size_t count, slots, turn, starts[TAGS_MOST]; /* since the run began */
    size_t before[TAGS_MOST][TAGS_MOST];          /* starts of the others when it began to wait */
    int64_t now_us;
};

static size_t below(size_t n)
{
    return (size_t)rand() % n;
}

static void begin(struct model *m, bool weighted)
{
    static const int64_t takes_ms[] = {1, 5, 30, 100, 500, 2000};
    static const uint32_t weights[] = {10, 10, 10, 5, 20, 30};

    *m = (struct model){.now_us = 1000000,
                        .count = 2 + below(TAGS_MOST - 1),
                        .slots = 1 + below(below(2) ? 3 : SLOTS_MOST)};
    const struct look_settings set = {.poll_us = {200000, 200000},
                                      .hold_us = 200000,
                                      .lease_us = 60000000,
                                      .slots = (uint32_t)m->slots,
                                      .claim_batch = 500};
    dbclock_sample(&m->clock, m->now_us, m->now_us, 0);
    look_init(&m->look, &set, &m->clock);
    for (size_t i = 0; i < m->count; i++) {
        m->tags[i] = (struct look_tag){1, 1 + (uint32_t)below(8), weights[weighted ? below(6) : 0],
                                       .next_at = TASK_TIME_NONE};
        m->takes_us[i] = takes_ms[below(6)] * 1000;
        look_add_tag(&m->look, &m->tags[i]);
    }
}

/* A backlog of each tag: a claim brings all that it wants. */
static void answer(struct model *m, const struct look_step *s)
{
    const int64_t sent_us = m->now_us;
    const int64_t next_at[TASK_LEVELS] = {0, TASK_TIME_NONE, TASK_TIME_NONE};

    m->now_us += STEP_US;
    if (s->what == LOOK_AT_ALL) {
        look_saw_all(&m->look, sent_us, m->now_us);
        for (size_t i = 0; i < m->count; i++)
            look_tag_saw(&m->tags[i], TASK_NORMAL, 0, look_at(&m->look, m->now_us));
    } else if (s->what == LOOK_AT_TAG) {
        look_saw_tag(&m->look, s->tag, next_at, sent_us, m->now_us);
    } else if (s->what == LOOK_CLAIM) {
        const struct look_claim c = {.seen = s->count,
                                     .won = s->count,
                                     .won_of = {s->count},
                                     .next_at = TASK_TIME_NONE,
                                     .answered_us = m->now_us};
        look_claimed(&m->look, s->tag, &c, m->now_us);
        for (size_t i = 0; i < s->count; i++)
            look_job_queued(&m->look, s->tag);
    }
}

/* As queue_pick of the runner. */
static void start_some(struct model *m)
{
    const size_t kept = (size_t)handlers_slots_kept((int)m->slots);

    for (size_t passed = 0; passed < m->count && look_running(&m->look) < m->slots; m->turn++) {
        const size_t i = m->turn % m->count;
        struct look_tag *t = &m->tags[i];
        size_t slot = 0;

        passed++;
        if (!t->queued || t->running >= t->max_running ||
            (t->running && m->slots - look_running(&m->look) <= kept))
            continue;
        while (m->end_us[slot])
            slot++;
        m->end_us[slot] = m->now_us + m->takes_us[i];
        m->of[slot] = i;
        look_job_started(&m->look, t);
        m->starts[i]++;
        passed = 0;
    }
}

static void end_some(struct model *m)
{
    for (size_t slot = 0; slot < m->slots; slot++) {
        const size_t i = m->of[slot];

        if (!m->end_us[slot] || m->end_us[slot] > m->now_us)
            continue;
        look_job_gone(&m->look, &m->tags[i], true);
        memcpy(m->before[i], m->starts, sizeof m->starts);
        look_tag_took(&m->tags[i], m->takes_us[i]);
        m->end_us[slot] = 0;
    }
}

static int64_t next_us(const struct model *m)
{
    int64_t next = look_when(&m->look);

    for (size_t slot = 0; slot < m->slots; slot++)
        if (m->end_us[slot])
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
    const unsigned runs = getenv("DQ_TEST_SHORT") ? RUNS / 30 : RUNS; /* memcheck is slow */

    (void)state;
    for (unsigned run = 0; run < runs; run++) {
        struct model m;
        double most = 0;

        srand(run);
        begin(&m, run % 2);
        for (int64_t end_us = m.now_us + RUN_US; m.now_us < end_us; m.now_us = next_us(&m)) {
            end_some(&m);
            start_some(&m);
            if (look_when(&m.look) <= m.now_us)
                for (struct look_step s; (s = look_next(&m.look, m.now_us)).what != LOOK_END;)
                    answer(&m, &s);
            start_some(&m);
            most = MAX(most, turns_of_others(&m));
        }
        look_free(&m.look);
        if (most > TURNS_MOST)
            fail_msg("run %u: %zu slots, %zu tags: %.1f turns of others", run, m.slots, m.count,
                     most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_tag_gets_its_turn)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
