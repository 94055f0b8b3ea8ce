/*
 * stop.h - when a measure ends: its share of the time is over, or it was interrupted
 * (base/interrupt.h), and then the verb fails: half a measurement is worth nothing.
 */
#ifndef DQ_BENCH_STOP_H
#define DQ_BENCH_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether to go on: `done` of a thing are done, and end_us (when_steady_us) is when its share of
 * the time is over. A few are done however slow they are. */
bool stop_not_yet(size_t done, int64_t end_us);

#endif
