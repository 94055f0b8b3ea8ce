/*
 * stats_prom.h - dq stats -o prometheus.
 */
#ifndef DQ_CLI_JUDGE_STATS_PROM_H
#define DQ_CLI_JUDGE_STATS_PROM_H

#include "cli/judge/fleet.h"
#include "cli/judge/stats.h"
#include "store/ask/schedule_store.h"

/* Tags with a label of their own: those with the most due tasks, then with the most tasks. The
 * others are summed up under the label tag="". */
#define STATS_PROM_TAGS 100

/* Prints it to stdout. schedules: those whose metrics are printed, the first ones if there are more
 * than STATS_PROM_TAGS, but those with an alarm before all others. */
void stats_prom_put(const struct stats *s, const struct fleet *fleet,
                    const struct schedule *schedules, size_t schedule_count);

#endif
