/*
 * bench.h - measures a server and this host, and judges the figures.
 */
#ifndef DQ_BENCH_BENCH_H
#define DQ_BENCH_BENCH_H

#include "bench/judge.h"
#include "bench/scratch_db.h"
#include "conf/conf.h"

/* Measures for about total_ms in a scratch database that was made. phase(arg, what, fraction) is
 * called before each step, with the share of the time that has passed. ERR_TRANSIENT if
 * stop_asked(). ret->items is heap memory. */
int bench_measure(const struct conf *conf, const struct scratch_db *scratch, int64_t total_ms,
                  void (*phase)(void *arg, const char *what, double fraction), void *arg,
                  struct judge_rows *ret, struct err *err) __attribute__((warn_unused_result));

#endif
