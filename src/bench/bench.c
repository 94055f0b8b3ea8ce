/*
 * bench.c - the steps of a measurement, one after the other.
 */
#include "bench/bench.h"

#include "base/interrupt.h"
#include "bench/program.h"
#include "bench/rig.h"
#include "bench/spawn.h"
#include "bench/statement.h"

struct bench {
    const struct conf *conf;
    struct scratch_db *scratch;
    struct rig rig;
    struct figure figures[FIGURE_COUNT];
};

/* In this order: a step may use the figures of earlier ones. FIGURE_SETTLE is measured with
 * FIGURE_CLAIM. */
static const struct {
    enum figure_id id;
    int percent; /* of the time */
    const char *what;
} steps[] = {
    {FIGURE_ROUND_TRIP, 3, "round trips"},
    {FIGURE_COMMIT, 8, "commits of one row"},
    {FIGURE_CONNECT, 4, "connections"},
    {FIGURE_ADD_COMMAND, 6, "dq add"},
    {FIGURE_ADD, 7, "single adds"},
    {FIGURE_ADD_BULK, 8, "bulk adds"},
    {FIGURE_PEEK, 3, "asking what is due"},
    {FIGURE_CLAIM, 12, "claiming and settling"},
    {FIGURE_SPAWN, 6, "starting processes"},
    {FIGURE_SPAWN_PARALLEL, 8, "starting several processes at a time"},
    {FIGURE_RUN, 13, "dqd, one process per task"},
    {FIGURE_RUN_BATCH, 10, "dqd, batches"},
    {FIGURE_LATENESS, 12, "lateness"},
};
#define STEP_COUNT (sizeof steps / sizeof steps[0])

/* Seconds for one task to go through both, one after the other; a figure that is not known takes
 * none. */
static double seconds(const struct figure *x, const struct figure *y)
{
    return (x->known ? 1 / x->value : 0) + (y->known ? 1 / y->value : 0);
}

static int step(struct bench *b, enum figure_id id, int64_t ms, struct err *err)
{
    struct db *db = scratch_db_db(b->scratch);
    struct figure *f = b->figures, *ret = &f[id];

    switch (id) {
    case FIGURE_ROUND_TRIP:
        return statement_round_trip(db, ms, ret, err);
    case FIGURE_COMMIT:
        return statement_commit(db, ms, ret, err);
    case FIGURE_CONNECT:
        return statement_connect(scratch_db_conf(b->scratch), ms, ret, err);
    case FIGURE_ADD_COMMAND:
        return program_add_command(&b->rig, ms, ret, err);
    case FIGURE_ADD:
        return statement_add(db, ms, ret, err);
    case FIGURE_ADD_BULK:
        return statement_add_bulk(db, ms, ret, err);
    case FIGURE_PEEK:
        return statement_peek(db, ms, ret, err);
    case FIGURE_CLAIM:
        return statement_claim(db, b->conf->dqd.history == CONF_HISTORY_ALL, ms, ret,
                               &f[FIGURE_SETTLE], err);
    case FIGURE_SPAWN:
        return spawn_one_by_one(ms, ret, err);
    case FIGURE_SPAWN_PARALLEL:
        return spawn_parallel(b->rig.cores, ms, ret, err);
    case FIGURE_RUN:
        return program_run(&b->rig, db, seconds(&f[FIGURE_ADD_BULK], &f[FIGURE_SPAWN_PARALLEL]), ms,
                           ret, err);
    case FIGURE_RUN_BATCH:
        return program_run_batch(&b->rig, db,
                                 seconds(&f[FIGURE_ADD_BULK], &f[FIGURE_CLAIM]) +
                                     seconds(&f[FIGURE_SETTLE], &(struct figure){0}),
                                 ms, ret, err);
    case FIGURE_LATENESS:
        return program_lateness(&b->rig, db, ms, ret, err);
    case FIGURE_SETTLE:
    case FIGURE_COUNT:
        break;
    }
    return 0;
}

static int run_steps(struct bench *b, int64_t total_ms,
                     void (*phase)(void *arg, const char *what, double fraction), void *arg,
                     struct err *err)
{
    int rc = 0, done = 0;

    for (size_t i = 0; rc == 0 && i < STEP_COUNT && !interrupt_asked(); i++) {
        phase(arg, steps[i].what, done / 100.0);
        rc = step(b, steps[i].id, total_ms * steps[i].percent / 100, err);
        if (rc < 0)
            err_prefix(err, "%s", steps[i].what);
        done += steps[i].percent;
    }
    return interrupt_asked() ? err_set(err, ERR_TRANSIENT, "interrupted") : rc;
}

int bench_measure(const struct conf *conf, struct scratch_db *scratch, int64_t total_ms,
                  void (*phase)(void *arg, const char *what, double fraction), void *arg,
                  struct judge_rows *ret, struct err *err)
{
    struct bench b = {.conf = conf, .scratch = scratch};
    struct judge_facts facts = {.conf = conf, .figures = b.figures};
    int rc = rig_init(&b.rig, conf, scratch_db_conf(scratch), err);

    if (rc == 0)
        rc = scratch_store_server(scratch_db_db(scratch), conf->mysql.database, &facts.server, err);
    if (rc == 0)
        rc = run_steps(&b, total_ms, phase, arg, err);
    facts.cores = b.rig.cores;
    rig_done(&b.rig);
    if (rc == 0)
        *ret = judge(&facts);
    return rc;
}
