/*
 * program.h - the real dq and dqd against the scratch database: what a shell pays for `dq add`, how
 * many tasks a second dqd runs, how late it starts planned tasks; and how many programs this host
 * starts in a second.
 *
 * If dqd is not found, or does not run, the figure stays unknown and says why.
 */
#ifndef DQ_BENCH_PROGRAM_H
#define DQ_BENCH_PROGRAM_H

#include "bench/rig.h"

rig_measure program_add_command, program_lateness;
/* dqd --once on as many due tasks as should take that long: a process for each, or in batches. */
rig_measure program_run, program_run_batch;
/* Shells that do nothing: one at a time, and as many at a time as is fastest. */
rig_measure program_spawn_one_by_one, program_spawn_parallel;

#endif
