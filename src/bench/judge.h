/*
 * judge.h - what the figures mean: how many tasks a day this server and this host can handle, and
 * what limits them. Pure.
 */
#ifndef DQ_BENCH_JUDGE_H
#define DQ_BENCH_JUDGE_H

#include "bench/figure.h"
#include "conf/conf.h"
#include "store/schema/scratch_store.h"

struct judge_facts {
    const struct conf *conf;
    const struct figure *figures; /* by figure_id */
    struct scratch_server server;
    int cores;
};

/* A line of the result. The name of a bottleneck is that of the capacity or measure it limits. */
struct judge_row {
    const char *kind; /* "measure", "capacity" or "bottleneck" */
    const char *name, *unit;
    bool known, has_p99, warn;
    double value, p99;
    char setting[64], now[64], about[256];
};
struct judge_rows {
    struct judge_row *items; /* heap memory */
    size_t count;
};
struct judge_rows judge(const struct judge_facts *f);

#endif
