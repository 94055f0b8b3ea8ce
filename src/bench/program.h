/*
 * program.h - the real dq and dqd against the scratch database: what a shell pays for `dq add`, how
 * many tasks a second dqd runs, how late it starts planned tasks.
 *
 * Each takes about `ms` and sets one figure; if dqd is not found, or does not run, the figure stays
 * unknown and says why.
 */
#ifndef DQ_BENCH_PROGRAM_H
#define DQ_BENCH_PROGRAM_H

#include "bench/figure.h"
#include "bench/rig.h"
#include "store/db/db.h"

int program_add_command(const struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
    __attribute__((warn_unused_result));
/* dqd --once on as many due tasks as should take that long: a process for each, or in batches.
 * each_s is a guess of the time a task takes. */
int program_run(const struct rig *rig, struct db *db, double each_s, int64_t ms, struct figure *ret,
                struct err *err) __attribute__((warn_unused_result));
int program_run_batch(const struct rig *rig, struct db *db, double each_s, int64_t ms,
                      struct figure *ret, struct err *err) __attribute__((warn_unused_result));
int program_lateness(const struct rig *rig, struct db *db, int64_t ms, struct figure *ret,
                     struct err *err) __attribute__((warn_unused_result));

#endif
