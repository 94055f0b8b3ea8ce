/*
 * metrics.h - what this dqd has done since its start, in a file for node_exporter's textfile
 * collector ([dqd] metrics_file).
 */
#ifndef DQ_POLLER_METRICS_H
#define DQ_POLLER_METRICS_H

#include "poller/context.h"
#include "poller/minute.h"
#include "poller/served.h"

#include <stdbool.h>
#include <stdint.h>

struct metrics {
    const struct context *ctx;
    const struct minute *minute;
    const struct served *served;
    bool failed; /* the last time; that was logged */
};

void metrics_init(struct metrics *m, const struct context *ctx, const struct minute *minute,
                  const struct served *served);
/* After a heartbeat: replaces the file, if one is configured. running: handlers. A failure is
 * logged once. Asks no database. */
void metrics_write(struct metrics *m, uint32_t running);

#endif
