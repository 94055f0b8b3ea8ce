/*
 * bench.c - the steps of a measurement, one after the other.
 */
#include "bench/bench.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "bench/program.h"
#include "bench/spawn.h"
#include "bench/statement.h"

/* In this order: a step may use the figures of earlier ones. FIGURE_SETTLE is measured with
 * FIGURE_CLAIM. */
static const struct {
    enum figure_id id;
    int percent; /* of the time */
    const char *what;
    rig_measure *measure;
} steps[] = {
    {FIGURE_ROUND_TRIP, 3, "round trips", statement_round_trip},
    {FIGURE_COMMIT, 8, "commits of one row", statement_commit},
    {FIGURE_CONNECT, 4, "connections", statement_connect},
    {FIGURE_ADD_COMMAND, 6, "dq add", program_add_command},
    {FIGURE_ADD, 7, "single adds", statement_add},
    {FIGURE_ADD_BULK, 8, "bulk adds", statement_add_bulk},
    {FIGURE_PEEK, 3, "asking what is due", statement_peek},
    {FIGURE_CLAIM, 12, "claiming and settling", statement_claim},
    {FIGURE_SPAWN, 6, "starting processes", spawn_one_by_one},
    {FIGURE_SPAWN_PARALLEL, 8, "starting several processes at a time", spawn_parallel},
    {FIGURE_RUN, 13, "dqd, one process per task", program_run},
    {FIGURE_RUN_BATCH, 10, "dqd, batches", program_run_batch},
    {FIGURE_LATENESS, 12, "lateness", program_lateness},
};
#define STEP_COUNT (sizeof steps / sizeof steps[0])

static int run_steps(struct rig *rig, int64_t total_ms,
                     void (*phase)(void *arg, const char *what, double fraction), void *arg,
                     struct err *err)
{
    int rc = 0, done = 0;

    for (size_t i = 0; rc == 0 && i < STEP_COUNT && !interrupt_asked(); i++) {
        phase(arg, steps[i].what, done / 100.0);
        rc = steps[i].measure(rig, total_ms * steps[i].percent / 100, &rig->figures[steps[i].id],
                              err);
        if (rc < 0)
            err_prefix(err, "%s", steps[i].what);
        done += steps[i].percent;
    }
    return interrupt_asked() ? err_set(err, ERR_TRANSIENT, "interrupted") : rc;
}

int bench_measure(const struct conf *conf, const struct scratch_db *scratch, int64_t total_ms,
                  void (*phase)(void *arg, const char *what, double fraction), void *arg,
                  struct judge_rows *ret, struct err *err)
{
    LOCAL_BY(rig_done) struct rig rig = {0};
    struct judge_facts facts = {.conf = conf, .figures = rig.figures};
    int rc = rig_init(&rig, conf, scratch, err);

    if (rc == 0)
        rc = scratch_store_server(scratch->db, conf->mysql.database, &facts.server, err);
    if (rc == 0)
        rc = run_steps(&rig, total_ms, phase, arg, err);
    facts.cores = rig.cores;
    if (rc == 0)
        *ret = judge(&facts);
    return rc;
}
